# SPDX-License-Identifier: Apache-2.0
"""Runs the ten lines of docs/record.md over a block that record_test wrote, and holds what they print against what it wrote."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/../../tests")
import checks

checks.h5py_or_skip()
program, document = sys.argv[1:3]
lines = re.search(r"```python\n(.*?)```", open(document).read(), re.S).group(1)
assert len(lines.strip().splitlines()) <= 10, "docs/record.md promises ten lines"
with tempfile.TemporaryDirectory() as folder:
    block = os.path.join(folder, "block.h5")
    subprocess.run([program, block], check=True)
    out = subprocess.run([sys.executable, "-c", lines, block], check=True, capture_output=True, text=True).stdout
print(out)
assert "off" in out and "gpu" in out, "arm and facts"
rows = [line for line in out.splitlines() if "batch" in line and "step" in line]
assert len(rows) == 6, "six cells"
for i, line in enumerate(rows):
    assert f'"batch":{i}' in line and "done" in line and "predicted" in line and " 700 " in line and "ns" in line, line
    median = float(line.split()[-1])
    assert abs(median - (i * 1e6 + 349.5 + 0.25)) < 1e-6, line

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the blocks of a run on a GPU say of themselves: marks.py RUN. Every finished cell must have its counts, and every block of an
emulated arm what a DELAY does to a GEMM beside it. 0: they have."""
import glob
import os
import sys

sys.path.append(sys.path[0] + "/../..")
import checks

h5py = checks.h5py_or_skip()
COUNTS = ("submissions", "graphs", "nodes", "kernels")
CHECKS = checks.Checks("PASS ", "FAIL ")
judge, blocks = CHECKS.say, sorted(glob.glob(os.path.join(sys.argv[1], "block-*.h5")))

for path in blocks:
    with h5py.File(path) as block:
        arm = bytes(block.attrs["arm"]).decode()
        beside = [value.decode() for name, _, value in block["facts"] if name == b"delay.beside"]
        if arm.startswith("emulated"):
            judge(len(beside) == 1 and 0.9 < float(beside[0]) < 1.1, f"{os.path.basename(path)} {arm}: delay.beside {beside}")
        for number, cell in block["cells"].items():
            state = cell["state"][0]
            if state["state"] == 1:
                counts = ", ".join(f"{name} {state['performed_' + name]} ({state['program_' + name]})" for name in COUNTS)
                judge(state["performed_submissions"] > 0 and state["program_submissions"] > 0,
                      f"{os.path.basename(path)} {arm} cell {number}: as performed (and by the program) {counts}")
judge(blocks, f"{len(blocks)} blocks")
CHECKS.end()

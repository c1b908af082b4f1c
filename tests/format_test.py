#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C source is as .clang-format says, by clang-format 14: other versions break lines elsewhere. format_test.py ROOT"""
import os
import re
import shutil
import subprocess
import sys

VERSION = "14"
SKIP = (".git", "quickstart-out")


def formatter():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout if shutil.which(name) else ""
        if re.search(rf"version {VERSION}\.", said):
            return name
    print(f"skipped: clang-format {VERSION} is not installed")
    sys.exit(77)


def sources(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIP and not f.startswith("build")]
        yield from (os.path.join(folder, name) for name in files if name.endswith((".c", ".h", ".cu")))


def main():
    root, tool = os.path.abspath(sys.argv[1]), formatter()
    paths = sorted(sources(root))
    said = subprocess.run([tool, "--dry-run", "-Werror", *paths], capture_output=True, text=True, cwd=root)
    wrong = sorted(set(re.findall(rf"^{re.escape(root)}/([^:]+):\d+", said.stderr, re.M)))
    for path in wrong:
        print(f"FAILED: {path} is not formatted: {tool} -i {path}")
    print(f"{len(paths)} sources, {len(wrong)} not formatted")
    return 1 if said.returncode or not paths else 0


sys.exit(main())

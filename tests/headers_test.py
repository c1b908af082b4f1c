#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, and twice. headers_test.py ROOT COMPILER [FLAG...]; headers of CUDA are left out where no flag
names its folder."""
import concurrent.futures
import os
import subprocess
import sys

ROOT, COMPILER, FLAGS = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
WORDS = ["-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "core"), "-I" + ROOT,
         "-I" + os.path.join(ROOT, "tests"), *FLAGS, "-x", "c", "-"]


def compile_alone(header):
    text = f'#include "{header}"\n#include "{header}"\nint cct_not_empty;\n'
    done = subprocess.run([COMPILER, *WORDS], input=text, capture_output=True, text=True, cwd=ROOT)
    return done.returncode and f"{header}:\n{done.stderr}"


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.h"], capture_output=True, text=True)
    if listed.returncode:
        print(f"skipped: {ROOT} is no git checkout")
        return 77
    has_cuda = any("cuda" in flag for flag in FLAGS)
    headers = [h for h in listed.stdout.split() if has_cuda or "/cuda/" not in h]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = list(filter(None, pool.map(compile_alone, headers)))
    print("\n".join(wrong) or f"{len(headers)} headers")
    return 1 if wrong else 0


sys.exit(main())

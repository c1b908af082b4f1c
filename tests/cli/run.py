#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden command-line tests. A .cases file is a transcript:

    # comment
    $ cctax plan --modle x          a shell line, run in a fresh folder that holds tests/cli/inputs
    ? 2                             its exit code (no line: 0)
    > text on stdout                `...` within a line stands for anything; a lone `...` for any number of lines
    ! text on stderr
    + file                          what it leaves behind (no line: nothing)

Whatever ends with 2 must say so in exactly one line on stderr and leave nothing behind; that is checked without being
written down. run.py [--update] CCTAX FILE.cases... (--update rewrites expectations from what is printed now)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Case:
    def __init__(self, command):
        self.command, self.code, self.out, self.err, self.files = command, 0, [], [], []


def read_cases(path):
    """The file as a list of comment strings and Cases, so that --update keeps the comments."""
    items = []
    with open(path, encoding="utf-8") as lines:
        for line in lines.read().splitlines():
            mark, rest = line[:1], line[2:]
            if mark == "$":
                items.append(Case(rest))
            elif mark in "?>!+" and mark and items and isinstance(items[-1], Case):
                case = items[-1]
                if mark == "?":
                    case.code = int(rest)
                else:
                    {">": case.out, "!": case.err, "+": case.files}[mark].append(rest)
            else:
                items.append(line)
    return items


def matches(expected, actual):
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def listing(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, files in os.walk(folder)
                  for name in files + [f for f in folders if not os.listdir(os.path.join(at, f))])


def run(case, cctax):
    folder = tempfile.mkdtemp(prefix="cctax-cli-")
    try:
        inputs = os.path.join(HERE, "inputs")
        if os.path.isdir(inputs):
            shutil.copytree(inputs, folder, dirs_exist_ok=True)
        before = listing(folder)
        environment = dict(os.environ, PATH=os.path.dirname(cctax) + ":" + os.environ["PATH"], COLUMNS="120", HOME=folder)
        done = subprocess.run(["bash", "-c", case.command], cwd=folder, env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
        left = [name for name in listing(folder) if name not in before]
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), left
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge(case, code, out, err, left):
    wrong = []
    if code != case.code:
        wrong.append(f"exit {code}, expected {case.code}")
    for name, expected, actual in (("stdout", case.out, out), ("stderr", case.err, err)):
        if not matches(expected, actual):
            wrong.append(f"{name}:\n    " + "\n    ".join(actual or ["(nothing)"]) + "\n  expected:\n    " +
                         "\n    ".join(expected or ["(nothing)"]))
    if not matches(case.files, left):
        wrong.append(f"left behind: {left}, expected {case.files}")
    if code == 2 and (len(err) != 1 or left):
        wrong.append(f"exit 2 needs one line on stderr and nothing left behind; {len(err)} lines, {left}")
    return wrong


def write_cases(path, items):
    with open(path, "w", encoding="utf-8") as out:
        for item in items:
            if isinstance(item, str):
                print(item, file=out)
                continue
            print(f"$ {item.command}", file=out)
            if item.code:
                print(f"? {item.code}", file=out)
            for mark, lines in ((">", item.out), ("!", item.err), ("+", item.files)):
                for line in lines:
                    print(f"{mark} {line}".rstrip(), file=out)


def main():
    arguments = [word for word in sys.argv[1:] if word != "--update"]
    cctax, paths = os.path.abspath(arguments[0]), arguments[1:]
    passed = failed = 0
    for path in paths:
        items = read_cases(path)
        for case in (item for item in items if isinstance(item, Case)):
            code, out, err, left = run(case, cctax)
            wrong = judge(case, code, out, err, left)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"{os.path.basename(path)}: $ {case.command}\n  " + "\n  ".join(wrong))
            if "--update" in sys.argv and wrong:
                case.code, case.out, case.err, case.files = code, out, err, left
        if "--update" in sys.argv:
            write_cases(path, items)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())

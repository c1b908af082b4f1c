#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree against cmake/doors.txt: one door for each foreign header, one-way use between rooms, unique file names,
an SPDX line on top of every source. Run from anywhere: house_test.py [ROOT]."""
import fnmatch
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
SKIP = ("build", ".git", "quickstart-out")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def sources():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in SKIP and not f.startswith("build")]
        for name in files:
            if name.endswith((".c", ".h", ".cu", ".cuh", ".py", ".sh")):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def read_rules():
    doors, rooms, system = [], {}, []
    with open(os.path.join(ROOT, "cmake", "doors.txt"), encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if words[:1] == ["door"]:
                doors.append((words[1], words[2]))
            elif words[:1] == ["room"]:
                rooms[words[1]] = words[2:]
            elif words[:1] == ["system"]:
                system += words[1:]
            elif words:
                raise SystemExit(f"cmake/doors.txt: '{words[0]}' is neither door, room nor system")
    return doors, rooms, system


def room_of(path, rooms):
    return next((room for room in rooms if path.startswith(room + "/")), None)


def resolve(include):
    """The tree's own file that a quoted include names: core/ and the root are the include folders."""
    for base in ("core", ""):
        path = os.path.normpath(os.path.join(base, include))
        if os.path.exists(os.path.join(ROOT, path)):
            return path
    return None


def check(path, doors, rooms, system, complain):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:2]):
        complain(f"{path}: no SPDX line on top")
    is_test = path.startswith("tests/") or path.endswith("_test.c") or "_test" in os.path.basename(path)
    own = room_of(path, rooms)
    for mark, include in INCLUDE.findall(text):
        allowed = [door for header, door in doors if fnmatch.fnmatch(include, header)]
        if allowed and not is_test and not any(fnmatch.fnmatch(path, door) for door in allowed):
            complain(f"{path}: includes <{include}>, whose one door is {' or '.join(allowed)}")
        elif mark == "<" and not allowed and not is_test and not any(fnmatch.fnmatch(include, name) for name in system):
            complain(f"{path}: includes <{include}>, which has no door")
        target = resolve(include)
        other = room_of(target, rooms) if target else None
        if other and own and other != own and other not in rooms[own] and not is_test:
            complain(f"{path}: room {own} may not use {other} ({include})")


def main():
    doors, rooms, system = read_rules()
    complaints, names = [], {}
    for path in sorted(sources()):
        check(path, doors, rooms, system, complaints.append)
        if path.endswith((".c", ".h", ".cu")):
            names.setdefault(os.path.basename(path), []).append(path)
    complaints += [f"two files of one name: {' '.join(paths)}" for paths in names.values() if len(paths) > 1]
    linked = subprocess.run(["git", "-C", ROOT, "ls-files", "-s"], capture_output=True, text=True, check=False).stdout
    complaints += [f"a link in the tree: {line}" for line in linked.splitlines() if line.startswith("120000")]
    print("\n".join(complaints) or f"{sum(len(p) for p in names.values())} sources, {len(doors)} doors, {len(rooms)} rooms")
    return 1 if complaints else 0


sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What test scripts share: a line a check, programs and what they print, processes at work on a run. A script finds this beside
itself, where tests/gpu/cuda/carry.sh puts it, or above its folder."""
import json
import os
import re
import subprocess
import sys

ENVIRONMENT = dict(os.environ)  # of programs: as it came, whatever a script sets for itself


class Checks:
    """Says a line a check, and counts those that did not hold."""

    def __init__(self, held="held  ", failed="FAILED", most=20):
        self.words, self.most, self.failures = (failed, held), most, 0

    def say(self, is_held, text, more=""):
        """`more`: of a failure, its first lines below."""
        self.failures += not is_held
        print(self.words[bool(is_held)], text, flush=True)
        for line in str(more).splitlines()[:0 if is_held else self.most]:
            print(f"         {line}", flush=True)

    def end(self):
        print(f"{self.failures} checks failed")
        sys.exit(self.failures > 0)


def perform(*command, timeout=None, cwd=None, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd=cwd,
                          env=dict(ENVIRONMENT, **environment))


def printed(*command, **how):
    """What the command prints; one that does not end with 0 ends the script."""
    done = perform(*command, **how)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[:400]}")
    return done.stdout


def reported(cctax, run, *flags, **how):
    """Performs a run of these flags; what is reported of it."""
    printed(cctax, "run", *flags, "-q", "-o", run, **how)
    return json.loads(printed(cctax, "report", run, "--json", **how))


def shown_cells(text):
    """What `cctax show` prints of cells: [(parameters, [(arm, metric, median, samples)])]."""
    cells = []
    for line in text.splitlines():
        head = re.match(r"cell \d+: (\{.*\})", line)
        row = re.match(r"\s+(\S+)\s+(\S+)\s+(\S+) .*?(\d+) in \d+ blocks", line)
        if head:
            cells.append((json.loads(head.group(1)), []))
        elif row and cells:
            arm, metric, median, samples = row.groups()
            cells[-1][1].append((arm, metric, float(median), int(samples)))
    return cells


def h5py_or_skip(is_written=False):
    """The module; the script is skipped (77) where it is not. is_written: records are looked into while they are written."""
    if is_written:
        os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
    try:
        import h5py
    except ImportError:
        print("skipped: python3-h5py is not installed")
        sys.exit(77)
    return h5py


def processes(run):
    """Every process that works on the folder: {pid: name}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if run.encode() in words and int(pid) != os.getpid() and state != "Z":
            found[int(pid)] = os.path.basename(words[0]).decode()
    return found


def ranks_of(run):
    return sorted(pid for pid, name in processes(run).items() if name == "cctax-rank")

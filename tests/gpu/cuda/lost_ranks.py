#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of a measured run is killed, or stops answering, while collectives are under way: the block must end within the
deadline in one line, keep its finished cells, leave no process, and --resume must go on from there.

lost_ranks.py CCTAX FOLDER [--backend cuda|host] [--deadline S]    two ranks, a GPU each with cuda; 1: something did not hold."""
import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../..")
import checks

h5py = checks.h5py_or_skip(is_written=True)
MODEL = {"cuda": {"model": "qwen3-8b", "layers": 2}, "host": {"model": "qwen3-0.6b", "layers": 1, "scale": 64}}


def slow_program():
    """120 ms a step on any host, which needs no core for it, and a collective at its end."""
    ops = [{"op": "delay", "host": 1, "ns": 120000000},
           {"op": "collective", "lane": 0, "host": 1, "kind": "all_reduce", "group": 0, "bytes": 4096, "type": "bf16"}]
    program = {"name": "slow", "lanes": [{"name": "main", "kind": "stream"}, {"name": "python", "kind": "host"}],
               "slots": [], "buffers": [], "ops": ops}
    return {"schema": 1, "ranks": 2, "groups": [{"name": "all", "size": 2, "stride": 1}],
            "roles": [{"first": 0, "count": 2, "program": program}]}


def suite_of(backend, folder):
    """Two short cells, and one of several seconds. On a GPU its bursts are longer than the queue of submissions, so that a
    rank whose peer is gone is held inside one."""
    reduce = {"workload": "collective", "collective": "all_reduce", "np": 2, "type": "bf16"}
    last = dict(reduce, bytes=1 << 20, iters=20000)
    if backend == "host":
        last = {"program": os.path.join(folder, "slow.json")}
        json.dump(slow_program(), open(last["program"], "w"))
    return {"schema": 1, "rounds": 1, "samples": 30, "warmup": 1, "cells": [
        dict(reduce, bytes=4096, iters=20), dict(MODEL[backend], workload="decode", layout="tp=2"), last]}


def finished(run):
    """Digests of the finished cells; of a file that is being written, as far as it can be read."""
    found = {}
    for path in glob.glob(os.path.join(run, "block-*.h5*")):
        try:
            with h5py.File(path, "r") as block:
                for cell, group in block["cells"].items():
                    if group["state"][0]["state"]:
                        found[cell] = group["state"][0]["digest"]
        except (OSError, KeyError, RuntimeError):
            pass
    return found


class Trial:
    def __init__(self, arguments):
        self.cctax, self.deadline_s = os.path.abspath(arguments.cctax), arguments.deadline
        self.folder, self.backend = os.path.abspath(arguments.folder), arguments.backend
        self.checks = checks.Checks("PASS ", "FAIL ")
        os.makedirs(self.folder, exist_ok=True)
        self.suite = os.path.join(self.folder, "lost-ranks.json")
        json.dump(suite_of(self.backend, self.folder), open(self.suite, "w"))

    def start(self, run, *words):
        command = [self.cctax, "run", "-q", "-o", run, "--backend", self.backend, "--deadline", str(self.deadline_s), *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def disturb(self, run, number):
        """One of the ranks, in the midst of a burst of the last cell. 0: the run was over before."""
        front = self.start(run, self.suite)
        while front.poll() is None and len(finished(run)) < 2:
            time.sleep(0.05)
        time.sleep(0.5)  # beyond the load of the last cell
        ranks = checks.ranks_of(run)
        if front.poll() is not None or len(ranks) != 2:
            return front, 0
        os.kill(ranks[-1], number)
        return front, 1

    def one(self, name, number):
        run = os.path.join(self.folder, name)
        shutil.rmtree(run, ignore_errors=True)
        front, was_there = self.disturb(run, number)
        begin = time.monotonic()
        try:
            _, said = front.communicate(timeout=self.deadline_s + 20)
        except subprocess.TimeoutExpired:
            os.killpg(front.pid, signal.SIGKILL)
            return self.checks.say(0, f"{name}: not ended after {self.deadline_s + 20} s: {checks.processes(run)}")
        took_s, lines = time.monotonic() - begin, said.strip().splitlines()
        kept = finished(run)
        # One line; a stopped rank that the launcher continues to end it may say the same a second time.
        is_said = len({re.sub(r"^cctax-rank \d+", "", line) for line in lines}) == 1
        self.checks.say(was_there and front.returncode == 3 and took_s < self.deadline_s + 8 and is_said and len(kept) == 2,
                        f"{name}: exit {front.returncode} after {took_s:.1f} s (deadline {self.deadline_s} s), "
                        f"{len(kept)} cells kept: {' / '.join(lines)}")
        left = checks.processes(run)
        self.checks.say(not left, f"{name}: processes left: {left}")
        again = self.start(run, "--resume")
        _, said = again.communicate(timeout=300)
        now = finished(run)
        self.checks.say(again.returncode == 0 and len(now) == 3 and all(now[cell] == kept[cell] for cell in kept),
                        f"{name}: --resume: exit {again.returncode}, {len(now)} cells, the kept ones as they were {said.strip()}")
        shutil.rmtree(run, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cctax")
    parser.add_argument("folder")
    parser.add_argument("--backend", choices=MODEL, default="cuda")
    parser.add_argument("--deadline", type=int, default=15)
    trial = Trial(parser.parse_args())
    trial.one("killed", signal.SIGKILL)
    trial.one("stopped", signal.SIGSTOP)
    trial.checks.end()


main()

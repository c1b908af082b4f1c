#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault campaign: a run is disturbed at random instants and must end in time, leave no process, keep every finished cell
bit for bit, and after --resume equal the same run undisturbed.

faults.py CCTAX [--long] [--kills N] [--blocks N] [--seed X] [--only NAME,..]
The short form is 51 kills of small runs and takes about a minute; --long is 500 kills and 10 000 blocks. Where no deadline is
to be met it is long: a busy machine disturbs nothing."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/..")
import checks
from checks import processes

h5py = checks.h5py_or_skip()
HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE_S = 30  # of a block without progress
SHORT_S = 2      # where that is what ends it
SUITE = {
    "schema": 1,
    "rounds": 2,
    "samples": 6,
    "warmup": 1,
    "arms": {"factor": "condition", "values": ["off", "emulated:b200x8-tdx"]},
    "defaults": {"model": "qwen3-0.6b", "workload": "decode", "np": 2, "layout": "dp=2", "layers": 2},
    "cells": [{"batch": [1, 2, 4]}, {"graph": "none"}],
}

KILLED = dict(SUITE, rounds=1, samples=4, cells=[{"batch": [1, 2, 4]}])  # many sessions: two short blocks


def fail(text):
    print(f"FAILED: {text}", flush=True)
    sys.exit(1)


def cells(run):
    """State digests of every finished cell: {(block, cell): digest}."""
    found = {}
    for name in sorted(os.listdir(run)) if os.path.isdir(run) else []:
        if not name.startswith("block-") or name.endswith(".partial.partial"):
            continue
        try:
            with h5py.File(os.path.join(run, name)) as block:
                for cell, group in block["cells"].items():
                    state = group["state"][0]
                    if state["state"]:
                        found[(int(name[6:10]), int(cell))] = state["digest"]
        except (OSError, KeyError):
            if name.endswith(".h5"):
                fail(f"{name} does not open")
    return found


def values(run):
    """All samples but their instants, which are of a clock that runs on: what must be equal between runs."""
    found = {}
    for name in sorted(os.listdir(run)):
        if name.startswith("block-"):
            with h5py.File(os.path.join(run, name)) as block:
                for cell, group in block["cells"].items():
                    rows = group["step"][:]
                    found[(name, cell)] = (group.attrs["key"], group["state"][0]["state"],
                                           b"".join(rows[column].tobytes() for column in ("rank", "index", "n", "value")))
    return found


class Campaign:
    def __init__(self, arguments, folder):
        self.cctax, self.folder, self.arguments = os.path.abspath(arguments.cctax), folder, arguments
        self.random = random.Random(arguments.seed)
        self.suite, self.killed = (os.path.join(folder, name) for name in ("suite.json", "killed.json"))
        for path, suite in ((self.suite, SUITE), (self.killed, KILLED)):
            json.dump(suite, open(path, "w"))
        self.references, self.session_s = {}, {}
        self.notes, self.hidden = [], 0

    def start(self, run, *words, backend="sim", deadline=DEADLINE_S, **more):
        usual = ["--deadline", str(deadline)] + (["--procs", "2"] if backend == "sim" and "--procs" not in words else [])
        return subprocess.Popen([self.cctax, "run", "-q", "-o", run, "--backend", backend, *usual, *words],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True, **more)

    def finish(self, front, run, limit=None):
        """Waits for the front end and for everything it started. A session that is not disturbed any more takes what an
        undisturbed one did."""
        begin = time.monotonic()
        limit = limit or DEADLINE_S + 10 + max(self.session_s.values(), default=0)
        try:
            _, said = front.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            fail(f"not ended after {limit} s: {processes(run)}")
        while processes(run):
            if time.monotonic() - begin > limit:
                fail(f"orphans: {processes(run)}")
            time.sleep(0.02)
        return front.returncode, said

    def undisturbed(self, suite=None):
        suite = suite or self.suite
        if suite not in self.references:
            run = suite + "-undisturbed"
            begin = time.monotonic()
            code, said = self.finish(self.start(run, suite), run, 120)
            if code:
                fail(f"the undisturbed run ended with {code}: {said}")
            self.session_s[suite] = time.monotonic() - begin
            self.references[suite] = values(run)
        return self.references[suite]

    def expect_equal(self, run, suite=None):
        if values(run) != self.undisturbed(suite):
            fail(f"{run} differs from the undisturbed run")

    def resume(self, run):
        """To the end, keeping what was there."""
        before = cells(run)
        code, said = self.finish(self.start(run, "--resume"), run, 120)
        if code:
            fail(f"--resume ended with {code}: {said}")
        self.expect_kept(run, before)
        self.expect_equal(run)

    def expect_kept(self, run, before):
        now = cells(run)
        for place, digest in before.items():
            if now.get(place) != digest:
                fail(f"{run}: block {place[0]}, cell {place[1]} was finished and is {'lost' if place not in now else 'altered'}")
        return now

    def wait_for_instant(self, front, run, suite):
        """At random within a session; every other time within its cells, which are short beside the start of a block."""
        if self.random.random() < 0.5:
            time.sleep(self.random.uniform(0.0, self.session_s[suite] * 0.6))
            return
        limit = time.monotonic() + self.session_s[suite]
        while front.poll() is None and time.monotonic() < limit:
            if os.path.isdir(run) and any(name.endswith(".partial") for name in os.listdir(run)):
                break
            time.sleep(0.002)
        time.sleep(self.random.uniform(0.0, 0.05))

    def disturbed(self, disturb, allowed, suite):
        """Runs and resumes, each session disturbed once, until it ends by itself; then compares. Yields the sessions' number."""
        run = tempfile.mkdtemp(dir=self.folder)
        os.rmdir(run)
        before, sessions = {}, 0
        self.undisturbed(suite)
        while True:
            began = os.path.exists(os.path.join(run, "run.json"))
            front = self.start(run, *(["--resume"] if began else [suite]))
            self.wait_for_instant(front, run, suite)
            disturb(front, run)
            code, said = self.finish(front, run)
            if code not in allowed + (0,):
                fail(f"ended with {code}: {said}")
            if os.path.isdir(run):
                before = self.expect_kept(run, before)
            sessions += 1
            yield sessions
            if code == 0:
                break
        self.expect_equal(run, suite)
        shutil.rmtree(run)

    # ---- the faults ----

    def kill(self, front, run, who):
        """Whether there was one."""
        starts = {"front": "cctax", "mpirun": "mpirun", "rank": "cctax-rank"}[who]
        named = [front.pid] if who == "front" else [pid for pid, name in processes(run).items() if name.startswith(starts)]
        try:
            os.kill(self.random.choice(named), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            return 0
        return 1

    def kills(self):
        """kill -9 of a rank, of mpirun, of the front end."""
        done = {"rank": 0, "mpirun": 0, "front": 0}
        wanted = self.arguments.kills

        def disturb(front, run):
            who = min(done, key=done.get)
            done[who] += self.kill(front, run, who)

        while sum(done.values()) < wanted:
            for _ in self.disturbed(disturb, (3, -9), self.killed):
                if sum(done.values()) >= wanted:
                    def disturb(front, run):  # the last run ends in peace
                        pass
        return f"{done}"

    def signals(self):
        """SIGTERM and SIGINT end with 3 and a way to go on, at once: in the midst of a block that would take a minute too."""
        self.undisturbed()
        run, suite = os.path.join(self.folder, "long"), os.path.join(self.folder, "long.json")
        json.dump({"schema": 1, "rounds": 1, "samples": 60000, "cells": [{"workload": "probe", "probe": "hostwork", "np": 1}]},
                  open(suite, "w"))
        self.signal(run, suite, signal.SIGTERM, backend="host")
        for number in (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if self.arguments.long else [])):
            run = os.path.join(self.folder, f"signal-{number}")
            self.signal(run, self.suite, number)
            self.resume(run)

    def signal(self, run, suite, number, **how):
        front = self.start(run, suite, **how)
        while not [name for name in processes(run).values() if name == "cctax-rank"]:
            time.sleep(0.01)
        time.sleep(0.4 * self.session_s[self.suite])
        os.kill(front.pid, number)
        begin = time.monotonic()
        code, said = self.finish(front, run)
        if code != 3:
            fail(f"signal {number}: ended with {code}: {said}")
        if time.monotonic() - begin > 10:  # ranks have 3 s to end by themselves
            fail(f"signal {number}: took {time.monotonic() - begin:.1f} s to end")

    def stopped(self):
        """SIGSTOP of a rank, and of mpirun: the deadline ends the block, a rank says what it was doing."""
        for who in ("cctax-rank", "mpirun"):
            delay, code = 0.4, 0
            while code != 3 and delay > 0.001:  # a fast machine is done before a late signal: come earlier
                run = os.path.join(self.folder, f"stopped-{who}-{delay}")
                front = self.start(run, self.suite, deadline=SHORT_S)
                begin = time.monotonic()
                named = []
                while len(named) != (2 if who == "cctax-rank" else 1) and front.poll() is None:
                    named = [pid for pid, name in processes(run).items() if name == who]
                    time.sleep(0.01)
                time.sleep(delay)
                try:
                    os.kill(named[-1], signal.SIGSTOP)
                except (ProcessLookupError, IndexError):
                    pass
                code, said = self.finish(front, run)
                delay /= 2
            wanted = "no progress for" if who == "cctax-rank" else "nothing was heard"
            if code != 3 or wanted not in said:
                fail(f"SIGSTOP of {who}: ended with {code}: {said}")
            self.resume(run)
            self.notes.append(f"{who} stopped: ended after {time.monotonic() - begin:.1f} s with its resume")

    def mounted(self, options):
        folder = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode:
            self.hidden += 1
            self.notes.append(f"skipped: mount is not permitted: {done.stderr.strip()}")
            return None
        return folder

    def full(self):
        """A disk that fills at any point: exit 3, or 2 where nothing could begin; finished cells stay; with room it goes on."""
        kept = {}
        for size in (4, 24, 40, 64, 96, 128, 160) if self.arguments.long else (4, 40, 96):
            folder = self.mounted(f"size={size}k")
            if not folder:
                return
            try:
                run = os.path.join(folder, "run")
                code, said = self.finish(self.start(run, self.suite), run, 60)
                if code != 3 and not (code == 2 and not os.path.exists(os.path.join(run, "run.json"))):
                    fail(f"disk of {size} KiB: ended with {code}: {said}")
                if "No space left" not in said:
                    fail(f"disk of {size} KiB: does not say so: {said}")
                kept[size] = len(cells(run)) if code == 3 else 0
                subprocess.run(["mount", "-o", "remount,size=10M", folder], check=True)
                if os.path.exists(os.path.join(run, "run.json")):
                    self.resume(run)
            finally:
                subprocess.run(["umount", "-l", folder], check=True)
        if not any(kept.values()):
            fail(f"no disk filled between two cells: {kept}")
        return f"cells kept, by KiB: {kept}"

    def read_only(self):
        """A place that cannot be written: exit 2 and nothing there; one that stops being writable: not 0, and it goes on later."""
        folder = self.mounted("size=10M,ro")
        if not folder:
            return
        try:
            run = os.path.join(folder, "run")
            code, said = self.finish(self.start(run, self.suite), run)
            if code != 2 or len(said.strip().splitlines()) != 1:
                fail(f"read-only: ended with {code}: {said}")
            subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
            code, said = self.finish(self.start(run, self.suite, "--rounds", "1"), run, 60)
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
            code, said = self.finish(self.start(run, "--resume"), run)
            if code == 0:
                fail("a read-only run is resumed with 0")
        finally:
            subprocess.run(["umount", "-l", folder], check=True)

    def vanished(self):
        """The folder goes away under the run."""
        run = os.path.join(self.folder, "vanished")
        front = self.start(run, self.suite)
        while not os.path.exists(os.path.join(run, "block-0000.h5.partial")):
            time.sleep(0.002)
        shutil.rmtree(run, ignore_errors=True)
        code, said = self.finish(front, run)
        if code not in (2, 3):
            fail(f"vanished folder: ended with {code}: {said}")

    def clock(self):
        """The wall clock jumps by hours in both directions: nothing that is measured or waited for uses it."""
        library = os.path.join(self.folder, "clock.so")
        done = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "fault_clock.c"), "-ldl"],
                              capture_output=True, text=True)
        if done.returncode:
            fail(f"fault_clock.c: {done.stderr}")
        run = os.path.join(self.folder, "clock")
        # AddressSanitizer wants to be the first library, and one that turns only clocks may come before it.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        code, said = self.finish(self.start(run, self.suite, env=dict(os.environ, LD_PRELOAD=library, ASAN_OPTIONS=asan)), run, 60)
        if code:
            fail(f"clock steps: ended with {code}: {said}")
        self.expect_equal(run)

    def idle(self):
        """A cell that lasts longer than the deadline and has no rank on one of the processes, which must not give up."""
        run, suite = os.path.join(self.folder, "idle"), os.path.join(self.folder, "idle.json")
        json.dump(dict(SUITE, rounds=1, samples=1100, arms={"factor": "condition", "values": ["off"]},
                       defaults={"workload": "probe", "probe": "hostwork"},
                       cells=[{"np": 1, "calls": 4}, {"np": 2}]), open(suite, "w"))
        code, said = self.finish(self.start(run, suite, backend="host", deadline=3), run, 120)  # the first cell takes 4.4 s
        if code:
            fail(f"idle process: ended with {code}: {said}")

    def two(self):
        """A second run in the same folder is refused, and the first does not notice."""
        run = os.path.join(self.folder, "two")
        first = self.start(run, self.suite)
        while not os.path.exists(os.path.join(run, "block-0000.h5.partial")):
            time.sleep(0.002)
        for words, expected in ((["--resume"], "another cctax works on this run"), ([self.suite], "holds a run")):
            second = self.start(run, *words)
            _, said = second.communicate(timeout=10)
            if second.returncode != 2 or expected not in said:
                fail(f"second run: ended with {second.returncode}: {said}")
        code, said = self.finish(first, run, 60)
        if code:
            fail(f"the first of two runs ended with {code}: {said}")
        self.expect_equal(run)

    def foreign(self):
        """A damaged or foreign file in the folder is refused before anything is performed."""
        run = os.path.join(self.folder, "foreign")
        self.finish(self.start(run, self.suite, "--rounds", "1"), run, 60)
        open(os.path.join(run, "notes.txt"), "w").write("mine")
        code, said = self.finish(self.start(run, "--resume"), run)
        if code != 2 or "notes.txt" not in said:
            fail(f"foreign file: ended with {code}: {said}")
        os.remove(os.path.join(run, "notes.txt"))
        with open(os.path.join(run, "run.json"), "r+") as file:
            text = file.read().replace('"samples": 6', '"samples": 7')
            file.seek(0)
            file.write(text)
        code, said = self.finish(self.start(run, "--resume"), run)
        if code != 2 or "does not fit its digest" not in said:
            fail(f"changed agenda: ended with {code}: {said}")

    def disagree(self):
        """Ranks of two agendas in one block: refused, the rank named."""
        runs = [os.path.join(self.folder, f"disagree-{i}") for i in range(2)]
        for i, run in enumerate(runs):
            front = self.start(run, self.suite, "--seed", str(i + 1))
            while not os.path.exists(os.path.join(run, "run.json")):
                time.sleep(0.002)
            os.kill(front.pid, signal.SIGTERM)
            self.finish(front, run)
        rank = os.path.join(os.path.dirname(self.cctax), "cctax-rank")
        done = subprocess.run(["mpirun", "-np", "2", rank, runs[0], "--block", "0", ":", "-np", "1", rank, runs[1],
                               "--block", "0"], capture_output=True, text=True, timeout=60)
        said = [line for line in done.stderr.splitlines() if line.startswith("cctax-rank")]
        if done.returncode != 2 or len(said) != 1 or "rank 2 disagrees with rank 0 on agenda digest" not in said[0]:
            fail(f"disagreement: ended with {done.returncode}: {done.stderr}")

    def growth(self):
        """Many short blocks: memory and descriptors of the front end, and what is left behind, do not grow."""
        run = os.path.join(self.folder, "growth")
        rounds = max(1, self.arguments.blocks // 2)
        suite = os.path.join(self.folder, "growth.json")
        json.dump(dict(SUITE, rounds=rounds, samples=2, cells=[{}]), open(suite, "w"))
        # What AddressSanitizer holds back, and what LeakSanitizer needs at the end, would be taken for growth.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:detect_leaks=0"
        shared = set(os.listdir("/dev/shm"))
        front = self.start(run, suite, "--procs", "1", env=dict(os.environ, ASAN_OPTIONS=asan))

        early, late = [0, 1000], [0, 1000]  # the most KiB and the fewest descriptors, in either half of the blocks
        while front.poll() is None:
            n = len(os.listdir(run)) if os.path.isdir(run) else 0
            half = late if n > rounds + 1 else early
            try:
                memory = next(int(l.split()[1]) for l in open(f"/proc/{front.pid}/status") if l.startswith("VmRSS"))
                half[0] = max(half[0], memory)
                half[1] = min(half[1], len(os.listdir(f"/proc/{front.pid}/fd")) if n > 1 else 1000)
            except (OSError, StopIteration):
                break
            time.sleep(0.02)
        code, said = self.finish(front, run, 60)
        if code:
            fail(f"growth: ended with {code}: {said}")
        if early[1] == 1000 or late[0] > early[0] * 1.2 + 1024 or late[1] > early[1] + 2:
            fail(f"growth: KiB resident, descriptors were {early} and are {late}")
        limit, left = time.monotonic() + 60, set(os.listdir("/dev/shm")) - shared
        while left and time.monotonic() < limit:  # those of others go away with what made them
            time.sleep(0.2)
            left &= set(os.listdir("/dev/shm"))
        if left:
            fail(f"growth: left in shared memory: {left}")
        self.notes.append(f"{2 * rounds} blocks: {early} KiB, descriptors early, {late} late")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cctax")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.kills = arguments.kills or (500 if arguments.long else 51)
    arguments.blocks = arguments.blocks or (10000 if arguments.long else 12)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    with tempfile.TemporaryDirectory(prefix="cctax-faults-") as folder:
        campaign = Campaign(arguments, folder)
        names = [name for name in ("kills", "signals", "stopped", "full", "read_only", "vanished", "clock", "idle", "two",
                                   "foreign", "disagree", "growth")
                 if name in (arguments.only.split(",") if arguments.only else [name])]
        for name in names:
            begin = time.monotonic()
            said = getattr(campaign, name)()
            print(f"{name}: held ({time.monotonic() - begin:.1f} s) {said or ''}", flush=True)
        for note in campaign.notes:
            print(note)
        return 77 if campaign.hidden == len(names) else 0


sys.exit(main())

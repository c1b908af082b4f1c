#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""probe_runs.py CCTAX TWIN NVML: commands that open GPUs, on a machine that has none: beside cctax lies the CUDA backend over
the twin (TWIN), and NVML is a stand-in (NVML, its folder). The doctor tries a twin that can all and one that cannot; probes
find a throttled copy; a stripped arm is stripped. One line a part; exit 1 if one failed."""
import json
import os
import re
import shutil
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/..")
import checks

CCTAX, TWIN, NVML = map(os.path.realpath, sys.argv[1:4])
ROOT = tempfile.mkdtemp(prefix="cctax-probe-")
CHECKS = checks.Checks(most=40)
say = CHECKS.say


def install():
    for folder in ("bin", "lib"):
        os.mkdir(os.path.join(ROOT, folder))
    for name in ("cctax", "cctax-rank"):
        shutil.copy2(os.path.join(os.path.dirname(CCTAX), name), os.path.join(ROOT, "bin", name))
    shutil.copy2(TWIN, os.path.join(ROOT, "lib", "libcctax-cuda.so"))


def cctax(*arguments, costs="", gpus=2, name="NVIDIA H200"):
    return checks.perform(os.path.join(ROOT, "bin", "cctax"), *arguments, timeout=150, TWIN_COSTS=costs, FAKE_CC="0,0",
                          FAKE_DRIVER="580.159.04", TMPDIR=ROOT, FAKE_GPUS=";".join([name] * gpus),
                          LD_LIBRARY_PATH=NVML + ":" + os.environ.get("LD_LIBRARY_PATH", ""))


def tried(costs="", gpus=2):
    """Exit code, {check: rule that speaks}, {fact: value} of what was tried."""
    done = cctax("doctor", "--try", "--json", costs=costs, gpus=gpus)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        say(False, "doctor --try prints a document", f"exit {done.returncode}\n{done.stderr}")
        return done.returncode, {}, {}
    rules = {row["check"]: row["rule"] for row in document["checks"] if row["check"].startswith("try-")}
    facts = {fact["name"]: fact["value"] for fact in document["machine"]["facts"] if fact["name"].startswith("try.")}
    return done.returncode, rules, facts


def doctor():
    wanted = {"pinned": "works", "mapped": "works", "managed": "works", "register": "works", "peer": "works", "ipc": "works",
              "stale": "none", "gdr": "yes"}
    before = set(os.listdir("/tmp"))
    code, rules, facts = tried("gdr=1,copy_gb_s=1")
    say(code in (0, 1) and all(rules.get(f"try-{check}") == f"try-{check}.{case}" for check, case in wanted.items()),
        "a twin that can all is told so", f"exit {code}\n{rules}\n{facts}")
    say(len(facts) == 17 and all(value is not None for value in facts.values()), "every trial is a fact", facts)
    for _ in range(40):  # another doctor may be trying at the same time
        left = [name for name in set(os.listdir("/tmp")) - before if name.startswith("cctax-try-")]
        if not left:
            break
        time.sleep(0.5)
    say(not left, "nothing is left of the run", left)
    wanted = {"pinned": "works", "mapped": "refused", "managed": "refused", "register": "refused", "peer": "none", "ipc": "refused",
              "events": "off", "gdr": "no"}
    code, rules, facts = tried("mapped_error=801,managed_error=801,register_error=801,no_peer=1,ipc_error=217,event_factor=3")
    say(all(rules.get(f"try-{check}") == f"try-{check}.{case}" for check, case in wanted.items()) and "try-stale" not in rules,
        "what it refuses is told, and what could not be tried is not judged", f"exit {code}\n{rules}\n{facts}")
    wanted = {"stale": "gpu", "async": "idle", "overlap": "kernels"}
    for _ in range(4):  # other processes may make one kernel alone as slow as two
        code, rules, facts = tried("stale=1,holds=1,one_at_once=1,copy_gb_s=1", gpus=1)
        if rules.get("try-overlap") == "try-overlap.kernels":
            break
    say(code == 1 and all(rules.get(f"try-{check}") == f"try-{check}.{case}" for check, case in wanted.items()),
        "old values, copies that hold, streams in a row", f"exit {code}\n{rules}\n{facts}")
    say(facts.get("try.ipc_error", 0) is None and "try-peer" not in rules, "one GPU has no peer to be tried", facts)


def values(run):
    """{probe or experiment, memory, bytes: (value, samples)} of the first metric."""
    found = {}
    for cell, rows in checks.shown_cells(cctax("show", run).stdout):
        for _, _, value, samples in rows[:1]:
            found[cell.get("experiment") or cell["probe"], cell.get("memory"), cell.get("bytes")] = value, samples
    return found


def probes():
    for attempt in range(3):
        if throttled(attempt) or attempt == 2:
            break


def throttled(attempt):
    """Whether the rates are the twin's; what does not hang on time is said at the first attempt."""
    tensor = 16 << 20
    suite = {"schema": 1, "question": "Is what is throttled found?", "rounds": 1, "samples": 3, "warmup": 0,
             "defaults": {"workload": "probe", "np": 1},
             "cells": [{"probe": ["load", "save"], "memory": ["pinned", "pageable"], "bytes": [tensor, 3 * tensor]},
                       {"probe": "threads", "memory": "pageable", "bytes": 1 << 20, "calls": 4},
                       {"probe": "experiment", "experiment": ["context", "processes/2/1M", "bare_sync/20", "managed/8M"]}]}
    path, run = os.path.join(ROOT, "suite.json"), os.path.join(ROOT, f"run-{attempt}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(suite, file)
    done = cctax("run", path, "-o", run, "--backend", "cuda", "-q", costs="copy_gb_s=0.5")
    found = values(run)
    rates = {key: 2 * tensor / (found.get((*key, 3 * tensor), (0,))[0] - found.get((*key, tensor), (-1,))[0]) / 1e3
             for key in ((probe, memory) for probe in ("load", "save") for memory in ("pinned", "pageable"))}
    # Two medians of a shared machine: each is slower than the twin, never faster; their difference may be off either way.
    is_near = all(0.25 < rate < 0.75 for rate in rates.values())
    if is_near or attempt == 2:
        say(is_near, f"tensors at 0.5 GB/s: {', '.join(f'{r:.3f}' for r in rates.values())}",
            f"exit {done.returncode}\n{done.stderr}\n{found}")
    if attempt:
        return is_near
    say(found.get(("threads", "pageable", 1 << 20), (0, 0))[0] >= 2097, "copies by four threads take no less than each does",
        found)
    say(found.get(("context", None, None), (0, 0))[1] == 1 and found.get(("bare_sync/20", None, None), (0, 0))[1] == 3,
        "a dear experiment is performed once a block, a cheap one as often as any cell", found)
    say(done.returncode == 1 and "managed/BYTES: 1 byte to 4 MiB" in done.stderr, "much managed memory is refused", done.stderr)
    say(cctax("check", run).returncode == 0, "the run is sound")
    return is_near


def stripped():
    """A stripped arm is without what CC takes from these GPUs, by the profile of their name or the one that is named."""
    flags = "--backend cuda --condition off,stripped --model qwen3-0.6b --workload decode --layouts dp=1 --np 1 --layers 1 " \
            "--input-len 8 --rounds 1 --samples 1 -q".split()
    for name, by, more in (("NVIDIA H200", "h200", []), ("NVIDIA A100", "b200x8-tdx", ["--profile", "b200x8-tdx"])):
        run = os.path.join(ROOT, by)
        done = cctax("run", "-o", run, *flags, *more, name=name)
        shown = cctax("show", run).stdout
        facts = dict(re.findall(r"^condition\s+(\S+)\s+(\S+)", shown, re.M))
        say(done.returncode == 0 and facts.get("stripped_by") == by and facts.get("NCCL_NVLS_ENABLE") == "0" and
            facts.get("NCCL_WORK_FIFO_BYTES") == "0", f"{name}: stripped by {by}", done.stderr + shown)
    for command in (["run", *flags], "tune --backend cuda --np 2 --verify no --condition stripped".split()):
        done = cctax(*command, "-o", os.path.join(ROOT, "none"), name="NVIDIA A100")
        say(done.returncode == 2 and "no shipped profile is of 'NVIDIA A100'" in done.stderr and done.stderr.count("\n") == 1 and
            not os.path.exists(os.path.join(ROOT, "none")), f"{command[0]} strips no GPU that nobody knows", done.stderr)


def refused_peers():
    """Where CUDA IPC is refused, a cell whose caches go between GPUs is refused on every rank, with one line; the next goes on."""
    suite = {"schema": 1, "rounds": 1, "samples": 1, "warmup": 0,
             "defaults": {"model": "qwen3-0.6b", "workload": "serve", "layout": "dp=2", "np": 2, "layers": 1, "check": 1, "input_len": 16,
                          "output_len": 4, "kv_tokens": 512, "disaggregate": "1:1", "arrivals": "zero", "num_prompts": 4},
             "cells": [{"kv_route": ["p2p", "host"]}]}
    path = os.path.join(ROOT, "peers.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(suite, file)
    for cost, does in (("ipc_error", "map"), ("share_error", "share")):
        run = os.path.join(ROOT, cost)
        done = cctax("run", path, "-o", run, "--backend", "cuda", "--deadline", "20", "-q", costs=cost + "=801")
        lines = [line for line in done.stderr.splitlines() if "CUDA IPC" in line]
        shown = cctax("show", run).stdout
        say(done.returncode == 0 and len(lines) == 1 and "(error 801)" in lines[0] and f"may not {does} 'kv_left'" in lines[0] and
            "copy through the host" in lines[0], f"801 when ranks {does} memory: one line", f"exit {done.returncode}\n{done.stderr}")
        states = re.findall(r"\b(done|refused|failed|open)\b", shown)
        say(states.count("refused") == 1 and "failed" not in states and "open" not in states, "one cell is refused, the other done",
            f"{states}\n{shown}")


install()
try:
    doctor()
    probes()
    stripped()
    refused_peers()
finally:
    shutil.rmtree(ROOT)
CHECKS.end()

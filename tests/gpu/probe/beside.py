#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The probe's figures beside others'.

beside.py measure CCTAX OUT NP NVBANDWIDTH [SECONDS]
    Alternates runs of cctax and of nvbandwidth ("-": without it) on the same sizes for SECONDS (240) or PAIRS pairs. Copies and
    messages are held to within 2 % of nvbandwidth, launches and synchronisations to within 5 % of bare loops in the same
    process, by the median of the pairs' ratios (an idle stream is asked by a query, as SYNC does, so that a lost rank can end the
    wait; cudaStreamSynchronize of it is told beside). Both copy on end: nvbandwidth 16 times behind a kernel that spins, between
    two events, in memory of cuMemHostAlloc on the GPU's NUMA node; cctax 16 times, closed by one synchronisation, by the host's
    clock (between GPUs by the GPU's, behind a kernel that spins). Host copies both ways at once are told, not judged:
    nvbandwidth lets one way run twice as long as the other.
beside.py profile VALUES.json PROFILE.json
    What `cctax profile --json` fitted, beside a shipped profile's clear column."""
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../..")
import checks

MIB, PAIRS, CALLS, SIZES = 1 << 20, 5, 16, (64, 256, 1024)
COPY_BAR, CALL_BAR = 0.02, 0.05
LAUNCHES, ROUNDS, TIMEOUT, BACKEND = 500, 3, 120, "cuda"

# nvbandwidth's test, and the probe or the kind and ways of p2p_copy
HOST = [("host_to_device_memcpy_ce", {"probe": "h2d"}), ("device_to_host_memcpy_ce", {"probe": "d2h"}),
        ("device_local_copy", {"probe": "d2d"})]
TOLD = [("host_to_device_bidirectional_memcpy_ce", {"probe": "both"})]
PEER = [("device_to_device_memcpy_read_ce", "0/1"), ("device_to_device_memcpy_read_sm", "1/1"),
        ("device_to_device_memcpy_write_ce", "2/1"), ("device_to_device_memcpy_write_sm", "3/1"),
        ("device_to_device_bidirectional_memcpy_read_ce", "0/2"), ("device_to_device_bidirectional_memcpy_read_sm", "1/2"),
        ("device_to_device_bidirectional_memcpy_write_ce", "2/2"), ("device_to_device_bidirectional_memcpy_write_sm", "3/2")]
# probe, bare loop, its metric, its bar, what it is
LOOPS = [({"probe": "submission", "calls": LAUNCHES}, f"bare_launch/{LAUNCHES}", "with_sync", CALL_BAR, "an empty kernel"),
         ({"probe": "sync", "calls": LAUNCHES}, f"bare_sync/{LAUNCHES}", "behind", CALL_BAR, "a kernel and a synchronisation"),
         ({"probe": "bare-sync", "calls": LAUNCHES}, f"bare_sync/{LAUNCHES}", "query", CALL_BAR, "a query of an idle stream"),
         ({"probe": "bare-sync", "calls": LAUNCHES}, f"bare_sync/{LAUNCHES}", "idle", None, "beside cudaStreamSynchronize of it")]


def suites(np):
    """Calls in many short processes, for their times differ from one to the next; copies in one."""
    calls = [{"probe": name, "calls": LAUNCHES} for name in sorted({loop[0]["probe"] for loop in LOOPS})]
    calls += [{"probe": "experiment", "experiment": e} for e in sorted({loop[1] for loop in LOOPS})]
    cells = [{"probe": "h2d", "calls": CALLS, "bytes": [s * MIB for s in SIZES]},
              {"probe": "d2h", "calls": CALLS, "bytes": [s * MIB for s in SIZES]},
              {"probe": "d2d", "calls": CALLS, "bytes": [s * MIB for s in SIZES]},
              {"probe": "both", "bytes": [s * MIB for s in SIZES]}]
    if np > 1:
        cells += [{"probe": "experiment", "experiment": f"p2p_copy/{s * MIB}/{kind}", "np": 2} for s in SIZES for _, kind in PEER]
    return {name: {"schema": 1, "question": f"What do {name} take beside others' loops?", "rounds": rounds, "samples": 5, "warmup": 2,
                   "defaults": {"workload": "probe", "np": 1}, "cells": cells}
            for name, rounds, cells in (("calls", ROUNDS, calls), ("copies", 1, cells))}


def perform(command):
    try:
        done = checks.perform(*command, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, -1, "", f"not done after {TIMEOUT} s")
    if done.returncode not in (0, 1):
        print(f"trouble: {' '.join(command[:2])}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done


def run_cctax(cctax, out, number):
    """{(probe or experiment, bytes, metric): value}"""
    shown = ""
    for name in ("calls", "copies"):
        folder = os.path.join(out, f"run-{number}-{name}")
        perform([cctax, "run", os.path.join(out, f"{name}.json"), "-o", folder, "--backend", BACKEND, "-q"])
        shown += perform([cctax, "show", folder]).stdout
    return {(cell.get("experiment") or cell["probe"], cell.get("bytes", 0), metric): median
            for cell, rows in checks.shown_cells(shown) for _, metric, median, _ in rows}


def run_nvbandwidth(program, mib, np):
    """{test: GB/s} of the first GPU, or from the first to the second."""
    tests = [name for name, _ in HOST + TOLD] + ([name for name, _ in PEER] if np > 1 else [])
    done = perform([program, "-j", "-b", str(mib), "-i", "3", "-t", *tests])
    at = done.stdout.find("{")
    try:
        document = json.loads(done.stdout[at:])["nvbandwidth"]
    except (ValueError, KeyError):
        print(f"trouble: nvbandwidth exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
        return {}
    values = {}
    for case in document.get("testcases", []):
        rows = case.get("bandwidth_matrix")
        if case.get("status") != "Passed" or not rows:
            print(f"trouble: nvbandwidth {case.get('name')}: {case.get('status')} {case.get('error', '')}")
            continue
        n = len(rows[0])
        first = rows[-n:][0] if case["name"].startswith("device_to_device") else rows[0] # a total stands last
        values[case["name"]] = float(first[1] if case["name"].startswith("device_to_device") else first[0])
    return values


def verdict(name, ratios, ours, theirs, unit, bar):
    if not ratios:
        return bar is None, f"not measured {name}"
    middle = statistics.median(ratios)
    held = bar is None or abs(middle - 1) <= bar
    word = "told  " if bar is None else "held  " if held else "FAILED"
    limit = "" if bar is None else f", to be within {100 * bar:.0f} %"
    return held, (f"{word} {name:58s} {statistics.median(ours):10.3f} {statistics.median(theirs):10.3f} {unit:5s} ratio {middle:.4f} "
                  f"[{min(ratios):.4f}, {max(ratios):.4f}] of {len(ratios)} pairs{limit}")


def measure(cctax, out, np, nvbandwidth, seconds=240):
    os.makedirs(out, exist_ok=True)
    for name, suite in suites(np).items():
        with open(os.path.join(out, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(suite, file)
    start, longest, pairs = time.time(), 0, []
    while len(pairs) < PAIRS and time.time() - start + longest < seconds:
        began = time.time()
        ours, theirs = {}, {}
        for tool in (0, 1) if len(pairs) % 2 == 0 else (1, 0):
            if tool == 0:
                ours = run_cctax(cctax, out, len(pairs))
            elif nvbandwidth != "-":
                theirs = {(name, mib): v for mib in SIZES for name, v in run_nvbandwidth(nvbandwidth, mib, np).items()}
        pairs.append((ours, theirs))
        longest = max(longest, time.time() - began)
        print(f"pair {len(pairs)} of {PAIRS}: {time.time() - began:.1f} s")
    with open(os.path.join(out, "pairs.json"), "w", encoding="utf-8") as file:
        json.dump([[{"/".join(map(str, key)): v for key, v in tool.items()} for tool in pair] for pair in pairs], file, indent=1)
    results = []
    for probe, loop, metric, bar, what in LOOPS:
        both = [(p[probe["probe"], 0, "step"] / LAUNCHES, p[loop, 0, metric] / 1e3) for p, _ in pairs
                if (probe["probe"], 0, "step") in p and (loop, 0, metric) in p]
        results.append(verdict(f"{what}: probe {probe['probe']}, bare loop", [a / b for a, b in both], [a for a, _ in both],
                               [b for _, b in both], "us", bar))
    if nvbandwidth != "-":
        for mib in SIZES:
            rows = [(name, (cell["probe"], mib * MIB, "step"), (CALLS if name in dict(HOST) else 1) * mib * MIB, COPY_BAR if name in
                     dict(HOST) else None) for name, cell in HOST + TOLD]
            rows += [(name, (f"p2p_copy/{mib * MIB}/{kind}", 0, "rate"), 0, COPY_BAR) for name, kind in PEER] if np > 1 else []
            for name, key, moved, bar in rows:
                both = [((moved / p[key] / 1e3 if moved else p[key]), q[name, mib]) for p, q in pairs if key in p and (name, mib) in q]
                results.append(verdict(f"{name} {mib} MiB", [a / b for a, b in both], [a for a, _ in both], [b for _, b in both], "GB/s",
                                       bar))
    print("cctax, the other (medians), and the pairs' ratios:")
    for _, text in results:
        print(text)
    return 0 if all(held for held, _ in results) else 1


def profile(values, shipped):
    with open(values, encoding="utf-8") as file:
        rows = json.load(file)["values"]
    with open(shipped, encoding="utf-8") as file:
        clear = json.load(file)["clear"]
    print(f"what this machine's probe fitted beside {os.path.basename(shipped)}:")
    for row in rows:
        at, keys = clear, row["path"].split(".")[1:]
        for key in keys:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict) and "value" in at and row["value"] is not None:
            ratio = f"{row['value'] / at['value']:.3f}" if at["value"] else "-"
            print(f"{row['path']:42s} {row['value']:12.5g} shipped {at['value']:12.5g} ({at['kind']}) ratio {ratio} {row['state']}"
                  f", repeats within {row['spread_pct']:.1f} %")
    return 0


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["help"]
    if command == "measure" and len(rest) in (4, 5):
        sys.exit(measure(rest[0], rest[1], int(rest[2]), rest[3], *map(float, rest[4:])))
    if command == "profile" and len(rest) == 2:
        sys.exit(profile(*rest))
    print(__doc__)
    sys.exit(2)

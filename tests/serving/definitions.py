#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every figure of a serving run is what vllm bench serve (vllm/benchmarks/serve.py, calculate_metrics) makes of the same requests:
from the rows of each request of a trace, whose lengths are known, and from times that the second implementation of the law
(serving_law.py) gives them, told when each step began and ended.

definitions.py CCTAX"""
import json
import os
import random
import sys
import tempfile

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checks  # noqa: E402
import serving_law  # noqa: E402

CCTAX = os.path.abspath(sys.argv[1])
judged = checks.Checks()
LIMITS = {"ttft": 60, "tpot": 3, "e2e": 150}  # ms
CELLS = {
    "closed": {"concurrency": 8},
    "at once": {"arrivals": "zero"},
    "by the second": {"arrivals": "seconds"},
    "overlapped": {"concurrency": 16, "overlap": "on", "host_us": 1500},
    "overlapped, a worker reads": {"arrivals": "seconds", "overlap": "on", "readback": "worker", "host_us": 1500},
    "prompts in chunks": {"concurrency": 16, "max_batched_tokens": 128},
    "prompts whole": {"concurrency": 16, "chunked_prefill": "off", "max_batched_tokens": 1024},
    "drafts": {"concurrency": 8, "speculate": 4, "acceptance": 0.8},
    "drafts, overlapped": {"arrivals": "seconds", "speculate": 3, "acceptance": 0.7, "overlap": "on"},
    "caches that go to the host": {"concurrency": 24, "kv_tokens": 2048, "preempt": "offload", "overlap": "on"},
    "caches that are lost": {"concurrency": 24, "kv_tokens": 2048},
    "replicas": {"layout": "dp=2", "concurrency": 10},
    "apart": {"layout": "dp=4", "concurrency": 16, "disaggregate": "2:2"},
    "apart, by the host": {"layout": "dp=3", "arrivals": "seconds", "disaggregate": "1:2", "kv_route": "host", "overlap": "on"},
}
COUNTED = ("ttft", "tpot", "e2e", "itl")


def draw_trace(n):
    rng, at, rows = random.Random(5), 0, []
    for _ in range(n):
        at += rng.expovariate(40)
        rows.append((int(at * 1e6) * 1000, rng.randint(20, 900), rng.choice([1, 1, 2, 3, 17, 40, 64, 100])))
    return rows


def near(a, b, relative=1e-9):
    return np.allclose(a, b, rtol=relative, atol=0)


def values(rows, metric):
    return np.repeat(rows[metric]["value"], rows[metric]["n"] if metric == "itl" else 1)


def of_requests(rows, metric, n):
    out = np.zeros(n)
    out[rows[metric]["index"]] = rows[metric]["value"]
    return out


def defined_as_vllm_does(name, rows, trace, cell):
    n, inputs, outputs = len(trace), np.array([r[1] for r in trace]), np.array([r[2] for r in trace])
    ttft, e2e, tpot = (of_requests(rows, metric, n) for metric in ("ttft", "e2e", "tpot"))
    arrival = of_requests({"at": {"index": rows["ttft"]["index"], "value": rows["ttft"]["start_ns"] - rows["request_s"]["start_ns"]}},
                          "at", n)
    seconds = (arrival + e2e * 1e6).max() / 1e9
    judged.say(sorted(rows["ttft"]["index"]) == list(range(n)) and set(rows["tpot"]["index"]) == set(np.flatnonzero(outputs > 1)),
               f"{name}: every request once, TPOT of those with two tokens and more")
    judged.say(near(tpot, np.where(outputs > 1, (e2e - ttft) / np.maximum(outputs - 1, 1), 0)), f"{name}: TPOT is (E2E - TTFT) / (n - 1)")
    itl = rows["itl"]["n"].sum()
    judged.say(near(values(rows, "itl").sum(), (e2e - ttft).sum()) and
               (itl < (outputs - 1).sum() if "speculate" in cell else itl == (outputs - 1).sum()), f"{name}: ITL fills E2E - TTFT")
    good = ((ttft <= LIMITS["ttft"]) & (tpot <= LIMITS["tpot"]) & (e2e <= LIMITS["e2e"])).sum()
    for metric, total in (("output_tok_s", outputs.sum()), ("total_tok_s", (inputs + outputs).sum()), ("request_s", n), ("goodput", good)):
        judged.say(near(rows[metric]["value"], total / seconds, 1e-6), f"{name}: {metric}", f"{rows[metric]['value']} {total / seconds}")
    if cell.get("arrivals") == "seconds":
        judged.say(np.abs(arrival - [r[0] for r in trace]).max() <= 1, f"{name}: requests come when the trace says")


def told_as_numpy_does(name, blocks, reported, shown):
    """blocks: of one arm; reported: {metric: the arm's value}; shown: {metric: its row}."""
    for metric in COUNTED:
        for suffix, percent in (("", 50), ("_p99", 99)):
            wanted = np.exp(np.mean([np.log(np.percentile(values(rows, metric), percent)) for rows in blocks]))
            judged.say(near(reported[metric + suffix], wanted), f"{name}: report's {metric}{suffix}", f"{reported[metric + suffix]} {wanted}")
        pooled, row = np.concatenate([values(rows, metric) for rows in blocks]), shown[metric]
        judged.say(near([row["median"], row["mean"], row["p99"]], [np.median(pooled), pooled.mean(), np.percentile(pooled, 99)]),
                   f"{name}: show's {metric}", str(row))


def times_follow_from_steps(name, rows, trace, cell):
    """Of one replica whose steps' ends are recorded: tokens are known at the end of their step, or, overlapped, of the next."""
    lag, start = int(cell.get("overlap") == "on"), rows["request_s"]["start_ns"][0]
    replica = serving_law.Replica({
        "arrivals": cell.get("arrivals", "closed"), "concurrency": cell.get("concurrency", 0), "tokens": cell.get("max_batched_tokens", 8192),
        "sequences": 256, "blocks": cell.get("kv_tokens", 1 << 24) // 16, "chunked": cell.get("chunked_prefill") != "off",
        "offload": cell.get("preempt") == "offload", "lag": lag, "drafts": cell.get("speculate", 0),
        "acceptance": cell.get("acceptance", 0), "seed": 1, "requests": trace, "replicas": 1}, 0)
    ends = {row["index"]: row["start_ns"] + row["value"] * 1e3 - start for row in rows["step"]}
    steps, first, last, wrong = rows["form"]["index"], {}, {}, 0
    for s, row in enumerate(rows["tokens"]):
        replica.enter(s, s, row["start_ns"] - start)
        batch = replica.step()
        wrong += sum(m[2] for m in batch["members"]) != row["value"] or batch["blocks"] != rows["kv"]["value"][s]
        known = ends.get(steps[min(s + lag, len(steps) - 1)])  # an empty step's end is in no row
        for number, _, _, emitted in batch["members"]:
            if emitted:
                first.setdefault(number, known)
                last[number] = known
    checked = 0
    for metric, known in (("ttft", first), ("e2e", last)):
        for row in rows[metric]:
            end = known[row["index"]]
            checked += end is not None
            wrong += end is not None and abs(end - (row["start_ns"] - start) - row["value"] * 1e6) > 1.5
    judged.say(not wrong and checked > len(trace), f"{name}: {checked} times of requests follow from {len(steps)} steps", f"{wrong} do not")


def main():
    trace = draw_trace(60)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/trace.csv", "w", encoding="utf-8") as file:
            file.write("arrival,input,output\n" + "".join(f"{at / 1e9:.6f},{i},{o}\n" for at, i, o in trace))
        cells = [{"layout": "tp=1", "arrivals": "closed", "np": int(cell.get("layout", "=1")[-1])} | cell for cell in CELLS.values()]
        suite = {"schema": 1, "question": "?", "rounds": 2, "arms": {"factor": "condition", "values": ["off", "emulated:b200x8-tdx"]},
                 "defaults": {"model": "qwen3-8b", "layers": 8, "workload": "serve", "trace": "trace.csv",
                              "slo": ",".join(f"{key}={value}ms" for key, value in LIMITS.items())}, "cells": cells}
        with open(f"{folder}/suite.json", "w", encoding="utf-8") as file:
            json.dump(suite, file)
        checks.printed(CCTAX, "run", "suite.json", "--backend", "sim", "-q", "-o", "run", cwd=folder)
        report = json.loads(checks.printed(CCTAX, "report", "run", "--json", cwd=folder))["cells"]
        show = json.loads(checks.printed(CCTAX, "show", "run", "--json", cwd=folder))["cells"]
        blocks = {}
        for path in sorted(os.listdir(f"{folder}/run")):
            if path.endswith(".h5"):
                with h5py.File(f"{folder}/run/{path}") as file:
                    arm = file.attrs["arm"].decode()
                    blocks.setdefault(arm, []).append([{metric: cell[metric][:] for metric in cell.attrs["metrics"].decode().split(",")}
                                                       for _, cell in sorted(file["cells"].items())])
    reported = {}  # by cell, in the order of the suite
    for row in report:
        reported.setdefault(json.dumps([row["layout"], row["parameters"]]), []).append(row)
    for k, ((name, cell), own) in enumerate(zip(CELLS.items(), reported.values())):
        for arm in blocks:
            for rows in blocks[arm]:
                defined_as_vllm_does(name, rows[k], trace, cell)
                if cells[k]["layout"] == "tp=1" and cell.get("readback") != "worker":
                    times_follow_from_steps(name, rows[k], trace, cell)
            told = {row["metric"]: row["baseline_median" if arm == row["baseline"] else "median"] for row in own}
            shown = next(a for a in show[k]["arms"] if a["arm"] == arm)["metrics"]
            told_as_numpy_does(f"{name}, {arm}", [rows[k] for rows in blocks[arm]], told, {row["metric"]: row for row in shown})
    judged.end()


main()

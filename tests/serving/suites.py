#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suites.py CCTAX SOURCE: every serving suite of examples/ runs in sim, opens with a question, and says what its table says: which
setting costs, which does not, and in what order. In full, but for a suite whose requests repeat."""
import glob
import json
import os
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
import checks

CCTAX, SOURCE = sys.argv[1:3]
SHORTER = {"serve-load": ["--num-prompts", "100"]}  # of 400, in 17 cells
wrong = []


def added(cells, metric, key):
    """{value of `key`: per cent of time added, by `metric`}"""
    return {c["parameters"].get(key): c["time_overhead_pct"] for c in cells if c["metric"] == metric}


def ask(name, is_so, what):
    if not is_so:
        wrong.append(f"{name}: {what}")


def judge(name, cells):
    """What the published tables say in kind; their figures are held in docs/serving.md."""
    if name == "paper-overlap-on":
        by = added(cells, "output_tok_s", "concurrency")
        ask(name, all(40 < v < 100 for v in by.values()), f"synchronous read-back costs 40 to 100 %: {by}")
    if name == "paper-async-readback":
        by = added(cells, "tpot", "readback")
        ask(name, by["sync"] > 40 and by["worker"] < 3, f"the worker hides it: {by}")
    if name in ("paper-overlap-off", "paper-full-graphs"):
        by = added(cells, "output_tok_s", "concurrency")
        ask(name, all(0 < v < 6.5 for v in by.values()), f"graphs without a late read-back cost little: {by}")
    if name == "paper-tp8-lengths":
        by = {(c["parameters"]["input_len"], c["parameters"]["output_len"]): c["time_overhead_pct"]
              for c in cells if c["metric"] == "output_tok_s"}
        ask(name, by[1024, 256] > by[1024, 512] > by[1024, 1024], f"the shorter the answer, the dearer: {by}")
    if name == "paper-tp8-concurrency":
        by = added(cells, "output_tok_s", "concurrency")
        ask(name, by[128] > by[16] > by[8] and max(by.values()) < 8, f"more requests, more prompts beside them: {by}")
    if name == "serve-graphs":
        by = added(cells, "step", "graph")
        ask(name, by["none"] > by["piecewise"] > by["full"] > 0, f"the more graphs hold, the cheaper: {by}")
    if name == "serve-cache":
        by = added(cells, "output_tok_s", "preempt")
        ask(name, by["offload"] > by["recompute"], f"copies of caches are dearer under CC: {by}")
    if name == "serve-disaggregated":
        by = added(cells, "kv_transfer", "kv_route")
        ask(name, by["host"] > by["p2p"] > 0, f"caches through the host pay more than over NVLink: {by}")
        by = added(cells, "output_tok_s", "kv_route")
        ask(name, by["host"] > by[None] > 0 and by["host"] > by["p2p"] > 0, f"and requests with them: {by}")
    if name == "serve-load":
        ask(name, any(c["metric"] == "goodput" for c in cells), "goodput is reported")


def small_steps_turn_experts_around():
    """Where a step reads so few tokens that its submissions are the longer part, what prompts pay decides by layout."""
    name = "paper-expert-layouts"
    with tempfile.TemporaryDirectory() as folder:
        cells = checks.reported(CCTAX, f"{folder}/run", f"{SOURCE}/examples/{name}.json", "--backend", "sim", "--rounds", "1",
                                "--max-batched-tokens", "1024")["cells"]
    by = [c["time_overhead_pct"] for c in cells if c["metric"] == "output_tok_s"]  # 4k, 32k of each
    ask(name, by[0] < by[1] and by[2] > by[3], f"TP grows and EP shrinks with prompts read 1024 tokens a step: {by}")


def main():
    paths = [p for p in sorted(glob.glob(f"{SOURCE}/examples/serve-*.json") + glob.glob(f"{SOURCE}/examples/paper-*.json"))
             if '"serve"' in open(p, encoding="utf-8").read()]
    n = 0
    for path in paths:
        name = os.path.basename(path)[:-5]
        with open(path, encoding="utf-8") as file:
            suite = json.load(file)
        ask(name, "?" in suite.get("question", ""), "it opens with no question")
        with tempfile.TemporaryDirectory() as folder:
            try:
                cells = checks.reported(CCTAX, f"{folder}/run", path, "--backend", "sim", "--rounds", "1", *SHORTER.get(name, []))["cells"]
            except SystemExit as trouble:
                wrong.append(f"{name}: {trouble}")
                continue
        ask(name, {"output_tok_s", "ttft", "ttft_p99", "tpot", "itl", "itl_p99", "e2e", "step"} <= {c["metric"] for c in cells},
            "a metric is missing")
        ask(name, all(c["verdict"] != "refused" for c in cells), "a comparison is refused")
        judge(name, cells)
        n += len(cells)
    small_steps_turn_experts_around()
    print("\n".join(wrong) or f"{len(paths)} suites, {n} comparisons")
    sys.exit(bool(wrong) or len(paths) < 10)


main()

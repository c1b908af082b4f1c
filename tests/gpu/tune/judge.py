#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py OUT: is the gain of `cctax tune` the gain of unchanged programs? Reads what run.sh left in OUT.
judge.py OUT sizes COLLECTIVE: prints the sizes to ask of it, the least and the greatest: those with a rule and one
beside each end, and up to 256 MiB where channels were chosen.

A ratio is tuned / plain of one pair of processes. Of each program and collective: the geometric mean of the medians over sizes,
beside the same sizes in the tune's own verification; both have to agree within +-2 %, and no size may have all of its pairs
above +2 %."""
import collections
import glob
import json
import math
import os
import re
import statistics
import sys

AGREE, SLOWER = 0.02, 1.02


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def sizes_of(path, document):
    if path.endswith("torch"):
        return {int(size): us for size, us in document["us"].items()}
    return {row["size"]: row["out_of_place"]["time"] for row in document["results"] if row["out_of_place"]}


def read(folder):
    times = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        what, arm, pair = re.fullmatch(r"(\w+)-(plain|tuned)-(\d+)\.json", os.path.basename(path)).groups()
        with open(path, encoding="utf-8") as file:
            for size, us in sizes_of(folder, json.load(file)).items():
                times[what][size].setdefault(int(pair), {})[arm] = us
    return times


def read_tune(out):
    with open(os.path.join(out, "run", "tune.json"), encoding="utf-8") as file:
        return json.load(file)


def sizes_with_rules(out, collective):
    tune = read_tune(out)
    sizes = [c["bytes"] for c in tune["cells"]
             if c["collective"] == collective and (c["held"] or not c["choice"].startswith("default/"))] or [1 << 20, 64 << 20]
    most = max(2 * max(sizes), 256 << 20 if tune["channels"] else 0)
    print(max(min(sizes) // 2, 1024), min(most, 1 << 30))
    return 0


def main(out):
    tune = read_tune(out)
    verified = {(c["collective"], c["bytes"]): c for c in tune["cells"]}
    held = True
    verdict = tune.get("verification")
    if verdict:
        held &= verdict["held"]
        print(f"cctax tune: ratio {verdict['ratio']:.4f}, the grid's {verdict['grid_ratio']:.4f}, "
              f"with these channels {verdict['allowed_ratio']:.4f}, "
              f"{verdict['slower_at_first']} cells slower at first, {verdict['slower']} after one more measurement")
    else:
        print("cctax tune: not verified yet")
    for program in ("nccl-tests", "torch"):
        for what, sizes in read(os.path.join(out, program)).items():
            medians, beside, slower = [], [], []
            for size, pairs in sorted(sizes.items()):
                ratios = [p["tuned"] / p["plain"] for p in pairs.values() if len(p) == 2]
                own = (verified.get((what, size)) or {}).get("verified")
                if not ratios:
                    continue
                if min(ratios) > SLOWER:
                    slower.append(size)
                text = f"{own['median']:.4f} by tune" if own else ""
                print(f"{program:10s} {what:14s} {size:11d}  {statistics.median(ratios):.4f} "
                      f"[{min(ratios):.4f}, {max(ratios):.4f}] of {len(ratios)}  {text}")
                if own:
                    medians.append(statistics.median(ratios))
                    beside.append(own["median"])
            agree = bool(medians) and abs(math.log(mean(medians) / mean(beside))) <= AGREE
            held &= agree and not slower
            print(f"{'held  ' if agree and not slower else 'FAILED'} {program} {what}: geometric mean {mean(medians):.4f}, "
                  f"by tune {mean(beside):.4f} over {len(medians)} sizes; slower: {slower or 'none'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(sizes_with_rules(sys.argv[1], sys.argv[3]) if len(sys.argv) > 3 else main(sys.argv[1]))

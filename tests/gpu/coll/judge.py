#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py FOLDER... [--missed]: do cctax coll and nccl-tests agree? Reads what run.sh left in one or several folders.

A cell is one collective, mode and size; each pair of processes gives one ratio of times, cctax / nccl-tests, out of place.
Its interval is between two of the ordered ratios, which holds the median whatever their distribution: the 2nd and 8th of 9 in
96 %. At 1 MiB and above at most 2 of 88 cells may have an interval that is not inside +-3 % (a cell measured again counts by
its second interval), and the geometric mean of the cells' medians has to be inside +-1 %; below, inside +-3 %. --missed prints,
for each collective and mode with cells whose first interval is not inside, the smallest such size, for run.sh to measure again
from there on."""
import collections
import glob
import json
import math
import os
import re
import statistics
import sys

LIMIT, MEAN_LARGE, MEAN_SMALL, MOST_MISSED, LARGE, LAUNCH_BOUND = 0.03, 0.01, 0.03, 2, 1 << 20, 256 << 10
LEAST_COVERAGE = 0.93


def coverage(n, k):
    """Chance that the median lies between the k-th smallest and the k-th largest of n."""
    return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2 ** n


def rank_of(n):
    """The largest k whose interval still covers enough; 0: too few."""
    return max((k for k in range(1, n // 2 + 1) if coverage(n, k) >= LEAST_COVERAGE), default=0)


def read(folders, part):
    """{(collective, mode, bytes): {pair: {tool: us}}}, and what must be the same everywhere or is wrong."""
    cells, facts, troubles = collections.defaultdict(lambda: collections.defaultdict(dict)), collections.defaultdict(set), []
    for number, folder in enumerate(folders):
        for path in sorted(glob.glob(os.path.join(folder, part, "*.json"))):
            name = re.fullmatch(r"(\w+)-(eager|graph)-(\d+)-(cctax|nccl-tests)\.json", os.path.basename(path))
            try:
                with open(path, encoding="utf-8") as file:
                    document = json.load(file)
            except ValueError as error:
                troubles.append(f"{path}: {error}")
                continue
            collective, mode, pair, tool = name.groups()
            facts["NCCL"].add(document["nccl_version"])
            facts[f"graph of {mode}"].add(document["config"]["graph"])
            facts[f"iterations of {mode}"].add(document["config"]["iterations"])
            if document["out_of_bounds"]["count"]:
                troubles.append(f"{path}: wrong elements")
            for row in document["results"]:
                value = row["out_of_place"]
                if not value:
                    troubles.append(f"{path}: {row['size']} B: {row.get('reason')}")
                    continue
                cells[collective, mode, row["size"]][number, int(pair)][tool] = value["time"]
                should = mode == "eager" and row["size"] < LAUNCH_BOUND
                if tool == "cctax" and (row["verdict"] == "launch-bound") != should:
                    troubles.append(f"{path}: {row['size']} B: verdict {row['verdict']}")
    troubles += [f"{name} differs: {sorted(map(str, values))}" for name, values in facts.items() if len(values) > 1]
    return cells, facts, troubles


class Cell:
    def __init__(self, pairs):
        self.ratios = sorted(p["cctax"] / p["nccl-tests"] for p in pairs.values() if len(p) == 2)
        self.n, self.k = len(self.ratios), rank_of(len(self.ratios))
        self.times = [statistics.median(p[tool] for p in pairs.values() if len(p) == 2) if self.n else math.nan
                      for tool in ("cctax", "nccl-tests")]

    @property
    def median(self):
        return statistics.median(self.ratios)

    @property
    def interval(self):
        return (self.ratios[self.k - 1], self.ratios[-self.k]) if self.k else (-math.inf, math.inf)

    @property
    def is_inside(self):
        return 1 - LIMIT <= self.interval[0] and self.interval[1] <= 1 + LIMIT

    def text(self):
        low, high = self.interval
        return (f"{self.times[0]:10.2f} {self.times[1]:10.2f} {self.median:8.4f}  [{low:.4f}, {high:.4f}]  {self.n:2d} pairs"
                if self.k else f"{self.times[0]:10.2f} {self.times[1]:10.2f} {self.median:8.4f}  no interval of {self.n} pairs")


def mean(cells):
    return math.exp(statistics.fmean(math.log(cell.median) for cell in cells)) if cells else math.nan


def main(arguments):
    only_missed = "--missed" in arguments
    folders = [a for a in arguments if a != "--missed"]
    first, facts, troubles = read(folders, "cells")
    again, _, more = read(folders, "again")
    first = {key: cell for key, cell in ((key, Cell(pairs)) for key, pairs in first.items()) if cell.n}
    again = {key: cell for key, cell in ((key, Cell(pairs)) for key, pairs in again.items()) if cell.n}
    missed = [key for key, cell in sorted(first.items()) if key[2] >= LARGE and not cell.is_inside]
    if only_missed:
        least = {}
        for collective, mode, size in missed:
            least[collective, mode] = min(size, least.get((collective, mode), size))
        for (collective, mode), size in least.items():
            print(collective, mode, size)
        return 0
    print(f"NCCL {', '.join(map(str, facts['NCCL']))}; us of cctax and nccl-tests (medians), ratio, interval")
    for (collective, mode, size), cell in sorted(first.items()):
        print(f"{collective:14s} {mode:5s} {size:11d}  {cell.text()}{'' if size < LARGE or cell.is_inside else '  MISSED'}")
        if (collective, mode, size) in missed and (collective, mode, size) in again:
            cell = again[collective, mode, size]
            print(f"{'':14s} again {size:11d}  {cell.text()}{'' if cell.is_inside else '  MISSED'}")
    still = [key for key in missed if not (key in again and again[key].is_inside)]
    large = [cell for key, cell in first.items() if key[2] >= LARGE]
    small = [cell for key, cell in first.items() if key[2] < LARGE]
    least = min((cell.n for cell in first.values()), default=0)
    k = rank_of(least)
    held = [
        (f"intervals: {100 * coverage(least, k):.1f} %, ordered ratio {k} to {least - k + 1} of {least}" if k else
         f"intervals: none, {least} pairs are too few", k > 0),
        (f"1 MiB and above: {len(missed)} of {len(large)} cells not inside +-{100 * LIMIT:.0f} % at first, {len(still)} after "
         f"one more measurement; at most {MOST_MISSED}", len(large) > 0 and len(still) <= MOST_MISSED),
        (f"1 MiB and above: geometric mean {mean(large):.4f}, to be inside +-{100 * MEAN_LARGE:.0f} %",
         abs(mean(large) - 1) <= MEAN_LARGE),
        (f"below 1 MiB: geometric mean {mean(small):.4f} of {len(small)} cells, to be inside +-{100 * MEAN_SMALL:.0f} %",
         abs(mean(small) - 1) <= MEAN_SMALL),
        (f"{len(troubles) + len(more)} other troubles", not troubles + more),
    ]
    for mode in ("eager", "graph"):
        for name in sorted({key[0] for key in first}):
            part = [[cell for key, cell in first.items() if key[:2] == (name, mode) and (key[2] >= LARGE) == is_large]
                    for is_large in (False, True)]
            print(f"geometric means of {name} {mode}: {mean(part[0]):.4f} below 1 MiB, {mean(part[1]):.4f} from there")
    for trouble in (troubles + more)[:20]:
        print(f"trouble: {trouble}")
    for text, is_held in held:
        print(f"{'held  ' if is_held else 'FAILED'} {text}")
    return 0 if all(is_held for _, is_held in held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

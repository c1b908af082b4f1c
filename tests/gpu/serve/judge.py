#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py CCTAX OUT WHAT [SHARED]: what run.sh's runs in OUT say. WHAT: layers (prints a number), readback, overlap, graph,
schedule, apart, routes (SHARED 1: on one GPU, where times are shown and not judged). A figure passes when the whole of its 95 %
interval lies within what is expected."""
import json
import re
import sys

sys.path.append(sys.path[0] + "/../..")
import checks

CCTAX, OUT, WHAT = sys.argv[1:4]
CHECKS = checks.Checks("PASS", "FAIL")
say = CHECKS.say


def report(name):
    done = checks.perform(CCTAX, "report", f"{OUT}/{name}", "--json")
    if not done.stdout:
        print(f"FAIL {name}: report: {done.stderr.strip()[:300]}")
        sys.exit(1)
    return json.loads(done.stdout)["cells"]


def shown(name):
    return checks.printed(CCTAX, "show", f"{OUT}/{name}")


def medians(name, metric):
    """Of each cell in order: {arm: median}."""
    return [{arm: median for arm, name_of, median, _ in rows if name_of == metric} for _, rows in checks.shown_cells(shown(name))]


def within(row, lo, hi, what):
    interval = row["ci95_pct"]
    if interval is None:  # sim: exact
        interval = [row["time_overhead_pct"]] * 2
    say(lo <= interval[0] and interval[1] <= hi,
        f"{what}: {row['time_overhead_pct']:+.2f} % [{interval[0]:+.2f}, {interval[1]:+.2f}], expected {lo:g} to {hi:g} % "
        f"({row['baseline_median']:.5g} -> {row['median']:.5g} {row['unit']})")


def rows(name, metric, **parameters):
    found = [r for r in report(name) if r["metric"] == metric and all(r["parameters"].get(k) == v for k, v in parameters.items())]
    if len(found) != 1 or found[0]["verdict"] == "refused":
        print(f"FAIL {name}: {len(found)} rows of {metric} {parameters}: {[r.get('reason') for r in found]}")
        sys.exit(1)
    return found[0]


def layers():
    step_us = medians("calibrate", "step")[0]["off"]
    print(36 if 4700 <= step_us <= 5800 else max(4, min(36, round(36 * 5250 / step_us))))


def readback():
    for how, lo, hi in (("sync", 40, 60), ("worker", -1, 3)):
        row = rows("readback", "step", readback=how)
        clear = row["baseline_median"]
        say(4500 <= clear <= 6000, f"clear step, read-back {how}: {clear / 1000:.3f} ms, expected 4.5 to 6")
        within(row, lo, hi, f"read-back {how}, 2.5 ms of scheduler, emulated b200x8-tdx, adds to a step")


def overlap():
    row = rows("overlap", "step")
    interval = row["ci95_pct"] or [row["time_overhead_pct"]] * 2
    say(interval[1] < 0, f"overlap on against off, 1 ms of scheduler, in the clear: step {row['time_overhead_pct']:+.2f} % "
                         f"[{interval[0]:+.2f}, {interval[1]:+.2f}], expected below 0 "
                         f"({row['baseline_median']:.5g} -> {row['median']:.5g} {row['unit']})")


def graph():
    added, counted = {}, {}
    for kind in ("none", "full"):
        row = rows("graph", "step", graph=kind)
        interval = row["ci95_pct"] or [row["time_overhead_pct"]] * 2
        added[kind] = [row["baseline_median"] * x / 100 for x in (row["time_overhead_pct"], *interval)]
        counted[kind] = {"none": 4 + 9 * 12 + 2, "full": 3}[kind]
    share = counted["full"] / counted["none"]
    most = 1 - (added["full"][2] / added["none"][1])
    least = 1 - share
    text = ", ".join(f"{k} {v[0]:.0f} us [{v[1]:.0f}, {v[2]:.0f}] of {counted[k]} submissions" for k, v in added.items())
    # of what submissions cost, 1 - outside / all goes; beside them two copies pay their own fixed surcharge in either form
    say(most >= least - 0.05, f"a whole-step graph removes {100 * most:.1f} % of what CC adds to an eager step, expected "
                              f"{100 * least:.1f} % less 5 points ({text})")


def schedule(run="schedule"):
    def told(name):
        lines, key = {}, None
        for line in shown(name).splitlines():
            if line.startswith("cell "):
                key = line
            elif found := re.search(r" (schedule [0-9a-f]+ of \d+ steps)", line):
                lines.setdefault(key, []).append(found.group(1))
        return lines
    real, sim = told(run), told(f"{run}-sim")
    say(bool(real) and list(real) == list(sim), f"{len(real)} cells say their schedule here, {len(sim)} in sim")
    for key in real:
        parameters = json.loads(key.split(": ", 1)[1])
        name = " ".join(f"{k}={parameters[k]}" for k in ("layout", "arrivals", "overlap", "preempt", "graph", "kv_route")
                        if k in parameters)
        say(real[key] == sim.get(key), f"batch by batch as in sim: {name}: {real[key]}" +
            ("" if real[key] == sim.get(key) else f", sim {sim.get(key)}"))


def routes():
    if SHARED:
        times = medians("routes", "kv_transfer")
        say(len(times) == 2 and all(len(of) == 2 for of in times), "caches change replicas by both ways (one GPU for both, no time is judged): "
            + ", ".join(f"{route} {arm} {ms:.4g} ms" for route, of in zip(("p2p", "host"), times) for arm, ms in of.items()))
        return
    added = {}
    for route in ("p2p", "host"):
        row = rows("routes", "kv_transfer", kv_route=route)
        interval = row["ci95_pct"] or [row["time_overhead_pct"]] * 2
        added[route] = [row["baseline_median"] * x / 100 for x in (row["time_overhead_pct"], *interval)]
        print(f"PASS {route}: a cache changes replicas in {row['baseline_median']:.4g} {row['unit']} in the clear, emulated b200x8-tdx "
              f"adds {added[route][0]:.4g} [{added[route][1]:.4g}, {added[route][2]:.4g}]")
    say(added["host"][1] > added["p2p"][2], "through the host it adds more than between the GPUs")


SHARED = sys.argv[4:5] == ["1"]
{"layers": layers, "readback": readback, "overlap": overlap, "graph": graph, "schedule": schedule, "apart": lambda: schedule("apart"),
 "routes": routes}[WHAT]()
sys.exit(CHECKS.failures > 0)

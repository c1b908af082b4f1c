#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""values.py CCTAX OUT [--shared-gpu]: cctax coll on two GPUs, everything that CI cannot have: values of every collective, type,
reduction and place, registered buffers, what NCCL chose, and that a wrong element is found. Prints one line a part; exit 1 if one
failed. With --shared-gpu on one GPU, where NCCL has neither links nor its own choice: values alone."""
import json
import os
import sys
import time

sys.path.append(sys.path[0] + "/../..")
import checks

CCTAX, OUT = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
COLLECTIVES = "all_reduce,all_gather,reduce_scatter,all_to_all,all_to_allv,broadcast,reduce,send_recv"
CHECKS = checks.Checks(most=12)
say = CHECKS.say


def coll(name, flags, wanted=0, **environment):
    """The rows of a run, its stderr, and whether it ended as wanted."""
    start = time.monotonic()
    command = [CCTAX, "coll", "-o", os.path.join(OUT, "run-" + name), "--backend", "cuda", "--json", "-q", *flags.split()]
    done = checks.perform(*command, timeout=280, **environment)
    with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    try:
        rows = json.loads(done.stdout)["results"]
    except ValueError:
        rows = []
    say(done.returncode == wanted and rows,
        f"{name}: exit {done.returncode}, {len(rows)} rows, {time.monotonic() - start:.0f} s",
        done.stderr if done.returncode != wanted else "")
    return rows, done.stderr


def values(rows):
    return [(row, place, row[place]) for row in rows for place in ("out_of_place", "in_place") if row[place]]


def right(name, rows, least):
    """All values there, checked where they can be, and none wrong."""
    found = values(rows)
    wrong = [row for row, _, value in found if value["nwrong"]]
    unchecked = [row for row, place, value in found
                 if value["nwrong"] is None and not (place == "in_place" and row["collective"][:4] in ("all_", "send"))]
    refused = sorted({f"{row['collective']} {row['type']} {row['redop']}: {row['reason']}" for row in rows if row["reason"]})
    say(len(found) >= least and not wrong and not unchecked,
        f"{name} values: {len(found)} values, {len(wrong)} wrong, {len(unchecked)} unchecked, {len(refused)} refused", "\n".join(refused))


SHARED = sys.argv[3:]
quick = " ".join(["-g 2 -n 4 -w 1 --samples 1", *SHARED, ""])
types = "float,half,bfloat16,f8e4m3,f8e5m2,int32,int8"
right("types", coll("types", quick + f"--collective {COLLECTIVES} -b 48K -e 3M -f 64 -d {types}")[0], 220)
right("reductions", coll("reductions", quick + f"--collective all_reduce,reduce_scatter,reduce -b 96K -e 96K -d {types} --op all -r 1")[0], 200)
right("root", coll("root", quick + "--collective broadcast,reduce -b 1M -e 1M -r 1")[0], 4)
right("grouped graph", coll("grouped", quick + f"--collective {COLLECTIVES} -b 4K -e 16M -f 64 -m 4 -G 2")[0], 30)
right("skewed", coll("skewed", quick + "--collective all_to_allv -b 64K -e 16M -f 16 --skew zipf:1.2")[0], 6)
for who in ("oneshot", "twoshot"):
    right(who, coll(who, quick + f"--allreduce {who} -b 1K -e 8M -f 32 -d float,half,bfloat16")[0], 18)
right("one rank", coll("one", "-g 1 -n 4 -w 1 --samples 1 --collective all_reduce,all_gather -b 1M -e 1M")[0], 4)

with open(os.path.join(OUT, "matrix.json"), "w", encoding="utf-8") as file:
    file.write("[[4096, 61440], [32768, 32768]]")
right("matrix", coll("matrix", quick + f"--collective all_to_allv --skew {OUT}/matrix.json -d int8")[0], 2)


def on_links():
    for graph in (0, 2):
        name = f"registered-{graph}"
        rows = coll(name, quick + f"--collective all_reduce,all_gather,all_to_all -b 64K -e 64M -f 32 -R 0,1,2,ce -G {graph}")[0]
        right(name, rows, 60)
        for row, place, value in values(rows):
            if place == "out_of_place":
                print(f"         -R {row['arm']:3s} {row['collective']:12s} {row['size']:10d} B  {value['time']:9.2f} us  {value['ran']}")

    rows = coll("choice", quick + "--collective all_reduce,all_gather -b 64K -e 4M -f 64 --place out "
                "--algorithms default,ring,tree,pat --protocols default,ll --channels default,4")[0]
    for row in rows:
        value = row["out_of_place"]
        print(f"         {row['arm']:22s} {row['collective']:11s} {row['size']:9d} B  {value['ran'] if value else row['reason']}")
    ran = {(row["arm"], row["collective"]): row["out_of_place"]["ran"] or "" for row in rows if row["out_of_place"]}
    for what, algorithm in (("rings", "RING"), ("trees", "TREE")):
        own = ran.get((f"{algorithm.lower()}/default/default", "all_reduce"), "")
        say(own.startswith(algorithm), f"{what} ran: {own}")
    impossible = [row for row in rows if row["arm"].startswith("pat")]
    say(impossible and all(row["reason"] or " NOT pat" in (row["out_of_place"]["ran"] or "") for row in impossible),
        f"PAT is marked: {len(impossible)} rows")
    total = [row for row in rows if row["collective"] == "all_gather" and row["out_of_place"]]
    say(total and all(f"{row['size']} B" in row["out_of_place"]["ran"] for row in total),
        f"all_gather's bytes are the total: {len(total)} rows")


if not SHARED:
    on_links()
rows, error = coll("corrupted", quick + "-b 1M -e 4M -f 4 --place out", wanted=1, CCTAX_TEST_CORRUPT="1")
say(rows and all(row["out_of_place"] and row["out_of_place"]["nwrong"] == 1 for row in rows),
    f"a wrong element is found: {error.strip()[:120]}")
CHECKS.end()

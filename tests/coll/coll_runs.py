#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coll_runs.py CCTAX: cctax coll from flags to what it prints, on the host backend and sim: values, nccl-tests' layout, arms,
and its faults. One line a part; exit 1 if one failed."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/..")
import checks

h5py = checks.h5py_or_skip(is_written=True)
import numpy  # comes with h5py

CCTAX = os.path.realpath(sys.argv[1])
ROOT = tempfile.mkdtemp(prefix="cctax-coll-")
CHECKS = checks.Checks()
say = CHECKS.say


def command(name, flags):
    return [CCTAX, "coll", "-o", os.path.join(ROOT, name), *flags.split()]


def coll(name, flags, **environment):
    return checks.perform(*command(name, flags), timeout=100, **environment)


def rows_of(done):
    return json.loads(done.stdout)["results"]


# ---- nccl-tests' layout: as its own readers take it apart ----

ROW = re.compile(r"^ *(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+)" + r" +(\S+) +(\S+) +(\S+) +(\S+)" * 2 + "$")
# util.cu of nccl-tests 2.19.6
HEADS = ("""#
# Using devices
""", """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
""")


def table(text):
    """The rows, and what the two footers say."""
    wrong = re.search(r"^# Out of bounds values : (\d+) (OK|FAILED)$", text, re.M)
    average = re.search(r"^# Avg bus bandwidth    : (\S+) $", text, re.M)
    return [ROW.match(line).groups() for line in text.splitlines() if ROW.match(line)], wrong.groups(), float(average.group(1))


def from_the_end(text):
    """As SuperBench reads: between the last line that says out-of-place and the last of out-of-bounds values, columns counted
    from the end by the head line, rows those that begin with a number."""
    lines = text.splitlines()
    first = max(i for i, line in enumerate(lines) if "out-of-place" in line)
    last = max(i for i, line in enumerate(lines) if "Out of bounds values" in line)
    head = re.sub(" +", " ", lines[first + 1][1:].strip()).split(" ")
    at = {name: head.index(name) - len(head) for name in ("time", "algbw", "busbw")}
    rows = [re.sub(" +", " ", line.strip()).split(" ") for line in lines[first + 1:last]]
    return [(int(row[0]), *(float(row[at[name]]) for name in at)) for row in rows if re.match(r"\d+$", row[0])]


def one_table():
    """A table a collective: types, in them reductions, in them roots, in them sizes."""
    flags = "--backend sim --procs 2 -g 4 -b 1K -e 4K -f 4 -q "
    done = coll("one", flags + "-d half,float --op max,sum -r 3,0 --collective reduce")
    rows, wrong, average = table(done.stdout)
    wanted = [(t, o, r, b) for t in ("half", "float") for o in ("max", "sum") for r in ("3", "0") for b in ("1024", "4096")]
    say([(r[2], r[3], r[4], r[0]) for r in rows] == wanted, "rows: type, redop, root, size", done.stdout)
    say([int(r[1]) for r in rows] == [int(r[0]) // (2 if r[2] == "half" else 4) for r in rows], "counts of elements", rows)
    text = re.sub(" +$", "", done.stdout, flags=re.M)
    say(all(text.count(head) == 1 for head in HEADS), "nccl-tests' head lines, once", done.stdout)
    say(done.stdout.count("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : ") == 1 and
        re.search(r"^#\n# Collective test concluded: reduce_perf\n#$", done.stdout, re.M), "its footers, once", done.stdout)
    busbw = [float(json_value["bus_bw"]) for row in rows_of(coll("one", "--resume --json -q")) for json_value in (row["out_of_place"], row["in_place"])]
    say(abs(average - sum(busbw) / len(busbw)) < 1e-5 * average, "one average over all rows", average)
    say(all(line.startswith("#") for line in done.stdout.split("concluded")[1].splitlines()[1:]), "what is not nccl-tests' stands in comments behind", done.stdout)
    say(from_the_end(done.stdout) == [(int(r[0]), *(float(r[i]) for i in (9, 10, 11))) for r in rows], "who counts columns from the end reads the last three times", done.stdout)
    done = coll("whole", flags + "-d all --op all --collective all_reduce")
    rows, _, _ = table(done.stdout)
    kinds = list(dict.fromkeys((r[2], r[3]) for r in rows))
    say(len(rows) == 7 * 5 * 2 and kinds[:6] == [("int8", "sum"), ("int8", "prod"), ("int8", "max"), ("int8", "min"), ("int8", "avg"), ("int32", "sum")],
        "all types and reductions in nccl-tests' order", kinds)
    done = coll("two", flags + "--collective all_gather,all_to_all --condition off,emulated:h200")
    say(re.findall(r"^# Collective test starting: (\w+)$", done.stdout, re.M) == ["all_gather_perf", "alltoall_perf"] * 2, "a table a collective and arm", done.stdout)


def layout():
    done = coll("layout", "--backend sim --procs 2 -g 8 -b 1K -e 1G -f 32 -q --profile b200x8-tdx")
    rows, wrong, average = table(done.stdout)
    say(done.returncode == 0 and [int(r[0]) for r in rows] == [1 << s for s in (10, 15, 20, 25, 30)], "sizes, in order", done.stdout)
    say(wrong == ("0", "OK"), "out of bounds: none", done.stdout)
    say(re.search(r"^# cctax \S+ coll, backend sim, condition off: predicted$", done.stdout, re.M), "what its figures are", done.stdout)
    busbw = [float(r[i]) for r in rows for i in (7, 11)]
    say(abs(average - sum(busbw) / len(busbw)) < 0.01, "the average of all bus bandwidths", average)
    say(all(abs(float(r[7]) - float(r[6]) * 2 * 7 / 8) < 0.02 for r in rows), "busbw = algbw x 2(n-1)/n", done.stdout)
    say(all(abs(int(r[0]) / float(r[5]) / 1000 - float(r[6])) < 0.02 + 0.01 * float(r[6]) for r in rows), "algbw = size / time", done.stdout)
    say(done.stdout.count("launch-bound") == 2 and "limit 782.3 GB/s" in done.stdout, "verdicts and the limit", done.stdout)
    behind = re.findall(r"^# +(\d+) +float +sum +-1 +(\d+)% +(\S+) +(\d+)", done.stdout, re.M)
    say([(b[0], float(b[1])) for b in behind] == [(r[0], float(f"{100 * float(r[7]) / 782.3:.0f}")) for r in rows], "a line a row behind: busbw in per cent of the limit", behind)
    say("above the limit: NVLS" in done.stdout, "why a rate may exceed the link", done.stdout)
    graph = coll("graph", "--backend sim --procs 2 -g 8 -b 1K -e 1K -G 5 -q")
    say("launch-bound" not in graph.stdout and float(table(graph.stdout)[0][0][5]) < float(rows[0][5]), "graphs cost less, and are not launch-bound")
    again = coll("layout", "--resume -q")
    say(table(again.stdout)[0] == rows, "--resume prints the finished run", again.stdout)
    document = json.loads(coll("json", "--backend sim --procs 2 -g 8 -b 1K -e 1G -f 32 -q --json").stdout)
    say({"version", "start_time", "args", "env", "nccl_version", "config", "results", "out_of_bounds", "average_bus_bandwidth", "errors"} <= set(document) and
        {"nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "step_factor", "warmup_iters", "iterations", "aggregated_iterations", "validation", "graph",
         "blocking_collectives", "per_iter_timing", "per_iter_skip", "parallel_init", "devices"} <= set(document["config"]) and
        {"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"} == set(document["config"]["devices"][7]) and
        {"size", "count", "type", "redop", "root", "out_of_place", "in_place", "actual_iterations", "experiment_name"} <= set(document["results"][0]) and
        {"time", "alg_bw", "bus_bw", "nwrong"} <= set(document["results"][0]["in_place"]), "JSON has nccl-tests' keys", document)
    say(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", document["start_time"]) and document["args"][1] == "coll" and document["results"][0]["root"] == "    -1", "and values of its form", document)
    say([f"{r['out_of_place']['time']:.2f}" for r in document["results"]] == [r[5] for r in rows], "JSON and table agree")
    say(document["results"][0]["verdict"] == "launch-bound" and document["results"][0]["limit_gb_s"] > 700, "verdict and limit in JSON")


def arms():
    done = coll("arms", "--backend sim --procs 2 -g 8 -b 1M -e 1M --condition off,emulated:b200x8-tdx --rounds 3 --json -q")
    rows = rows_of(done)
    times = {row["arm"]: row["out_of_place"]["time"] for row in rows}
    say(len(rows) == 2 and times["emulated:b200x8-tdx"] > times["off"], "an arm each, and emulation costs", done.stdout)
    say(rows[0]["out_of_place"]["ci95_us"] is None and rows[0]["out_of_place"]["samples"] == 15, "no interval where sim repeats itself", rows)
    done = coll("rounds", "--backend host -g 2 -b 4K -e 4K --place out -w 0 --samples 2 --rounds 3 --json -q")
    value = rows_of(done)[0]["out_of_place"]
    say(value["ci95_of"] == "blocks" and value["ci95_us"][0] < value["ci95_us"][1], "intervals over blocks", value)
    done = coll("graphs", "--backend sim --procs 2 -g 4 -b 4K -e 4K --arms cudagraph=0,5 --place out --json -q")
    say([row["verdict"] for row in rows_of(done)] == ["launch-bound", None], "eager and graph as arms", done.stdout + done.stderr)
    shown = coll("grid", "--backend sim -b 4K -e 4K --algorithms ring,tree")
    say(shown.returncode == 2 and "need the cuda backend" in shown.stderr and not os.path.exists(os.path.join(ROOT, "grid")), "a grid needs NCCL", shown.stderr)


def attribution():
    """Of graphs and groups, whose launch is paid once for many collectives: sim explains all of what it played."""
    for name, flags in (("graph", "-G 1"), ("launches", "-G 5"), ("groups", "-m 4"), ("eager", "")):
        coll(f"explained-{name}", f"--backend sim --procs 2 --profile b200x8-tdx -g 8 -b 8K -e 8K --place out --rounds 2 "
             f"--condition off,emulated:b200x8-tdx {flags} -q")
        done = checks.perform(CCTAX, "report", os.path.join(ROOT, f"explained-{name}"), "--json")
        residuals = [float(text) for text in re.findall(r'"residual_pct": ([-+0-9.e]+)', done.stdout)]
        channel = [float(text) for text in re.findall(r'"command_channel": ([-+0-9.e]+)', done.stdout)]
        say(residuals and max(map(abs, residuals)) < 0.01 and channel[0] > 1, f"{name}: all explained, by the launches", (residuals, channel))


# ---- values on the host ----

ALL = "all_reduce,all_gather,reduce_scatter,all_to_all,all_to_allv,broadcast,reduce,send_recv"


def values():
    quick = "--backend host -q --json -w 0 --samples 1 -n 2 "
    for name, flags, count in (
            ("every type", "-g 2 -b 960 -e 960 --collective all_reduce,reduce -d all -r 1", 28),
            ("every collective", f"-g 3 -b 3840 -e 3840 --collective {ALL} -d half -r 2", 13),
            ("every reduction", "-g 2 -b 960 -e 960 --collective reduce_scatter -d half,int8 --op all", 20),
            ("groups in a graph", f"-g 2 -b 4K -e 4K --collective {ALL} -m 3 -G 2", 13),
            ("skewed", "-g 3 -b 4K -e 64K -f 16 --collective all_to_allv --skew zipf:1.2 --place out", 2),
            ("one rank", "-g 1 -b 8 -e 8K -f 1024 --collective all_reduce,all_gather,broadcast", 12)):
        done = coll(name.replace(" ", "-"), quick + flags)
        found = [(row, place, row[place]) for row in rows_of(done) for place in ("out_of_place", "in_place") if row[place]]
        unchecked = [row for row, _, value in found if value["nwrong"] is None]
        say(done.returncode == 0 and len(found) == count and not any(v["nwrong"] for _, _, v in found) and not unchecked,
            f"{name}: {len(found)} values, none wrong", done.stderr)


def places():
    """What the host backend does not do in place is not there, and is said not to be."""
    flags = "--backend host -g 2 -b 4K -e 4K -w 0 --samples 1 -n 2 -q --collective "
    done = coll("exchange", flags + "all_to_all,all_gather")
    rows = table(done.stdout.split("all_gather_perf")[0])[0]
    say(done.returncode == 0 and rows[0][5] != "N/A" and rows[0][9:] == ("N/A",) * 4 and table(done.stdout)[0][-1][12] == "0" and
        done.stdout.count("# in place: n/a: the host backend moves this from one buffer to another") == 1, "in place: all_gather alone", done.stdout)
    for command, words in ((coll("no", flags + "all_to_all,all_gather --place in,out"), "--place in,out: the host backend moves all_to_all from one buffer to another"),
                           (checks.perform(CCTAX, "run", "-o", os.path.join(ROOT, "no"), *f"--workload collective --np 2 --bytes 4K --place in {flags[:14]} --collective send_recv".split()),
                            "--place in: the host backend moves send_recv from one buffer to another")):
        say(command.returncode == 2 and words in command.stderr and command.stderr.count("\n") == 1 and not os.path.exists(os.path.join(ROOT, "no")),
            f"refused in one line: {words}", command.stderr)


def samples():
    """What is in the file: every rank's bursts, each divided by what it timed; the table averages ranks and takes the median."""
    done = coll("samples", "--backend host -g 2 -b 64K -e 64K -n 7 -m 3 --samples 4 --place out --json -q")
    value = rows_of(done)[0]["out_of_place"]
    with h5py.File(os.path.join(ROOT, "samples", "block-0000.h5"), "r") as file:
        rows = file["cells/0000/step"][:]
        unit = file["cells/0000/step"].attrs["unit"]
    by_burst = sorted(sum(r["value"] for r in rows if r["index"] == i) / 2 for i in range(4))
    by_rank = [sum(sorted(r["value"] for r in rows if r["rank"] == k)[1:3]) / 2 for k in (0, 1)]
    say(len(rows) == 8 and set(rows["n"]) == {21} and unit in (b"us", "us"), "8 bursts of 21 collectives, in us", rows)
    say(abs((by_burst[1] + by_burst[2]) / 2 - value["time"]) < 1e-6 * value["time"], "median of bursts, ranks averaged", value)
    say(value["slowest_rank"] == by_rank.index(max(by_rank)) and abs(max(by_rank) - value["slowest"]) < 1e-6 * value["slowest"], "the slowest rank, by medians of its bursts", value)


T_975 = {1: 12.7062047, 2: 4.30265273, 3: 3.18244631, 7: 2.36462425}  # Student's t by degrees of freedom, from tables


def interval(values):
    """Of the mean of logarithms, 95 %."""
    logs = numpy.log(values)
    half = T_975[len(logs) - 1] * logs.std(ddof=1) / len(logs) ** 0.5
    return numpy.exp([logs.mean() - half, logs.mean() + half])


def again_by_numpy():
    """Medians, intervals and percentiles, from the file by other hands."""
    for name, rounds, many in (("of-blocks", 4, 5), ("of-samples", 1, 8)):
        done = coll(name, f"--backend host -g 2 -b 4K -e 16K -f 4 --samples {many} --rounds {rounds} --json -q")
        shown = json.loads(checks.perform(CCTAX, "show", os.path.join(ROOT, name), "--json").stdout)
        cells = [(row, place) for row in rows_of(done) for place in ("out_of_place", "in_place")]
        for number, (row, place) in enumerate(cells):
            values = []  # round, rank, burst
            for b in range(rounds):
                with h5py.File(os.path.join(ROOT, name, f"block-{b:04d}.h5"), "r") as file:
                    rows = file[f"cells/{number:04d}/step"][:]
                values.append([[r["value"] for r in sorted(rows, key=lambda r: r["index"]) if r["rank"] == k] for k in (0, 1)])
            values = numpy.array(values)
            bursts, slowest = values.mean(axis=1), values.max(axis=1).ravel()
            of = numpy.median(bursts, axis=1) if rounds > 1 else bursts[0]
            value, summary = row[place], shown["cells"][number]["arms"][0]["metrics"][0]
            say(numpy.allclose(value["ci95_us"], interval(of), rtol=1e-6) and value["ci95_of"] == name[3:] and
                numpy.isclose(value["time"], numpy.median(bursts)), f"{name}, {row['size']} B {place}: time and its interval", (value, interval(of)))
            spread = numpy.median((slowest - values.min(axis=1).ravel()) / slowest)
            say(numpy.allclose([summary["median"], summary["mean"], summary["p99"], summary.get("ranks_spread", 0)],
                               [numpy.median(slowest), slowest.mean(), numpy.percentile(slowest, 99), spread]) and summary["n"] == slowest.size,
                f"{name}, {row['size']} B {place}: show's median, mean and 99th percentile of the slowest rank", summary)


def limits():
    """What busbw is held against: nothing where there is no link, else what emulation leaves of the machine's own."""
    flags = "-b 1M -e 1M --place out -w 0 --samples 1 -n 1 -q --condition off,emulated:b200x8-tdx "
    host = coll("host-limit", "--backend host -g 2 " + flags)
    say(host.returncode == 0 and host.stdout.count("limit n/a: ranks of the host backend share no GPU's link") == 2 and
        len(re.findall(r"^# +1048576 +float +sum +-1 +n/a ", host.stdout, re.M)) == 2, "the host backend has no link's limit", host.stdout)
    flags += "--backend sim --procs 2 -g 8 --json "
    own, other = ({row["arm"]: row["limit_gb_s"] for row in rows_of(coll("limit" + played, flags + played))} for played in ("--profile=b200x8-tdx", "--profile=h200"))
    kept = own["emulated:b200x8-tdx"] / own["off"]
    say(0 < kept < 1 and abs(other["emulated:b200x8-tdx"] / other["off"] - kept) < 1e-9 and other["off"] < own["off"],
        "an emulated arm's limit is the machine's link, slowed as the profile's is", (own, other))


# ---- faults ----

def wrong_element():
    done = coll("wrong", "--backend host -g 2 -b 4K -e 64K -f 16 --place out -w 0 --samples 1 -n 2 -q", CCTAX_TEST_CORRUPT="1")
    rows, wrong, _ = table(done.stdout)
    say(done.returncode == 1 and [r[8] for r in rows] == ["1", "1"] and wrong == ("2", "FAILED"), "a wrong element: counted, exit 1", done.stdout)
    say("1 of 2048 elements are wrong, first entry 0" in done.stderr, "and named", done.stderr)
    flags = "--backend host -g 2 -b 4K -e 4K --place out -w 0 --samples 1 -n 2 --rounds 2 -q"
    coll("mixed", flags)
    coll("mixed-wrong", flags, CCTAX_TEST_CORRUPT="1")
    shutil.copy(os.path.join(ROOT, "mixed-wrong", "block-0000.h5"), os.path.join(ROOT, "mixed", "block-0000.h5"))
    mixed = coll("mixed", "--resume -q")
    say(re.search(r"^# +4096 +float +sum +-1  out of place: 1 of 2048 elements are wrong", mixed.stdout, re.M), "a later block that is right keeps it named", mixed.stdout)
    unchecked = coll("unchecked", "--backend host -g 2 -b 4K -e 4K -w 0 --samples 1 -n 2 -c 0 -q", CCTAX_TEST_CORRUPT="1")
    say(unchecked.returncode == 0 and table(unchecked.stdout)[0][0][8] == "N/A", "-c 0 checks nothing, and says N/A", unchecked.stdout)


def refused():
    matrix = os.path.join(ROOT, "matrix.json")
    with open(matrix, "w", encoding="utf-8") as file:
        file.write("[[0, 64, 64], [64, 0, 64], [64, 63, 0]]")
    for flags, words in ((f"--backend host -g 3 --collective all_to_allv --skew {matrix} -d int8", "rank 2 sends 127 bytes in all, not the 128"),
                         (f"--backend host -g 2 --collective all_to_allv --skew {matrix} -d int8", "3 rows for 2 ranks"),
                         ("-g 1 --collective send_recv --backend host", "send_recv needs two ranks"),
                         ("--backend host --collective broadcast -g 2 -r 2", "--root: 2 is no rank of 0 to 1"),
                         ("--backend host -r 1", "--root: broadcast and reduce alone have one"),
                         ("--backend host --collective broadcast --op max", "--op: all_reduce, reduce_scatter and reduce alone reduce"),
                         (f"--backend host -g 3 --skew {matrix}", "--skew: no collective is an all_to_allv"),
                         ("--backend host --collective all_gather,reduce_scatter --allreduce oneshot", "--allreduce: no collective"),
                         ("--backend host --place out,out", "--place: 'out' given twice"),
                         ("--backend host -d float,fp32", "--datatype: 'float' and 'fp32' are one type"),
                         ("--backend host -d all,float", "--datatype: all stands for every one, and stands alone"),
                         ("--backend host --op sum,all", "--op: all stands for every one"),
                         ("--backend host --profile h200", "--profile: bandwidths are held against its link"),
                         ("--backend host --collective broadcast -g 2 -r 0,2", "--root: 2 is no rank of 0 to 1"),
                         ("--backend host --collective broadcast -g 2 -r 1,1", "--root: '1' given twice"),
                         ("--backend host -b 2M -e 1M", "-b 2097152 is above -e 1048576"),
                         ("--backend host -d double", "'double' is none of")):
        done = coll("refused", flags)
        say(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and not os.path.exists(os.path.join(ROOT, "refused")),
            f"refused in one line: {words}", done.stderr)
    checks.perform(CCTAX, "run", "-o", os.path.join(ROOT, "steps"), *"--backend sim --workload collective --bytes 4K -g 2 --rounds 1 --samples 1 -q".split())
    done = coll("steps", "--resume")
    say(done.returncode == 2 and "cctax coll did not begin this run" in done.stderr and not done.stdout, "another command's run is not printed as bandwidth", done.stderr)
    with open(matrix, "w", encoding="utf-8") as file:
        file.write("[[0, 64, 64], [64, 0, 64], [64, 64, 0]]")
    done = coll("matrix", f"--backend sim -g 3 --collective all_to_allv --skew {matrix} -d int8 -q")
    say(done.returncode == 0 and "minBytes 128 maxBytes 128" in done.stdout, "a matrix's size in the head line", done.stdout)
    done = checks.perform(CCTAX, "coll", "-o", "avg", cwd=ROOT)
    say(done.returncode == 2 and "did you mean --op avg?" in done.stderr and not os.path.exists(os.path.join(ROOT, "avg")), "-o avg", done.stderr)


def is_first_done(partial):
    try:
        with h5py.File(partial, "r") as file:
            return file["cells/0000/state"][0]["state"] == 1
    except (OSError, KeyError):
        return False


def interrupted(name, number, seconds, words):
    """A rank gets a signal in the midst of the second cell, which would go on for a minute, burst by burst."""
    flags = "--backend host -g 2 -b 64 -e 16M -f 262144 -n 20 -w 0 --samples 300 --place out -c 0 "
    run = os.path.join(os.path.realpath(ROOT), name)
    with open(os.path.join(ROOT, name + ".err"), "w+", encoding="utf-8") as error:
        process = subprocess.Popen(command(name, flags + f"-T {seconds}"), stdout=subprocess.PIPE, stderr=error, text=True, env=checks.ENVIRONMENT)
        start = time.monotonic()
        partial = os.path.join(run, "block-0000.h5.partial")
        while time.monotonic() - start < 60 and not is_first_done(partial) and process.poll() is None:
            time.sleep(0.1)
        ranks = checks.ranks_of(run)
        time.sleep(0.5)
        if len(ranks) == 2:
            os.kill(ranks[1], number)
        out = process.communicate(timeout=60)[0]
        error.seek(0)
        said = error.read()
    left = checks.ranks_of(run)
    rows = table(out)[0]
    say(process.returncode == 3 and not left, f"{name}: exit 3, no process left", f"exit {process.returncode}, {left}\n{said}")
    say(re.search(words, said), f"{name}: named", said)
    say(len(rows) == 2 and rows[0][5] != "N/A" and rows[1][5] == "N/A", f"{name}: the finished cell is kept and printed", out)


def faults():
    interrupted("killed", signal.SIGKILL, 60, r"killed or crashed|lost")
    interrupted("hanging", signal.SIGSTOP, 5, r"no progress for 5 s, last in cell 1|did not|nothing was heard|no peer")


try:
    for part in (one_table, layout, arms, attribution, values, places, samples, again_by_numpy, limits, wrong_element, refused, faults):
        begin = time.monotonic()
        part()
        print(f"       {part.__name__}: {time.monotonic() - begin:.1f} s")
finally:
    shutil.rmtree(ROOT, ignore_errors=True)
CHECKS.end()

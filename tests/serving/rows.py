#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a reader of a run's rows computes himself is what the run says: from arrivals and times of requests the time of the whole,
from it throughput, and how many requests there were at once; tokens of steps are those of requests; and goodput is one row a run,
of 0 where no request keeps its limits, which report and show say too. Runs of a block follow each other, predicted ones included: report refuses rows that go back.

rows.py CCTAX"""
import json
import os
import sys
import tempfile

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checks  # noqa: E402
import serving_law  # noqa: E402

CCTAX = os.path.abspath(sys.argv[1])
SERVE = ("--model", "qwen3-8b", "--workload", "serve", "--backend", "sim", "--condition", "off,emulated:b200x8-tdx",
         "--rounds", "2", "--input-len", "300", "--output-len", "8")
APART = ("--random-range-ratio", "0.5", "--overlap", "on", "--num-prompts", "48", "--disaggregate")
judged = checks.Checks()


MODEL = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256,
         "torch_dtype": "bfloat16", "tie_word_embeddings": False, "max_position_embeddings": 4096}
ON_CPUS = ("--model", "small.json", "--workload", "serve", "--backend", "host", "--condition", "off", "--rounds", "1",
           "--layouts", "dp=4", "--np", "4", "--concurrency", "8", "--input-len", "48", "--output-len", "8")


def block_of(path):
    with h5py.File(path) as file:
        cell = file["cells/0000"]
        return {name: cell[name][:] for name in cell.attrs["metrics"].decode().split(",")}


def recorded(*flags):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/small.json", "w", encoding="utf-8") as file:
            json.dump(MODEL, file)
        checks.printed(CCTAX, "run", *flags, "-q", "-o", f"{folder}/run", cwd=folder)
        return block_of(f"{folder}/run/block-0000.h5")


def times_of(rows):
    begins = rows["e2e"]["start_ns"]
    return begins, begins + rows["e2e"]["value"] * 1e6


def runs_follow_each_other(name, *flags):
    rows = recorded(*flags, "--samples", "2")
    begins, ends = times_of(rows)
    run = rows["e2e"]["index"] * 2 // len(begins)
    judged.say(ends[run == 0].max() <= begins[run == 1].min() + 1, f"{name}: the second run is behind the first",
               f"{ends[run == 0].max()} {begins[run == 1].min()}")
    judged.say(list(rows["request_s"]["start_ns"]) == [begins[run == 0].min(), begins[run == 1].min()],
               f"{name}: a run begins with its first request", str(rows["request_s"]))


def requests_add_up(name, most, *flags):
    rows = recorded(*flags)
    begins, ends = times_of(rows)
    seconds = (ends.max() - rows["request_s"]["start_ns"][0]) / 1e9
    n = rows["request_s"]["value"][0] * seconds
    judged.say(abs(n - len(begins)) < 1e-6, f"{name}: requests a second are requests over time", f"{n} of {len(begins)}")
    events = sorted([(round(t), 1) for t in begins] + [(round(t), -1) for t in ends])
    at_once, now = 0, 0
    for _, step in events:
        now += step
        at_once = max(at_once, now)
    judged.say(at_once <= most, f"{name}: no more than {most} requests at once", f"{at_once}")
    work = rows["total_tok_s"]["value"][0] * seconds - len(begins)
    judged.say(abs(rows["tokens"]["value"].sum() - work) < 1e-3, f"{name}: every token but a request's last is computed once",
               f"{rows['tokens']['value'].sum()} of {work}")


def steps_of(rows, metric, rank):
    return [row for row in rows[metric] if row["rank"] == rank]


def a_reader_can_replay(name, staged, *flags):
    """Of a run whose clocks decided: each replica, told what the run says it had heard in front of which step, makes by the
    second implementation of the law the batches that it made."""
    rows = recorded(*flags)
    kinds = {1: "ready", 2: "read", 3: "ended", 4: "moved"}
    case = {"arrivals": "closed", "concurrency": 8, "tokens": 8192, "sequences": 256, "blocks": 32, "chunked": 1, "offload": 0,
            "lag": 1, "drafts": 0, "acceptance": 0, "seed": 1, "requests": [[0, 48, 8]] * 48, "prefills": 2, "decodes": 2,
            "staged": staged}
    wrong, heard = [], 0
    for rank, engine in enumerate(serving_law.stages_of(case)):
        tokens, kv, moved = (steps_of(rows, metric, rank) for metric in ("tokens", "kv", "kv_moved"))
        told = steps_of(rows, "heard", rank)
        heard += len(told)
        for step, row in enumerate(tokens):
            now = [(kinds[t["n"]], int(t["value"])) for t in told if t["index"] == row["index"]]
            if any(t["start_ns"] != row["start_ns"] for t in told if t["index"] == row["index"]):
                wrong.append(f"engine {rank}, step {step}: heard at another time than its begin")
            engine.moved_at = [0] * max([len(engine.moved_at)] + [n + 1 for kind, n in now if kind == "moved"])
            list(engine.look(None))
            for kind, number in now:
                if kind != "moved":
                    engine.hear(kind, number)
            engine.admit_new(None, None)
            batch = engine.step()
            law = (sum(m[2] for m in batch["members"]), len(batch["members"]), batch["blocks"], batch["preempted"],
                   len(batch.get("moves", [])))
            run = (row["value"], row["n"], kv[step]["value"], kv[step]["n"] - 1, moved[step]["n"] - 1)
            if law != run:
                wrong.append(f"engine {rank}, step {step}: the law {law}, the run {run}")
    judged.say(not wrong and heard >= 3 * 48, f"{name}: the run says what was heard, and a reader replays it",
               f"{heard} heard; {wrong[:1]}")


def shared_fairly(jobs):
    """When (start, work) end if all that are under way share one link equally."""
    jobs, active, ends, now = sorted(jobs), [], {}, 0
    for start, work in jobs + [(float("inf"), 0)]:
        while active and now < start:
            until = min(start, now + min(left for left, _ in active) * len(active))
            active = [(left - (until - now) / len(active), k) for left, k in active]
            now = until
            ends |= {k: now for left, k in active if left < 1e-3}
            active = [(left, k) for left, k in active if left >= 1e-3]
        now = max(now, start)
        active.append((work, len(ends) + len(active)))
    return [ends[k] - start - work for k, (start, work) in enumerate(jobs)]


def links_are_hardly_shared(prompts, decodes, most_pct):
    """sim's readers of one prompt's GPU do not slow each other (docs/serving.md): what fair sharing would add to the example."""
    rows = recorded(*SERVE[:6], "--condition", "off", "--rounds", "1", "--input-len", "1024", "--output-len", "128", "--layouts",
                    "dp=4", "--np", "4", "--concurrency", "32", "--overlap", "on", "--readback", "worker", "--host-us", "1000",
                    "--disaggregate", f"{prompts}:{decodes}")
    work = 3700 + rows["kv_bytes"]["value"][0] * 2**20 / 764.17  # ns: short write and copy engine of b200x8-tdx, clear
    links = {}
    for first, moved in zip(*(sorted(rows[metric], key=lambda row: row["index"]) for metric in ("ttft", "kv_transfer"))):
        end = first["start_ns"] + (first["value"] + moved["value"]) * 1e6
        links.setdefault(int(first["index"]) % prompts, []).append((end - work, work))
    late = sum(sum(shared_fairly(jobs)) for jobs in links.values()) / 1e6 / rows["kv_transfer"]["value"].sum() * 100
    judged.say(0 <= late + 1e-6 and late <= most_pct, f"{prompts}:{decodes}: fair sharing of links would add {late:.2f} % to kv_transfer",
               f"more than {most_pct} %")


def nothing_good_is_zero():
    with tempfile.TemporaryDirectory() as folder:
        checks.printed(CCTAX, "run", *SERVE, "--layouts", "tp=1", "--np", "1", "--concurrency", "4", "--slo", "e2e=1us",
                       "--samples", "2", "-q", "-o", f"{folder}/run")
        rows = block_of(f"{folder}/run/block-0000.h5")["goodput"]
        judged.say(list(rows["value"]) == [0, 0], "goodput: a row a run, of 0", str(rows))
        shown = json.loads(checks.printed(CCTAX, "show", f"{folder}/run", "--json"))["cells"][0]["arms"][0]["metrics"]
        shown = {m["metric"]: m for m in shown}
        judged.say(shown["goodput"]["n"] == 4 and shown["goodput"]["median"] == 0, "goodput: show says 0", str(shown.get("goodput")))
        text = checks.printed(CCTAX, "report", f"{folder}/run", "-o", f"{folder}/page")
        judged.say("clock went back" not in " ".join(text.split()), "two runs a block: the second is behind the first", text)
        line = [line for line in text.splitlines() if "goodput" in line]
        judged.say(len(line) == 1 and "0 req/s" in line[0] and "0 in 2 of 2 blocks" in " ".join(text.split()),
                   "goodput: report says 0, and why there is no ratio", text)


requests_add_up("together", 16, *SERVE, "--layouts", "dp=2", "--np", "2", "--concurrency", "16", "--num-prompts", "48")
requests_add_up("3 prompts to 1", 16, *SERVE, "--layouts", "dp=4", "--np", "4", "--concurrency", "16", *APART, "3:1")
requests_add_up("by the host", 16, *SERVE, "--layouts", "dp=4", "--np", "4", "--concurrency", "16", *APART, "3:1", "--kv-route",
                "host")
requests_add_up("on CPUs, apart", 8, *ON_CPUS, *APART, "3:1")
requests_add_up("on CPUs", 8, *ON_CPUS, "--num-prompts", "48")
requests_add_up("on CPUs, by the second", 48, *ON_CPUS[:-6], *ON_CPUS[-4:],
                "--num-prompts", "48", "--request-rate", "2000")
for name, flags in (("together", ("--num-prompts", "48")), ("apart", (*APART, "3:1"))):
    in_sim = (*SERVE, "--layouts", "dp=4", "--np", "4", "--concurrency", "16", "--procs", "4", *flags)
    requests_add_up(f"sim of 4 processes, {name}", 16, *in_sim)
    runs_follow_each_other(f"sim of 4 processes, {name}", *in_sim)
for staged in 0, 1:
    a_reader_can_replay(f"on CPUs, {('p2p', 'host')[staged]}", staged, *ON_CPUS, "--num-prompts", "48", "--overlap", "on",
                        "--disaggregate", "2:2", "--kv-route", ("p2p", "host")[staged], "--kv-tokens", "512")
links_are_hardly_shared(2, 2, 1e-6)
links_are_hardly_shared(1, 3, 5)
nothing_good_is_zero()
judged.end()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every column of `cctax plan`, and the step programs under it, against step_counts.py: submissions, flops, collectives and bytes of
`cctax run --dry-run`; link B and memory; and, with profiles in which one thing alone takes time, what the clear time and each boundary
come to.

plan_columns.py CCTAX SOURCE"""
import collections
import copy
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import checks  # noqa: E402
from step_counts import FACTORS, Model, Step  # noqa: E402

CCTAX, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
judged = checks.Checks()

# Shaped as Qwen2-57B-A14B, with heads that eight ranks divide.
SHARED = {"model_type": "qwen2_moe", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 32, "num_key_value_heads": 8,
          "head_dim": 128, "intermediate_size": 18944, "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480,
          "num_experts": 64, "num_experts_per_tok": 8, "vocab_size": 151936, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
LAYOUTS = ({"tp": 8}, {"tp": 4, "dp": 2}, {"ep": 8, "dp": 8}, {"tp": 2, "ep": 8, "dp": 4}, {"tp": 4, "ep": 4})
WORKLOADS = (("decode", {"batch": 8, "input": 1024, "output": 1024}), ("decode", {"batch": 64, "input": 4096, "output": 100}),
             ("prefill", {"input": 2048}), ("train", {"seq": 1024, "micro": 2, "passes": 2}))


def flags_of(model, layout, workload, sizes):
    text = ",".join(f"{key}={value}" for key, value in layout.items())
    flags = ["--model", model, "--layouts", text, "--workload", workload, "--np", str(layout.get("tp", 1) * layout.get("dp", 1))]
    names = {"batch": "batch", "input": "input-len", "output": "output-len", "seq": "seq-len", "micro": "micro-batch",
             "passes": "accumulation", "layers": "layers", "host": "host-us"}
    for key, value in sizes.items():
        flags += ["--" + names[key], str(value)]
    if workload == "train" and layout.get("dp", 1) > 1:
        flags += ["--overlap-grad-reduce", "off"]
    return flags + (["--graph", "none"] if workload == "decode" else [])


def counted(flags):
    """The same figures from the program that would be performed."""
    document = json.loads(checks.printed(CCTAX, "run", *flags, "--dry-run", "--backend", "sim", "--condition", "off", "--json"))
    program = document["roles"][0]["program"]
    slots = [slot["value"] for slot in program["slots"]]

    def of(quantity):
        if not isinstance(quantity, dict):
            return quantity
        return quantity["base"] + quantity.get("per", 0) * slots[quantity["slot"]]
    figures = collections.Counter()
    for op in program["ops"]:
        kind = op["op"]
        figures["submissions"] += kind in ("gemm", "attention", "elementwise", "collective", "copy")
        if kind == "gemm":
            figures["flops"] += 2 * of(op["m"]) * op["n"] * op["k"] * op.get("groups", 1)
        elif kind == "attention":
            figures["flops"] += of(op["flops"])
        elif kind == "copy":
            figures[op["direction"]] += of(op["bytes"])
        elif kind == "collective":
            group = document["groups"][op["group"]]
            key = f"{op['kind']} over {group['name']}"
            figures[key] += 1
            figures[key + ", wire"] += of(op["bytes"]) * FACTORS[op["kind"]](group["size"])
    return figures


def expected(step):
    figures = collections.Counter({"submissions": step.submissions, "flops": step.flops, "h2d": step.h2d, "d2h": step.d2h})
    for (group, kind), n in step.counts.items():
        figures[f"{kind} over {group}"] = n
        figures[f"{kind} over {group}, wire"] = step.wire[group, kind]
    return figures


def is_near(got, wanted, within):
    return abs(got - wanted) <= within * max(abs(wanted), 1)


def compare(what, got, wanted, within=1e-9):
    wrong = [f"{key}: {got.get(key, 0)}, counted {wanted.get(key, 0)}" for key in sorted(set(got) | set(wanted))
             if not is_near(got.get(key, 0), wanted.get(key, 0), within)]
    judged.say(not wrong, what, "\n".join(wrong))


def planned(flags, profile):
    document = json.loads(checks.printed(CCTAX, "plan", *flags, "--profile", profile, "--json"))
    return document["layouts"][0]


def counts_agree(path, config, layout):
    for workload, sizes in WORKLOADS:
        sizes = dict(sizes, layers=5) if workload == "train" else sizes
        step = Step(Model(config, sizes.get("layers")), layout, workload, **sizes)
        flags = flags_of(path, layout, workload, sizes)
        what = f"{os.path.basename(path)} {layout} {workload} {sizes}"
        # rows and bytes of an exchange are whole numbers
        compare(what, counted(flags), expected(step), 2e-4)
        row = planned(flags, "b200x8-tdx")
        memory = {key: row["memory_bytes"][key] for key in step.memory}
        compare(what + ": memory", memory, step.memory)
        compare(what + ": link B", {"link": row["link_bytes_per_token_layer"]}, {"link": step.link_bytes()}, 2e-4)


# ---- time: profiles of which one thing alone costs ----

def number(value):
    return {"value": value, "lo": value, "hi": value, "kind": "assumed", "source": "put in by the test"}


def free_profile():
    """b200x8-tdx, of which nothing takes time and confidential computing costs nothing."""
    with open(f"{SOURCE}/data/profiles/b200x8-tdx.json", encoding="utf-8") as file:
        profile = json.load(file)
    column = profile["clear"]
    column["submission"]["us"] = column["sync"]["us"] = column["kernel_floor_us"] = number(0)
    for direction in column["copy"].values():
        for cost in direction.values():
            cost["fixed_us"], cost["gb_s"], cost["blocks"] = number(0), number(1e9), False
    for kind, rows in column["collective"].items():
        row = dict(rows[0], ranks=8, algorithm="Ring", protocol="Simple", toll_us_eager=number(0), toll_us_graph=number(0),
                   busbw_gb_s=number(1e9))
        column["collective"][kind] = [row]
    column["gemm_tflop_s"] = {kind: number(1e9) for kind in column["gemm_tflop_s"]}
    column["hbm_gb_s"] = number(1e9)
    column.pop("gemm", None)
    column["cpu_slowdown"] = number(1)
    profile["capability"] = {key: True for key in profile["capability"]}
    profile["confidential"] = copy.deepcopy(column)
    return profile


def collectives(column, **costs):
    for rows in column["collective"].values():
        for row in rows:
            row.update({key: number(value) for key, value in costs.items()})


def times_of(profile, flags, tokens):
    """us of the clear step, and of each boundary."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/one.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        row = planned(flags, path)
    clear_us = tokens / row["clear"]["value"] * 1e6
    return dict({"clear": clear_us}, **{key: pct / 100 * clear_us for key, pct in row["boundaries_pct"].items()})


def only(**wanted):
    return dict({"clear": 0, "command_channel": 0, "copies": 0, "nvlink": 0, "lost_capability": 0, "cpu": 0}, **wanted)


def cases(step, host_us):
    """(what costs, profile, us of the clear step and of each boundary). Nothing overlaps: one thing alone takes time, or one lane."""
    n, wire = sum(step.counts.values()), sum(step.wire.values())
    submission, toll, link, copies, lost, flops = (free_profile() for _ in range(6))
    submission["clear"]["submission"]["us"], submission["confidential"]["submission"]["us"] = number(10), number(17)
    yield "submissions", submission, only(clear=10 * step.submissions + host_us, command_channel=7 * step.submissions)
    collectives(toll["clear"], toll_us_eager=3)
    collectives(toll["confidential"], toll_us_eager=5)
    yield "tolls", toll, only(clear=3 * n + host_us, nvlink=2 * n)
    collectives(link["clear"], busbw_gb_s=0.1)
    collectives(link["confidential"], busbw_gb_s=0.05)
    yield "links", link, only(clear=wire / 100 + host_us, nvlink=wire / 100)
    for name, fixed, rate in (("clear", 4, 0.01), ("confidential", 6, 0.005)):
        for direction in copies[name]["copy"].values():
            direction["pinned"].update(fixed_us=number(fixed), gb_s=number(rate), blocks=True)
    moved = (step.h2d + step.d2h) / 10
    yield "copies", copies, only(clear=8 + moved + host_us, copies=4 + moved)
    n_reduced = sum(count for (_, kind), count in step.counts.items() if kind == "all_reduce")
    for name in ("clear", "confidential"):
        rows = lost[name]["collective"]["all_reduce"]
        rows.append(dict(rows[0], algorithm="NVLS"))
        rows[0].update(toll_us_eager=number(5))
        rows[1].update(toll_us_eager=number(2))
    lost["capability"]["multicast"] = False
    yield "multicast", lost, only(clear=2 * n_reduced + host_us, lost_capability=3 * n_reduced)
    for name in ("clear", "confidential"):
        flops[name]["gemm_tflop_s"]["bf16"] = number(0.001)
        flops[name]["cpu_slowdown"] = number(1 if name == "clear" else 1.5)
    yield "flops and host", flops, only(clear=step.flops / 1e3 + host_us, cpu=host_us / 2)


def columns_agree(model, layout, workload, sizes):
    with open(f"{SOURCE}/data/models/{model}.json", encoding="utf-8") as file:
        step = Step(Model(json.load(file), sizes["layers"]), layout, workload, **sizes)
    flags = flags_of(model, layout, workload, sizes)
    tokens = step.tokens * sizes.get("passes", 1) * layout.get("dp", 1)
    for what, profile, wanted in cases(step, sizes.get("host", 0)):
        got = times_of(profile, flags, tokens)
        # each of an entry's times is rounded to a ns
        wrong = [f"{key}: {got[key]} us, counted {wanted[key]}" for key in wanted
                 if abs(got[key] - wanted[key]) > 2e-3 * step.submissions + 2e-4 * wanted["clear"]]
        judged.say(not wrong, f"{model} {layout} {workload}: {what}", "\n".join(wrong))


def main():
    with tempfile.TemporaryDirectory() as folder:
        shared = f"{folder}/shared.json"
        with open(shared, "w", encoding="utf-8") as file:
            json.dump(SHARED, file)
        for path in ("qwen3-8b", "gpt-oss-20b", "deepseek-r1", shared):
            with open(path if path == shared else f"{SOURCE}/data/models/{path}.json", encoding="utf-8") as file:
                config = json.load(file)
            for layout in LAYOUTS:
                if "ep" not in layout or path != "qwen3-8b":
                    counts_agree(path, config, layout)
    for model, layout in (("qwen3-8b", {"tp": 4, "dp": 2}), ("deepseek-r1", {"tp": 2, "ep": 8, "dp": 4})):
        columns_agree(model, layout, "decode", {"batch": 8, "input": 512, "output": 64, "layers": 4, "host": 100})
        columns_agree(model, layout, "prefill", {"input": 512, "layers": 4})
        columns_agree(model, layout, "train", {"seq": 256, "micro": 1, "passes": 2, "layers": 4})
    judged.end()


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write data/profiles/*.json: every number with bounds, kind and source, from data/published.tsv (cited by row id), from the
measurements in tests/data/h200x2 and from stated assumptions. `profiles.py --check` compares instead of writing."""
import csv
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
H200 = ROOT / "tests/data/h200x2"
PUBLISHED = {row["id"]: row for row in csv.DictReader(
    (line for line in open(ROOT / "data/published.tsv") if not line.startswith("#")), delimiter="\t")}
FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n}  # nccl-tests PERFORMANCE.md; the others (n - 1) / n


def cost(value, kind, source, lo=None, hi=None):
    def plain(x):
        x = float(f"{x:.6g}")
        return int(x) if x == int(x) and abs(x) < 2**53 else x
    return {"value": plain(value), "lo": plain(value if lo is None else lo), "hi": plain(value if hi is None else hi),
            "kind": kind, "source": source}


def published(row, column, lo=None, hi=None, scale=1, kind="published", note=""):
    r = PUBLISHED[row]
    return cost(float(r[column]) * scale, kind, f"{r['source']} section {r['section']}, published.tsv {row} {column}{note}",
                lo, hi)


def assumed(value, why, lo, hi):
    return cost(value, "assumed", why, lo, hi)


def derived(value, why, lo=None, hi=None):
    return cost(value, "derived", why, lo, hi)


def copies(h2d_pinned, h2d_pageable, d2h_pinned, d2h_pageable):
    return {"h2d": {"pinned": h2d_pinned, "pageable": h2d_pageable}, "d2h": {"pinned": d2h_pinned, "pageable": d2h_pageable}}


def copy(fixed_us, gb_s, blocks):
    """Pageable copies block on a clear machine, all copies under CC, and these wait for the stream (vLLM issue 52226)."""
    return {"fixed_us": fixed_us, "gb_s": gb_s, "blocks": blocks, "waits_for_stream": True}


def row(ranks, algorithm, protocol, toll_eager, toll_graph, busbw):
    return {"ranks": ranks, "algorithm": algorithm, "protocol": protocol, "channels": 0, "toll_us_eager": toll_eager,
            "toll_us_graph": toll_graph, "busbw_gb_s": busbw}


# ---- 2 x H200, measured ----

def h200_grid():
    series = {}
    for line in open(H200 / "nccl-tests-graph-grid.tsv"):
        f = line.rstrip("\n").split("\t")
        if line.startswith("#") or f[0] == "operation" or f[1] == "default" or f[2] != "default":
            continue
        series.setdefault((f[0], f[1]), []).append((int(f[3]), statistics.median(map(float, f[4].split()))))
    return series


def fit(points, factor):
    """Least squares of relative error for time = toll + wire bytes / busbw."""
    s = [0.0] * 5
    for size, us in points:
        w, x = 1 / us**2, size * factor
        s = [s[0] + w, s[1] + w * x, s[2] + w * x * x, s[3] + w * us, s[4] + w * x * us]
    slope = (s[0] * s[4] - s[1] * s[3]) / (s[0] * s[2] - s[1]**2)
    toll = (s[3] - slope * s[1]) / s[0]
    worst = max(abs(toll + slope * b * factor - us) / us for b, us in points)
    return toll, 1e-3 / slope, worst


def h200_rows(operation):
    rows = []
    for (op, algorithm), points in sorted(h200_grid().items()):
        if op != operation:
            continue
        toll, busbw, worst = fit(points, FACTOR.get(op, lambda n: (n - 1) / n)(2))
        name, protocol = algorithm.split(":")
        where = (f"fit of toll + wire / busbw to tests/data/h200x2/nccl-tests-graph-grid.tsv {op} {algorithm}: NCCL 2.28.3, "
                 f"2026-11-30, in graphs, medians of 5, worst relative error {100 * worst:.0f} %")
        toll_graph = cost(toll, "measured", where, toll * (1 - worst), toll * (1 + worst))
        eager = derived(toll, "as in graphs: the submission is priced apart; " + where, toll * (1 - worst), toll * (1 + worst))
        rows.append(row(2, name, protocol, eager, toll_graph,
                        cost(busbw, "measured", where, busbw * (1 - worst), busbw * (1 + worst))))
    return rows


def h200_all_to_all():
    points = []
    for line in open(H200 / "nccl-tests-2.28.3.tsv"):
        f = line.rstrip("\n").split("\t")
        if f[:3] == ["alltoall", "default", "eager"] and int(f[3]) >= 2 << 20:
            points.append((int(f[3]), float(f[4])))
    toll, busbw, worst = fit(points, 0.5)
    where = (f"fit to tests/data/h200x2/nccl-tests-2.28.3.tsv alltoall from 2 MiB on: 2 x H200, one process, single run, "
             f"2026-11-30, worst relative error {100 * worst:.0f} %")
    toll = cost(toll, "measured", where, toll * (1 - worst), toll * (1 + worst))
    return [row(2, "P2P", "Simple", toll, toll, cost(busbw, "measured", where, busbw * (1 - worst), busbw * (1 + worst)))]


UNIT = "tests/data/h200x2/unit-costs.txt: 2 x H200, driver 580.159.04, CUDA 13.0, 2026-11-30, median"


def h200_copies():
    def of(fixed, big, small_time, note):
        # a 4 KiB copy as measured there contains one submission (3.3 us) and its synchronisation (1.38 us)
        return copy(cost(fixed, "measured", f"{UNIT}; a 4 KiB copy took {small_time} us, less 3.3 us submission and 1.38 us sync",
                         0, small_time), cost(big[0], "measured", f"{UNIT}; {note}", *big[1:]), "pageable" in note)
    return copies(of(2.8, (55.25, 54.15, 55.43), 7.48, "256 MiB pinned H2D"),
                  of(2.91, (7.5, 7.5, 8.97), 7.59, "256 MiB pageable H2D"),
                  of(3.38, (55.12, 54.16, 55.12), 8.06, "256 MiB pinned D2H"),
                  of(5.1, (12.83, 7.54, 14.67), 9.78, "256 MiB pageable D2H"))


# ---- columns ----

NCCL_MODEL = "NCCL's latency model (2.30.7 src/graph/tuning.cc): base 6.6 us LL, 14 LL128, 8.4 Simple, and 0.6, 1.9, 3.4 a hop"
BASE, HOP = {"LL": 6.6, "LL128": 14, "Simple": 8.4}, {"LL": 0.6, "LL128": 1.9, "Simple": 3.4}
SHARE = {"LL": 0.3, "LL128": 0.68, "Simple": 1}  # of Simple's bus bandwidth, from the H200 fits


def big_rows(operation, rings, nvls, keep, keep_why):
    """Rows of an 8-GPU NVLink domain. `keep` = confidential over clear bus bandwidth as (value, lo, hi); None: clear."""
    k, lo, hi = keep or (1, 1, 1)
    kind = "assumed" if keep else "published"
    suffix = f"; times {k:.3f}: {keep_why}" if keep else ""
    rows = []
    for ranks, (busbw, source) in rings.items():
        hops = (2 if operation == "all_reduce" else 1) * (ranks - 1)
        for protocol in ("LL", "LL128", "Simple"):
            toll = BASE[protocol] + HOP[protocol] * hops
            half = 0.5 if protocol == "Simple" else 0.75  # measured 2-rank tolls lie 20 to 50 % below the model
            shared = {"LL": "; LL reaches about 0.30 of Simple on 2 x H200", "LL128": "; LL128 about 0.68", "Simple": ""}[protocol]
            value = busbw * SHARE[protocol]
            row_kind = kind if protocol == "Simple" and operation == "all_reduce" else "assumed"
            if row_kind == "published" and source.startswith("between"):
                row_kind = "derived"
            extra = 10.8 if keep else 0
            note = ("; no toll of CC's own: published.tsv tp8-c1 leaves none in graphs; up to the short write's 10.8 us"
                    if keep else "")
            graph = derived(toll, NCCL_MODEL + note, toll * half, toll + extra)
            rows.append(row(ranks, "Ring", protocol, graph, graph,
                            cost(value * k, row_kind, source + shared + suffix, value * lo, value * hi)))
    for ranks, (busbw, source) in (nvls or {}).items():
        toll = derived(25, "NCCL's latency model: NVLS 25 us", 15, 35)
        rows.append(row(ranks, "NVLS", "Simple", toll, toll, cost(busbw, "published", source)))
    return rows


def collectives(allreduce_rings, nvls, other_rings, a2a, keep_ar, keep_a2a, why_ar, why_a2a):
    table = {"all_reduce": big_rows("all_reduce", allreduce_rings, nvls, keep_ar, why_ar)}
    for op in ("all_gather", "reduce_scatter", "broadcast", "reduce"):
        table[op] = big_rows(op, other_rings, None, keep_ar, why_ar + "; assumed the same for " + op)
    k, lo, hi = keep_a2a or (1, 1, 1)
    toll = assumed(12, "a launch of point-to-point kernels to every peer; 2 x H200 needs 11.8 us eager at 256 bytes", 6, 24)
    bw, bw_lo, bw_hi, source = a2a
    suffix = f"; times {k:.3f}: {why_a2a}" if keep_a2a else ""
    for op in ("all_to_all", "all_to_allv"):
        table[op] = [row(ranks, "P2P", "Simple", toll, toll, assumed(bw * k, source + suffix, bw_lo * lo, bw_hi * hi))
                     for ranks in (4, 8)]
    return table


def column(submission, form, graph, node, sync, floor, copy_table, p2p, table, tflops, hbm, memory, reserved, slowdown):
    return {"submission": {"us": submission, "form": form}, "graph_launch": {"us": graph, "us_per_node": node},
            "sync": {"us": sync}, "kernel_floor_us": floor, "copy": copy_table,
            "p2p": {"ce_gb_s": p2p[0], "sm_gb_s": p2p[1], "short_write_us": p2p[2]}, "collective": table,
            "gemm_tflop_s": tflops, "hbm_gb_s": hbm, "memory_bytes": memory, "reserved_bytes": reserved,
            "cpu_slowdown": slowdown}


GRAPH = assumed(2.5, "a straight-line graph launches in about 2.5 us + 1 ns a node on recent drivers; not measured here", 2, 6)
NODE = assumed(0.001, "as graph_launch.us", 0, 0.1)
FLOOR = assumed(1.4, "a one-thread kernel's own time on a clear H200: 1.37 us eager, 0.55 in a graph (measured 2026-11-30)", 0.55, 3)
NO_RESERVE = assumed(0, "nothing is kept back without CC", 0, 0)
NO_SLOWDOWN = assumed(1, "the reference", 1, 1)


def same(entry, why):
    return {**entry, "kind": "assumed" if entry["kind"] != "published" else "derived", "source": entry["source"] + "; " + why}


def tee_slowdown(tee):
    text = "published.tsv cpu-tee (SEV-SNP, zkVM proving 1.5 %, worst stage 2.08)"
    if tee == "sev-snp":
        return cost(1.015, "published", text, 1, 1.0208)
    return assumed(1.015, text + "; TDX assumed alike", 1, 1.05)


FP32_REACHED = 0.763


def fp32(peak, sheet):
    """cuBLAS without tf32, as PyTorch has it by default."""
    return derived(peak * FP32_REACHED, f"{sheet} {peak} for fp32 without tensor cores, x {FP32_REACHED} as H200 reaches 51.1 of 67",
                   peak * 0.6, peak)


def tflops(bf16, lo, hi, source, kind, fp8, nvfp4, fp32):
    def scaled(by, name):
        return derived(bf16 * by, f"{by} x bf16 ({source}): the data sheet's ratio for {name}", lo * by * 0.7, hi * by)
    table = {"fp32": fp32, "bf16": cost(bf16, kind, source, lo, hi), "fp16": cost(bf16, kind, source, lo, hi),
             "fp8": scaled(fp8, "fp8")}
    if nvfp4:
        table["nvfp4"] = scaled(nvfp4, "nvfp4")
    return table


AR8, AR4 = "8 x B200, public nccl-tests all_reduce, NVLS off, large messages", "4 x B200, public nccl-tests all_reduce, large messages"
B200_RINGS = {4: (673.2, AR4), 6: (680, "between 673.2 at 4 and 682.2 at 8 GPUs"), 7: (681, "between 673.2 at 4 and 682.2 at 8 GPUs"),
              8: (682.2, AR8)}
B200_NVLS = {n: (bw, f"{n} x B200, public nccl-tests all_reduce with NVLS, large messages")
             for n, bw in ((6, 778.2), (7, 811.2), (8, 838.0))}
B200_OTHERS = {4: (673.2, AR4 + "; assumed the same for this operation"), 8: (682.2, AR8 + "; assumed the same for this operation")}
B200_A2A = (600, 149, 722, "0.83 of the 721.8 GB/s that NCCL's model gives 18 links of 40.1; 149 published at an unstated size "
            "(published.tsv nccl-a2a)")
KEEP_AR, KEEP_A2A = (156 / 185, 7693 / 9388, 0.9), (130 / 149, 7693 / 9388, 0.9)
WHY_AR = "the ratio of published.tsv nccl-ar, 156 to 185 at an unstated size; lo: SM reads (sm-read), hi: the source's label -10 %"
WHY_A2A = "the ratio of published.tsv nccl-a2a, 130 to 149; lo: SM reads (sm-read), hi: the source's label -10 %"


def b200_copies_clear():
    why = "published for B200 H2D; D2H assumed alike"
    like = "as measured on H200 (" + UNIT + ")"
    fast = published("h2d", "cc_off")
    return copies(copy(assumed(2.8, like, 1, 5), fast, False), copy(assumed(2.9, like, 1, 8), assumed(7.5, like, 5, 15), True),
                  copy(assumed(3.4, like, 1, 5), same(fast, why), False),
                  copy(assumed(5.1, like, 1, 8), assumed(12.8, like, 5, 20), True))


def b200_copies_cc():
    fixed = published("h2d-small", "cc_on", 3, 6)
    rate = published("h2d-16m", "cc_on", 3.5, 10, note="; lo: bulk copies (h2d), 3.5; with the 8-GPU submission's 34.45 us a "
                     "1 MiB copy comes to 7.2 GB/s, as h2d-1m says 7.21")
    one = copy(fixed, rate, True)
    pageable = copy(fixed, same(rate, "pageable assumed as pinned: both go through the bounce buffer"), True)
    return copies(one, pageable, one, pageable)


def b200_columns(surcharge_us, surcharge_source, lo, hi):
    sub = published("sub", "cc_off")
    p2p_clear = (published("ce-read", "cc_off", scale=1 / 12, kind="derived", note=" / 12 ordered pairs"),
                 published("sm-read", "cc_off", scale=1 / 12, kind="derived", note=" / 12 ordered pairs"),
                 published("p2p-lat", "cc_off"))
    p2p_cc = (published("ce-read", "cc_on", scale=1 / 12, kind="derived", note=" / 12 ordered pairs"),
              published("sm-read", "cc_on", scale=1 / 12, kind="derived", note=" / 12 ordered pairs"),
              published("p2p-lat", "cc_on"))
    rates = tflops(1745, 1500, 2250, "8 x B200, best measured bf16 GEMM of 2250 dense on the data sheet", "published", 2, 4,
                   fp32(75, "HGX B200's data sheet:"))
    hbm = derived(7200, "90 % of the data sheet's 8 TB/s", 6400, 8000)
    memory = cost(183e9, "published", "published.tsv vram: 183 GB", 183e9, 192e9)
    unaffected = "not affected by CC (published.tsv gemm: unaffected)"
    clear = column(sub, "host", GRAPH, NODE, published("sync", "cc_off"), FLOOR, b200_copies_clear(), p2p_clear,
                   collectives(B200_RINGS, B200_NVLS, B200_OTHERS, B200_A2A, None, None, "", ""), rates, hbm, memory,
                   NO_RESERVE, NO_SLOWDOWN)
    graph_cc = derived(2.5 + surcharge_us, "one submission's surcharge on the clear launch; hi: all of skel-graph's +89 us", 2.5, 91.5)
    cc = column(cost(3.45 + surcharge_us, "published", surcharge_source, lo, hi), "host", graph_cc, same(NODE, "no surcharge a node"),
                published("sync", "cc_on"), same(FLOOR, unaffected), b200_copies_cc(), p2p_cc,
                collectives(B200_RINGS, None, B200_OTHERS, B200_A2A, KEEP_AR, KEEP_A2A, WHY_AR, WHY_A2A),
                {t: same(c, unaffected) for t, c in rates.items()}, same(hbm, unaffected), same(memory, unaffected),
                published("vram", "cc_on", scale=1e6), tee_slowdown("tdx"))
    return clear, cc


BLACKWELL_CC = {"multicast": False, "work_fifo": False, "async_copy": False, "host_register": False, "gdr": False}


def b200(name, partition, *surcharge):
    clear, cc = b200_columns(*surcharge)
    platform = {"gpu": "NVIDIA B200", "gpus": 8, "partition": partition, "cpu": "Intel Xeon 6767P", "tee": "tdx",
                "mode": "encrypted NVLink" if partition > 1 else "one GPU", "driver": "595.71.05"}
    return {"schema": 1, "name": name, "platform": platform, "clear": clear, "confidential": cc, "capability": BLACKWELL_CC}


def b300():
    clear, cc = b200_columns(12.25, "published.tsv sub: +12.25 us on B200 with TDX", 3.45, 34.45)
    rates = tflops(1745, 1500, 2500, "as measured on B200; B300's dense bf16 is the same on the data sheet", "assumed", 2, 6,
                   fp32(75, "taken from B200:"))
    memory = cost(288e9, "published", "data sheet: 288 GB HBM3e", 270e9, 288e9)
    like = "as b200-tdx"
    for col in (clear, cc):
        col["submission"]["us"] = {**col["submission"]["us"], "kind": "assumed", "source": like + "; " + col["submission"]["us"]["source"]}
        col["gemm_tflop_s"] = rates
        col["memory_bytes"] = memory
    clear["submission"]["us"]["hi"] = 7.4  # the published pipelined launch through torch
    for rows in cc["collective"].values():
        for r in rows:
            r["busbw_gb_s"] = {**r["busbw_gb_s"], "kind": "assumed", "source": like + "; " + r["busbw_gb_s"]["source"]}
    cc["p2p"]["sm_gb_s"] = published("b300-p2p", "cc_on", 645, 659)
    cc["p2p"]["ce_gb_s"] = published("b300-p2p", "cc_on", 645, 659, note="; engine not stated")
    small = published("b300-4k", "cc_on", scale=1, kind="derived", note=" less one submission (15.7) and one sync (1.67)")
    small.update(value=15.6, lo=4.5, hi=33)
    rate = published("b300-h2d", "cc_on", 4, 18.2, note="; lo: published.tsv kv-std, a TDX machine")
    one = copy(small, rate, True)
    other = copy(small, same(rate, "published for pinned H2D"), True)
    cc["copy"] = copies(one, other, other, other)
    cc["cpu_slowdown"] = tee_slowdown("sev-snp")
    platform = {"gpu": "NVIDIA B300", "gpus": 8, "partition": 8, "cpu": "AMD EPYC", "tee": "sev-snp", "mode": "encrypted NVLink",
                "driver": "595.91.07"}
    return {"schema": 1, "name": "b300-sev-snp", "platform": platform, "clear": clear, "confidential": cc,
            "capability": BLACKWELL_CC}


def rtx():
    sub = published("sub", "cc_off")
    like = assumed(sub["value"], "as b200-tdx: no clear run of this machine is published", 3, 7.4)
    sub_cc = assumed(15.7, "as b200-tdx: no submission cost of this machine is published", 3.45, 15.7)
    sync = assumed(1.62, "as b200-tdx", 1, 3)
    sync_cc = assumed(1.67, "as b200-tdx", 1, 3)
    p2p = (assumed(50, "PCIe 5 x16, 63 GB/s one way; one GPU needs none", 20, 63),
           assumed(50, "PCIe 5 x16, 63 GB/s one way; one GPU needs none", 20, 63), assumed(3.7, "as b200-tdx", 1, 10))
    rates = tflops(451, 451, 503, PUBLISHED["gemm"]["source"] + ", published.tsv gemm", "published", 2, 4,
                   fp32(120, "the server edition's data sheet:"))
    hbm = derived(1613, "90 % of the data sheet's 1792 GB/s (GDDR7)", 1434, 1792)
    memory = cost(96e9, "published", "data sheet: 96 GB", 94e9, 103e9)
    pcie = assumed(55.25, "PCIe 5 x16 as measured on H200", 45, 57)
    fixed = assumed(2.8, "as measured on H200", 1, 5)
    slow = assumed(7.5, "pageable as measured on H200", 5, 15)
    clear_copies = copies(copy(fixed, pcie, False), copy(fixed, slow, True), copy(fixed, pcie, False), copy(fixed, slow, True))
    small = published("copy-h2d-4KiB", "cc_on", kind="derived", note=": 15 us, whatever part of it is submission and sync; "
                      "lo: all of it is")
    small.update(value=4.5, lo=0, hi=15)
    h2d = derived(17.6, "published.tsv copy-h2d-1GiB; 19.1 at 16 MiB", 17.4, 19.1)
    d2h = derived(18.2, "published.tsv copy-h2d-1GiB note; 20.9 at 16 MiB", 18.2, 20.9)
    cc_copies = copies(copy(small, h2d, True), copy(small, same(h2d, "pageable assumed as pinned"), True),
                       copy(small, d2h, True), copy(small, same(d2h, "pageable assumed as pinned"), True))
    unaffected = "not affected by CC (published.tsv gemm: unaffected)"
    clear = column(like, "host", GRAPH, NODE, sync, FLOOR, clear_copies, p2p, {}, rates, hbm, memory, NO_RESERVE, NO_SLOWDOWN)
    cc = column(sub_cc, "host", assumed(14.75, "one submission's surcharge", 2.5, 91.5), NODE, sync_cc, FLOOR, cc_copies, p2p, {},
                rates, hbm, memory, assumed(700e6, "as published for B200 (vram)", 0, 1e9), tee_slowdown("sev-snp"))
    for key in ("kernel_floor_us", "hbm_gb_s", "memory_bytes"):
        cc[key] = same(cc[key], unaffected)
    platform = {"gpu": "NVIDIA RTX PRO 6000 Blackwell", "gpus": 1, "partition": 1, "cpu": "AMD EPYC", "tee": "sev-snp",
                "mode": "one GPU", "driver": "595.91.07"}
    return {"schema": 1, "name": "rtx-pro-6000-sev-snp", "platform": platform, "clear": clear, "confidential": cc,
            "capability": BLACKWELL_CC}


def h200():
    rings = {4: (363.3, "4 x H200, public nccl-tests all_reduce, large messages"),
             8: (365.6, "8 x H200, public nccl-tests all_reduce, NVLS off, large messages")}
    nvls = {n: (bw, f"{n} x H200, public nccl-tests all_reduce with NVLS, large messages")
            for n, bw in ((5, 414.2), (6, 435.6), (7, 460.0), (8, 473.1))}
    rings |= {n: (365, "between 363.3 at 4 and 365.6 at 8 GPUs") for n in (5, 6, 7)}
    others = {n: (bw, source + "; assumed the same for this operation") for n, (bw, source) in rings.items() if n in (4, 8)}
    a2a = (330, 165, 371, "2 x H200 reach 335 (tests/data/h200x2/nccl-tests-2.28.3.tsv alltoall); NCCL's model 370.8")

    def table(with_nvls):
        t = collectives(rings, nvls if with_nvls else None, others, a2a, None, None, "", "")
        for op in ("all_reduce", "all_gather", "reduce_scatter"):
            t[op] = h200_rows(op) + t[op]
        for op in ("all_to_all", "all_to_allv"):
            t[op] = h200_all_to_all() + t[op]
        return t
    clear_links = "Hopper does not encrypt NVLink (protected PCIe): as clear"
    rates = tflops(715, 680, 794.5, "tests/data/h200x2/steps.txt: prefill and training steps 686 to 716, 8192^3 728; the best "
                   "published product reaches 794.5 of 989 dense", "measured", 2, None,
                   cost(51.1, "measured", "one H200, 2026-12-01, cctax probe: 8192^3 without tensor cores, of 67 on the data sheet", 51.0, 67))
    hbm = cost(3000, "measured", "tests/data/h200x2/steps.txt: what decode steps in a graph reach over all their kernels, 2920 to "
               "3170; one long kernel reaches about 3900", 2920, 3900)
    memory = cost(141e9, "published", "data sheet: 141 GB", 139e9, 151e9)
    p2p = (cost(395.8, "measured", UNIT + "; 1 GiB read, copy engine", 390.7, 396.4),
           cost(372.7, "measured", UNIT + "; 1 GiB read, SM", 367.1, 372.7), cost(0.69, "measured", UNIT + "; ping-pong one way"))
    floor = cost(1.37, "measured", "a one-thread kernel on this H200: 1.37 us eager, 0.55 in a graph, 2026-11-30", 0.55, 1.4)
    clear = column(cost(3.3, "measured", UNIT + "; bursts of 10 to 500", 3.15, 3.39), "host", GRAPH, NODE,
                   cost(1.38, "measured", UNIT + "; bare"), floor, h200_copies(), p2p, table(True), rates, hbm, memory, NO_RESERVE,
                   NO_SLOWDOWN)
    fixed = assumed(4.5, "as b200-tdx (published.tsv h2d-small)", 3, 6)
    rate = cost(5.26, "published", "vLLM issue 55428: about 4.9 GiB/s from cudaHostAlloc memory, H200, TDX", 3.5, 9.5)
    one, rest = copy(fixed, rate, True), copy(fixed, same(rate, "published for pinned H2D"), True)
    cc = column(assumed(3.3 + 12.25, "the surcharge as b200-tdx (published.tsv sub): none is published for Hopper", 3.3, 15.7), "host",
                assumed(14.75, "one submission's surcharge", 2.5, 91.5), NODE, assumed(1.43, "+0.05 us as published.tsv sync", 1.38, 3),
                floor, copies(one, rest, rest, rest), tuple(same(c, clear_links) for c in p2p), table(False), rates, hbm, memory,
                assumed(700e6, "as published for B200 (vram)", 0, 1e9), tee_slowdown("tdx"))
    for rows in cc["collective"].values():
        for r in rows:
            for key in ("toll_us_eager", "toll_us_graph", "busbw_gb_s"):
                r[key] = same(r[key], clear_links)
    for key in ("kernel_floor_us", "hbm_gb_s", "memory_bytes"):
        cc[key] = same(cc[key], "assumed not affected by CC")
    platform = {"gpu": "NVIDIA H200", "gpus": 8, "partition": 8, "cpu": "Intel Xeon", "tee": "tdx", "mode": "protected PCIe",
                "driver": "580.159.04"}
    return {"schema": 1, "name": "h200", "platform": platform, "clear": clear, "confidential": cc,
            "capability": {"multicast": False, "work_fifo": False, "async_copy": False, "host_register": False, "gdr": False}}


def no_faster(profile):
    """A bounce copy does all that a clear copy does; an assumed rate above the clear one is held at that."""
    profile = json.loads(json.dumps(profile))  # entries that were one object so far become their own
    for direction in ("h2d", "d2h"):
        for memory in ("pinned", "pageable"):
            clear, cc = (profile[c]["copy"][direction][memory] for c in ("clear", "confidential"))
            for key, worse in (("fixed_us", max), ("gb_s", min)):
                was, bound = cc[key], clear[key]["value"]
                if worse(was["value"], bound) != was["value"]:
                    cc[key] = {"value": bound, "lo": min(was["lo"], bound), "hi": max(bound, was["hi"]), "kind": "assumed",
                               "source": "held at the clear column's, since a bounce copy does no less; " + was["source"]}
    return profile


def main():
    profiles = [no_faster(p) for p in [
        b200("b200-tdx", 1, 12.25, "arXiv 2608.26575 section 5.2, published.tsv sub cc_on 15.7, one-GPU partition", 15.7, 34.45),
        b200("b200x8-tdx", 8, 31, "arXiv 2608.26575 section 5.2, published.tsv sub8: +31 us in the 8-GPU partition on sub's 3.45",
             15.7, 34.45),
        b300(), rtx(), h200()]]
    stale = 0
    for profile in profiles:
        path = ROOT / "data/profiles" / (profile["name"] + ".json")
        text = json.dumps(profile, indent=1) + "\n"
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.relative_to(ROOT)}: differs from what scripts/profiles.py writes; run it and look at the change")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Random legal jobs: up to 8 ranks, 3 GPU and 2 host lanes, 200 entries. All ranks follow one order of shared events
(collectives, message rounds, graphs, cases), which keeps them free of deadlock; lanes, waits and the work between differ by
role. Slot 0 is a load, slot 1 the form that cases go by."""
import random

TYPES = ["bf16", "fp8", "fp32", "nvfp4"]
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_allv", "broadcast", "reduce"]


class Program:
    def __init__(self, rng, name):
        self.rng, self.name = rng, name
        kinds = ["stream"] * rng.randint(1, 3) + ["host"] * rng.randint(1, 2)
        rng.shuffle(kinds)
        self.streams = [i for i, k in enumerate(kinds) if k == "stream"]
        self.hosts = [i for i, k in enumerate(kinds) if k == "host"]
        self.lanes = [{"name": f"{k}{i}", "kind": k} for i, k in enumerate(kinds)]
        self.ops = []
        self.graph = None      # entry of the open GRAPH
        self.awaitable = {None: []}  # by graph: entries that a wait may name
        self.case = None
        self.stretchable = []  # (entry, the case it stands in)

    def add(self, op, is_awaitable=True):
        self.ops.append(op)
        if is_awaitable:
            self.awaitable[self.graph].append(len(self.ops) - 1)
        return len(self.ops) - 1

    def places(self, waits=True, host_only=False):
        rng, place = self.rng, {}
        if not host_only:
            place["lane"] = rng.choice(self.streams)
        if self.graph is None:
            place["host"] = rng.choice(self.hosts)
        choices = self.awaitable[self.graph]
        if waits and choices and rng.random() < 0.4:
            recent = choices[-12:]
            place["waits"] = sorted(set(rng.choice(recent) for _ in range(rng.randint(1, 3))))
        return place

    def amount(self, value):
        return value if self.rng.random() < 0.7 else {"base": value // 2, "per": value // 8, "slot": 0}

    def work(self):
        rng = self.rng
        kind = rng.choice(["gemm", "gemm", "attention", "elementwise", "launch", "stamp", "copy", "delay", "hostwork", "sync",
                           "hostdelay", "phase"])
        if self.graph is not None and kind in ("hostwork", "sync", "hostdelay"):
            kind = "launch"
        size = int(10 ** rng.uniform(3, 8))
        if kind == "gemm":
            i = self.add({"op": "gemm", **self.places(), "m": self.amount(rng.randint(8, 256)), "n": rng.choice([512, 4096]),
                          "k": rng.choice([512, 7168]), "groups": rng.choice([1, 1, 8]), "type": rng.choice(TYPES)})
        elif kind == "attention":
            i = self.add({"op": "attention", **self.places(), "flops": self.amount(size * 100), "kv_bytes": size,
                          "type": "bf16"})
        elif kind == "elementwise":
            i = self.add({"op": "elementwise", **self.places(), "bytes": self.amount(size)})
        elif kind in ("launch", "stamp"):
            i = self.add({"op": kind, **self.places()})
        elif kind == "copy":
            op = {"op": "copy", **self.places(), "direction": rng.choice(["h2d", "d2h", "d2d", "p2p"]), "bytes": size // 10}
            if op["direction"] == "p2p" and self.graph is None:
                op |= {"group": 0, "peer": 0}
            elif op["direction"] == "p2p":
                op["direction"] = "d2d"
            elif self.graph is None and op["direction"] != "d2d":
                op["memory"] = rng.choice(["pinned", "pageable"])
                op["blocking"] = rng.random() < 0.5
            i = self.add(op)
        elif kind == "delay":
            op = {"op": "delay", **self.places(), "ns": rng.randint(0, 30000)}
            stretchable = [i for i, case in self.stretchable if case in (None, self.case)]
            if stretchable and rng.random() < 0.5:
                op |= {"ns": rng.randint(-3000, 3000), "stretch": rng.choice([0.25, 1.5, -0.125]),
                       "of": rng.choice(stretchable)}
            self.add(op)
            return
        elif kind == "hostwork":
            self.add({"op": "hostwork", **self.places(host_only=True), "ns": rng.randint(0, 40000)})
            return
        elif kind == "hostdelay":
            self.add({"op": "delay", **self.places(host_only=True), "ns": rng.randint(0, 20000)})
            return
        elif kind == "sync":
            self.add({"op": "sync", **self.places()})
            return
        else:
            self.add({"op": "phase", "name": "part"}, is_awaitable=False)
            self.work() if len(self.ops) < 150 else None
            self.add({"op": "end"}, is_awaitable=False)
            return
        self.stretch(i)

    def stretch(self, i):
        self.stretchable.append((i, self.case))

    def open_case(self, value):
        self.case = self.add({"op": "case", "slot": 1, "value": value}, is_awaitable=False)

    def close_case(self):
        self.case = None
        self.add({"op": "end"}, is_awaitable=False)

    def open_graph(self):
        at = self.add({"op": "graph", **self.places(), "key": len(self.ops)})
        self.graph = at
        self.awaitable[at] = []

    def close_graph(self):
        self.graph = None
        self.add({"op": "end"}, is_awaitable=False)

    def group(self, inside):
        place = self.places()
        at = self.add({"op": "group", **place})
        fixed = {k: v for k, v in place.items() if k != "waits"}
        for op in inside:
            self.add({**op, **fixed}, is_awaitable=False)
        self.add({"op": "end"}, is_awaitable=False)
        self.stretch(at)

    def finish(self):
        """Joins every lane and lets some entries wait for the repetition before."""
        for lane in self.streams:
            self.add({"op": "sync", "lane": lane, "host": self.rng.choice(self.hosts)})
        outside = [i for i in self.awaitable[None]]
        for i in outside:
            if self.rng.random() < 0.08:
                self.ops[i].setdefault("waits", []).append(f"prev:{self.rng.choice(outside)}")
        return {"name": self.name, "lanes": self.lanes, "buffers": [], "ops": self.ops}


def collective(rng, n_groups):
    op = {"op": "collective", "kind": rng.choice(COLLECTIVES), "group": rng.randrange(n_groups),
          "bytes": int(10 ** rng.uniform(3, 8)), "type": rng.choice(["bf16", "fp32"])}
    if op["kind"] == "all_reduce":
        op["algorithm"] = rng.choice(["auto", "oneshot", "twoshot"])
    return op


def uneven(rng, op):
    """Members of an all_to_allv may bring different amounts; of every other collective the same by default."""
    if op["kind"] == "all_to_allv":
        return {**op, "bytes": int(op["bytes"] * rng.uniform(0.5, 2))}
    return {**op, "bytes": {"base": 0, "per": op["bytes"] // 4, "slot": 0}} if op["bytes"] % 2 else op


def ring(rng, groups):
    """Messages that every role can carry: to the member `o` ahead, from the member `o` behind."""
    g = rng.choice([i for i, group in enumerate(groups) if group["size"] > 1])
    pairs = []
    for _ in range(rng.randint(1, 3)):
        o, size = rng.randint(1, groups[g]["size"] - 1), rng.randint(1, 10**7)
        pairs += [{"op": "send", "group": g, "peer_offset": o, "bytes": size},
                  {"op": "recv", "group": g, "peer_offset": -o, "bytes": size}]
    return pairs


def scatter(rng, groups, ranks):
    """Messages between any members, for jobs whose every rank has its own program: by rank."""
    g = rng.choice([i for i, group in enumerate(groups) if group["size"] > 1])
    size, stride = groups[g]["size"], groups[g]["stride"]
    by_rank = [[] for _ in range(ranks)]
    for _ in range(rng.randint(1, 2 * ranks)):
        a = rng.randrange(ranks)
        o, amount = rng.randint(1, size - 1), rng.randint(1, 10**7)
        index = a // stride % size
        b = a + ((index + o) % size - index) * stride
        by_rank[a].append({"op": "send", "group": g, "peer_offset": o - rng.choice([0, size]), "bytes": amount})
        by_rank[b].append({"op": "recv", "group": g, "peer_offset": -o, "bytes": amount})
    return by_rank


def job(seed):
    rng = random.Random(seed)
    ranks = rng.choice([1, 2, 2, 3, 4, 4, 6, 8, 8])
    shapes = [(s, t) for s in range(1, ranks + 1) for t in range(1, ranks + 1) if ranks % (s * t) == 0]
    groups = [{"name": f"g{s}x{t}", "size": s, "stride": t} for s, t in rng.sample(shapes, min(len(shapes), rng.randint(1, 3)))]
    n_roles = rng.choice([1, min(2, ranks), ranks])
    cuts = sorted(rng.sample(range(1, ranks), n_roles - 1))
    firsts = [0] + cuts
    programs = [Program(rng, f"role{i}") for i in range(n_roles)]
    limit = rng.choice([10, 30, 60, 120, 185])
    has_pairs = any(g["size"] > 1 for g in groups)
    in_graph = in_case = 0
    cases = rng.choice([[], [0, 1], [1, 2]])
    form = rng.choice([0, 1, 2])
    while max(len(p.ops) for p in programs) < limit:
        for p in programs:
            for _ in range(rng.randint(0, 4)):
                p.work()
        event = rng.random()
        if in_case:
            in_case -= 1
            if not in_case:
                for p in programs:
                    p.close_graph() if in_graph else None
                    p.close_case()
                in_graph = 0
        elif cases and not in_graph and rng.random() < 0.3:
            in_case, value = rng.randint(1, 6), rng.choice(cases)
            for p in programs:
                p.open_case(value)
        if in_graph:
            in_graph -= 1
            if not in_graph:
                for p in programs:
                    p.close_graph()
        elif event < 0.2:
            in_graph = rng.randint(1, 4)
            for p in programs:
                p.open_graph()
        if event < 0.45:
            op = collective(rng, len(groups))
            for p in programs:
                p.stretch(p.add({**uneven(rng, op), **p.places()}))
        elif event < 0.55:
            ops = [collective(rng, len(groups)) for _ in range(rng.randint(1, 3))]
            for p in programs:
                p.group([uneven(rng, op) for op in ops])
        elif event < 0.8 and has_pairs:
            if n_roles == ranks and rng.random() < 0.7:
                for p, ops in zip(programs, scatter(rng, groups, ranks)):
                    p.group(ops)
            else:
                ops = ring(rng, groups)
                for p in programs:
                    p.group(ops)
    roles = []
    for i, p in enumerate(programs):
        if in_graph:
            p.close_graph()
        if in_case:
            p.close_case()
        last = firsts[i + 1] if i + 1 < n_roles else ranks
        roles.append({"first": firsts[i], "count": last - firsts[i], "program": p.finish()})
        roles[-1]["program"]["slots"] = [{"name": "load", "value": 4}, {"name": "form", "value": form}]
    return {"schema": 1, "ranks": ranks, "groups": groups, "roles": roles}

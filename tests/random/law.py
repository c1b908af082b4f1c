# SPDX-License-Identifier: Apache-2.0
"""The timing law of workloads/program/program.h, written a second time from its text, as a fixpoint over a printed job: all
times start at 0 and every rule is applied, over and over, until none changes anything. Slow and plain on purpose; it knows
nothing of how sim works. Durations (submission, run, is_blocking of each entry) are given."""

GPU = {"gemm", "attention", "elementwise", "collective", "send", "recv", "copy", "launch", "stamp"}
BRACKETS = {"graph", "phase", "group"}


class Rank:
    """One rank's program with the brackets resolved, and its clocks of one repetition."""

    def __init__(self, job, rank, role, durations):
        self.job, self.rank, self.durations = job, rank, durations
        self.program = role["program"]
        self.ops = [{k: v for k, v in op.items() if (k, v) not in (("lane", -1), ("host", -1))} for op in self.program["ops"]]
        self.lanes = self.program["lanes"]
        n = len(self.ops)
        self.graph, self.group, self.end_of = [None] * n, [None] * n, {}
        stack = []
        for i, op in enumerate(self.ops):
            if op["op"] == "end":
                self.end_of[stack.pop()] = i
            self.graph[i] = next((b for b in stack if self.ops[b]["op"] == "graph"), None)
            self.group[i] = next((b for b in stack if self.ops[b]["op"] == "group"), None)
            if op["op"] in BRACKETS:
                stack.append(i)
        self.carry = {lane: 0 for lane in range(len(self.lanes))}  # H and G at the end of the repetition before
        self.last_end = None                                       # ends of the repetition before
        self.start, self.end, self.host_after, self.ready = [0] * n, [0] * n, [0] * n, [0] * n
        self.link()

    def link(self):
        """Who precedes whom: on the host lane, on the GPU lane (in the same graph), and for SYNC on the lane it names."""
        self.before_on_host, self.before_on_lane, host, lane = {}, {}, {}, {}
        for i, op in enumerate(self.ops):
            if op["op"] in ("phase", "end") or self.group[i] is not None:
                continue
            if "host" in op:
                self.before_on_host[i] = host.get(op["host"])
                host[op["host"]] = i
            if op["op"] == "sync":
                self.before_on_lane[i] = lane.get((None, op["lane"]))
            elif "lane" in op:
                key = (self.graph[i], op["lane"])
                self.before_on_lane[i] = lane.get(key)
                lane[key] = i
        self.last_on_host, self.last_on_lane = host, {l: i for (g, l), i in lane.items() if g is None}

    def waits(self, i):
        latest = 0
        for wait in self.ops[i].get("waits", []):
            if isinstance(wait, int):
                latest = max(latest, self.end[wait])
            elif self.last_end is not None:
                latest = max(latest, self.last_end[int(wait.removeprefix("prev:"))])
        return latest

    def h(self, i):
        before = self.before_on_host[i]
        return self.carry[self.ops[i]["host"]] if before is None else self.host_after[before]

    def g(self, i):
        before = self.before_on_lane[i]
        if before is not None:
            return self.end[before]
        # a graph's branches are empty at its start; a lane goes on where the repetition before left it
        return self.start[self.graph[i]] if self.graph[i] is not None else self.carry[self.ops[i]["lane"]]

    def apply(self, i, decided):
        """Applies the rules to entry i; `decided` has (start, end) of what other ranks share."""
        op, kind = self.ops[i], self.ops[i]["op"]
        submit, run, is_blocking = self.durations[i]
        old = (self.start[i], self.end[i], self.host_after[i], self.ready[i])
        if kind in ("phase", "end"):
            return False
        if self.group[i] is not None:  # rule 5
            opened = self.group[i]
            follows = kind == "collective" and i > opened + 1
            self.ready[i] = self.end[i - 1] if follows else self.start[opened]
            self.start[i], self.end[i] = decided.get(i, (0, 0))
        elif kind in ("hostwork",) or (kind == "delay" and "lane" not in op):  # rules 1, 2
            self.start[i] = max(self.h(i), self.waits(i))
            self.end[i] = self.host_after[i] = self.start[i] + run
        elif kind == "sync":  # rule 7
            self.start[i] = max(self.h(i), self.g(i), self.waits(i))
            self.end[i] = self.host_after[i] = self.start[i] + run
        else:  # rules 1, 2, 4, 5, 6
            submitted = self.h(i) + submit if "host" in op else 0
            ready = max(submitted, self.g(i), self.waits(i))
            self.ready[i] = ready
            if kind == "collective":
                self.start[i], self.end[i] = decided.get(i, (0, 0))
            else:
                self.start[i] = ready
                if kind in ("group", "graph"):
                    inside = range(i + 1, self.end_of[i])
                    self.end[i] = max([ready] + [self.end[k] for k in inside if self.ops[k]["op"] not in ("phase", "end")])
                else:
                    self.end[i] = ready + run
            if "host" in op:
                self.host_after[i] = self.end[i] if is_blocking else submitted
        return old != (self.start[i], self.end[i], self.host_after[i], self.ready[i])

    def finish(self):
        for lane, i in self.last_on_host.items():
            self.carry[lane] = self.host_after[i]
        for lane, i in self.last_on_lane.items():
            self.carry[lane] = self.end[i]
        self.last_end = list(self.end)
        n = len(self.ops)
        self.spans = [(-1, -1) if op["op"] in ("phase", "end") else (self.start[i], self.end[i])
                      for i, op in enumerate(self.ops)]
        self.start, self.end, self.host_after, self.ready = [0] * n, [0] * n, [0] * n, [0] * n


def members(group, rank):
    size, stride = group["size"], group["stride"]
    first = rank - rank // stride % size * stride
    return [first + i * stride for i in range(size)]


def partners(job, ranks):
    """Rule 4: lists of (rank, entry) that start together and end together."""
    meetings = []
    for g, group in enumerate(job["groups"]):
        for first in {members(group, rank)[0] for rank in range(job["ranks"])}:
            instance = members(group, first)
            collectives = [[i for i, op in enumerate(ranks[r].ops) if op["op"] == "collective" and op["group"] == g]
                           for r in instance]
            meetings += [list(zip(instance, entries)) for entries in zip(*collectives)]

            def messages(kind, at, to):
                return [(instance[at], i) for i, op in enumerate(ranks[instance[at]].ops)
                        if op["op"] == kind and op["group"] == g and (at + op["peer_offset"]) % len(instance) == to]
            for a in range(len(instance)):
                for b in range(len(instance)):
                    meetings += [list(pair) for pair in zip(messages("send", a, b), messages("recv", b, a))]
    return meetings


def solve(job, durations, repetitions, closing_sync):
    """Per rank: (burst ns, spans of the last repetition). `durations[rank]` as bound."""
    roles = {}
    for role in job["roles"]:
        for rank in range(role["first"], role["first"] + role["count"]):
            roles[rank] = role
    ranks = [Rank(job, r, roles[r], durations[r]) for r in range(job["ranks"])]
    meetings = partners(job, ranks)
    longest = max(len(r.ops) for r in ranks)
    for _ in range(repetitions):
        decided = [{} for _ in ranks]
        moving, sweeps = set(range(len(ranks))), 0  # ranks that something may still change for
        while moving:
            changed = set()
            for i in range(longest):
                for r in moving:
                    if i < len(ranks[r].ops) and ranks[r].apply(i, decided[r]):
                        changed.add(r)
            for meeting in meetings:
                start = max(ranks[r].ready[i] for r, i in meeting)
                end = start + max(durations[r][i][1] for r, i in meeting)
                for r, i in meeting:
                    if decided[r].get(i) != (start, end):
                        decided[r][i] = (start, end)
                        changed.add(r)
            moving, sweeps = changed, sweeps + 1
            if sweeps > 20000:
                raise RuntimeError("the times grow for ever: a deadlock")
        for r in ranks:
            r.finish()
    return [(max(r.carry.values()) + closing_sync, r.spans) for r in ranks]

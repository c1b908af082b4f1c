# SPDX-License-Identifier: Apache-2.0
"""The timing law of workloads/program/program.h, written a second time from its text, as a fixpoint over a printed job: no
time is known at first, every rule is applied as soon as all that it names is known, and in the end every rule once more, which
must change nothing. Plain on purpose; it knows nothing of how sim works. Durations (submission, run, is_blocking of each entry)
are given."""
import pathlib
import re

HEADER = pathlib.Path(__file__).parents[2] / "workloads/backends/backend.h"
DEPTH = int(re.search(r"CCT_SEQUENCE_DEPTH = (\d+)", HEADER.read_text())[1])  # steps whose bindings are kept

GPU = {"gemm", "attention", "elementwise", "collective", "send", "recv", "copy", "launch", "stamp"}
BRACKETS = {"graph", "phase", "group", "case"}
TIMELESS = ("phase", "case", "end")


class Rank:
    """One rank's program with the brackets resolved, and its clocks of one repetition."""

    def __init__(self, job, rank, role):
        self.job, self.rank = job, rank
        self.program = role["program"]
        self.ops = [{k: v for k, v in op.items() if (k, v) not in (("lane", -1), ("host", -1))} for op in self.program["ops"]]
        self.lanes = self.program["lanes"]
        n = len(self.ops)
        self.graph, self.group, self.case, self.end_of = [None] * n, [None] * n, [None] * n, {}
        stack = []
        for i, op in enumerate(self.ops):
            if op["op"] == "end":
                self.end_of[stack.pop()] = i
            self.graph[i] = next((b for b in stack if self.ops[b]["op"] == "graph"), None)
            self.group[i] = next((b for b in stack if self.ops[b]["op"] == "group"), None)
            within = next((self.ops[b] for b in stack if self.ops[b]["op"] == "case"), None)
            self.case[i] = (within["slot"], within["value"]) if within else None
            if op["op"] in BRACKETS:
                stack.append(i)
        self.carry = {lane: 0 for lane in range(len(self.lanes))}  # H and G at the end of the repetition before
        self.last_end = None                                       # ends of the repetition before
        self.hosts = [lane for lane, of in enumerate(self.lanes) if of["kind"] == "host"]

    def bind(self, turn):
        """Law 9: what these slots perform. In a sequence its host lanes begin when the step is asked for."""
        self.durations = turn["durations"]
        self.is_there = [case is None or turn["slots"][case[0]] == case[1] for case in self.case]
        self.now = None
        if "not_before_ns" in turn:
            asked = self.carry[self.hosts[0]]
            for lane in self.hosts:
                self.carry[lane] = max(self.carry[lane], asked)
            self.carry[self.hosts[0]] = max(self.carry[self.hosts[0]], turn["not_before_ns"])
            self.now = asked
        self.link()
        n = len(self.ops)
        self.start, self.end, self.host_after, self.ready = [None] * n, [None] * n, [None] * n, [None] * n
        self.unknown = [i for i, op in enumerate(self.ops) if op["op"] not in TIMELESS and self.is_there[i]]
        for i in set(range(n)) - set(self.unknown):
            self.end[i] = 0  # whoever waits for it waits for time 0

    def link(self):
        """Who precedes whom: on the host lane, on the GPU lane (in the same graph), and for SYNC on the lane it names."""
        self.before_on_host, self.before_on_lane, host, lane = {}, {}, {}, {}
        for i, op in enumerate(self.ops):
            if op["op"] in TIMELESS or self.group[i] is not None or not self.is_there[i]:
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
        """Applies the rules to entry i as far as what they name is known; whether that changed anything. `decided` has (start,
        end) of what other ranks share."""
        old = (self.start[i], self.end[i], self.host_after[i], self.ready[i])
        try:
            self.rules(i, decided)
        except TypeError:  # of None, which has neither sum nor maximum
            pass
        return old != (self.start[i], self.end[i], self.host_after[i], self.ready[i])

    def advance(self, decided):
        """The rules to all that is not known; on a host lane nothing is before what precedes it is."""
        is_changed, left, stuck = False, [], set()
        for i in self.unknown:
            host = self.ops[i].get("host") if i in self.before_on_host else None
            if host not in stuck:
                is_changed |= self.apply(i, decided)
                if host is not None and self.host_after[i] is None:
                    stuck.add(host)
            if self.end[i] is None or host is not None and self.host_after[i] is None:
                left.append(i)
        self.unknown = left
        return is_changed

    def rules(self, i, decided):
        op, kind = self.ops[i], self.ops[i]["op"]
        submit, run, is_blocking = self.durations[i]
        if self.group[i] is not None:  # rule 5
            opened = self.group[i]
            follows = kind == "collective" and i > opened + 1
            self.ready[i] = self.end[i - 1] if follows else self.start[opened]
            self.start[i], self.end[i] = decided.get(i, (None, None))
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
                self.start[i], self.end[i] = decided.get(i, (None, None))
            else:
                self.start[i] = ready
                if kind in ("group", "graph"):
                    inside = range(i + 1, self.end_of[i])
                    self.end[i] = max([ready] + [self.end[k] for k in inside if self.ops[k]["op"] not in TIMELESS])
                else:
                    self.end[i] = ready + run
            if "host" in op:
                self.host_after[i] = self.end[i] if is_blocking else submitted

    def finish(self):
        for lane, i in self.last_on_host.items():
            self.carry[lane] = self.host_after[i]
        for lane, i in self.last_on_lane.items():
            self.carry[lane] = self.end[i]
        self.last_end = list(self.end)
        self.spans = [(-1, -1) if op["op"] in TIMELESS or not self.is_there[i] else (self.start[i], self.end[i])
                      for i, op in enumerate(self.ops)]


def members(group, rank):
    size, stride = group["size"], group["stride"]
    first = rank - rank // stride % size * stride
    return [first + i * stride for i in range(size)]


def partners(job, ranks):
    """Rules 4 and 9: lists of (rank, entry) that start together and end together, the n-th of each case with the n-th."""
    meetings = []

    def meet(*lists):  # of (rank, entry)
        cases = {ranks[r].case[i] for entries in lists for r, i in entries}
        for case in cases:
            of_case = [[(r, i) for r, i in entries if ranks[r].case[i] == case] for entries in lists]
            meetings.extend(list(pair) for pair in zip(*of_case))
    for g, group in enumerate(job["groups"]):
        for first in {members(group, rank)[0] for rank in range(job["ranks"])}:
            instance = members(group, first)
            meet(*[[(r, i) for i, op in enumerate(ranks[r].ops) if op["op"] == "collective" and op["group"] == g]
                   for r in instance])

            def messages(kind, at, to):
                return [(instance[at], i) for i, op in enumerate(ranks[instance[at]].ops)
                        if op["op"] == kind and op["group"] == g and (at + op["peer_offset"]) % len(instance) == to]
            for a in range(len(instance)):
                for b in range(len(instance)):
                    meet(messages("send", a, b), messages("recv", b, a))
    return meetings


def decide(ranks, decided, meeting):
    """Start and end of what these ranks share, once all are ready."""
    ready = [ranks[r].ready[i] for r, i in meeting]
    if None in ready:
        return False
    end = max(ready) + max(ranks[r].durations[i][1] for r, i in meeting)
    for r, i in meeting:
        decided[r][i] = (max(ready), end)
    return True


def solve(job, turns, closing_sync):
    """turns[k][rank]: the slots and durations of repetition k as bound, with `not_before_ns` where it is a step of a sequence.
    Per rank: (burst ns, of each repetition (spans, host lanes' ends, when it was asked for))."""
    roles = {}
    for role in job["roles"]:
        for rank in range(role["first"], role["first"] + role["count"]):
            roles[rank] = role
    ranks = [Rank(job, r, roles[r]) for r in range(job["ranks"])]
    all_meetings = partners(job, ranks)
    told = [[] for _ in ranks]
    for turn in turns:
        for r, of_rank in zip(ranks, turn):
            r.bind(of_rank)
        meetings = [m for m in all_meetings if all(ranks[r].is_there[i] for r, i in m)]
        decided = [{} for _ in ranks]
        is_changed = True
        while is_changed:
            is_changed = False
            for r, of_rank in zip(ranks, decided):
                is_changed |= r.advance(of_rank)
            is_changed |= any([decide(ranks, decided, meeting) for meeting in meetings if meeting[0][1] not in decided[meeting[0][0]]])
        if any(r.unknown for r in ranks):
            raise RuntimeError("times that nothing gives: a deadlock")
        for r, of_rank in zip(ranks, decided):
            if any(r.apply(i, of_rank) for i, op in enumerate(r.ops) if op["op"] not in TIMELESS and r.is_there[i]):
                raise RuntimeError("a rule does not hold of the times in the end")
        for r, answers in zip(ranks, told):
            r.finish()
            answers.append((r.spans, [r.carry[lane] for lane in r.hosts], r.now))
    return [(max(r.carry.values()) + closing_sync, answers) for r, answers in zip(ranks, told)]

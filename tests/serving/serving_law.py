#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serving_law.py SERVING_PRINT [COUNT [FIRST]]: the law of workloads/serving (scheduler.h, engine.h) written a second time, and
every batch of random workloads held against it: who works on how many tokens from where, what is emitted, blocks in use,
pre-emptions, copies, and when each step may begin."""
import json
import subprocess
import sys

MASK, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(seed, counter):
    return mix((mix(seed) + GOLDEN * (counter + 1)) & MASK)


def fold(seed, coordinate):
    return draw(seed ^ GOLDEN, coordinate)


class Request:
    def __init__(self, number, row):
        self.number = number
        self.arrival, self.input, self.output = row
        self.generated = self.computed = self.blocks = 0
        self.rejected, self.worked_in = 0, None  # of the last step that worked on it, and which that was
        self.is_unseen = False  # it has ended by drafts, which is not known

    def missing(self):
        return self.input + self.generated - self.computed


class Replica:
    def __init__(self, case, number):
        self.case, self.number = case, number
        rows = list(enumerate(case["requests"]))[number::case["replicas"]]
        self.coming = [Request(i, row) for i, row in rows]
        self.waiting, self.running = [], []
        self.free = case["blocks"]
        self.back = []  # (step in front of which they come back, blocks)
        self.ends = []  # step in which each ended
        c, n = case["concurrency"], case["replicas"]
        self.share = c // n + (1 if number < c % n else 0)
        self.entered = self.steps = 0
        self.undelivered = False

    def enter(self, step, at, now):
        how, lag = self.case["arrivals"], self.case["lag"]
        while self.coming:
            request = self.coming[0]
            if how == "closed":
                due = self.entered < self.share + sum(1 for end in self.ends if end < step - lag)
            else:
                due = how == "zero" or request.arrival <= (at if how == "steps" else now)
            if not due:
                break
            self.waiting.append(self.coming.pop(0))
            self.entered += 1

    def has_work(self):
        return bool(self.waiting or self.running or self.undelivered)

    def want(self, r):
        return 1 + self.case["drafts"] if r.generated and r.missing() == 1 else r.missing()

    def reach(self, r, tokens):
        """Cache places for `tokens` more, of which those of the step before are all taken for accepted where that is not known."""
        unseen = r.rejected if self.case["lag"] and r.worked_in == self.steps - 1 else 0
        return -(-(r.computed + unseen + tokens) // 16)

    def step(self):
        case, s = self.case, self.steps
        self.free += sum(blocks for due, blocks in self.back if due == s)
        budget, members, out, back, preempted = case["tokens"], [], 0, 0, 0
        self.moves = []
        queue = list(self.running)
        while queue and budget:
            r = queue.pop(0)
            tokens = min(self.want(r), budget)
            fits = True
            while self.reach(r, tokens) - r.blocks > self.free:
                victim = self.running.pop()
                if victim in queue:
                    queue.remove(victim)
                preempted += 1
                if case["offload"]:
                    out += -(-victim.computed // 16)
                else:
                    victim.computed = 0
                self.free += victim.blocks
                victim.blocks = 0
                if victim.generated < victim.output:
                    self.waiting.insert(0, victim)
                if victim is r:
                    fits = False
                    break
            if not fits:
                break
            budget -= self.take(r, tokens, members)
        if not preempted:
            budget -= self.admit_arrived(budget, members)
        while not preempted and self.waiting and budget and len(self.running) < case["sequences"]:
            r = self.waiting[0]
            tokens = self.want(r)
            if tokens > budget and not case["chunked"]:
                break
            tokens = min(tokens, budget)
            if self.reach(r, tokens) > self.free:
                break
            self.waiting.pop(0)
            self.running.append(r)
            back += -(-r.computed // 16)
            budget -= self.take(r, tokens, members)
        if not preempted:
            self.begin_transfers()
        used = case["blocks"] - self.free
        late = [r for r in self.running if r.is_unseen]
        for r in late:  # by drafts of the step before, which are known now
            self.back.append((s + 1, r.blocks))
            r.blocks, r.is_unseen = 0, False
        for member in members:
            if member[0] not in late:
                self.conclude(member, s)
        self.running = [r for r in self.running if r.generated < r.output or r.is_unseen]
        self.undelivered = bool(case["lag"]) and any(m[3] for m in members)
        self.steps += 1
        self.is_stuck = not (members or preempted or any(due > s and blocks for due, blocks in self.back))
        batch = {"blocks": used, "preempted": preempted, "out": out, "in": back,
                 "members": [[m[0].number, *m[1:4]] for m in members]}
        return batch | ({"moves": self.moves} if self.moves else {})

    def admit_arrived(self, budget, members):
        return 0

    def begin_transfers(self):
        pass

    def take(self, r, tokens, members):
        more = max(0, self.reach(r, tokens) - r.blocks)
        self.free -= more
        r.blocks += more
        members.append([r, r.computed, tokens, 0, r.generated > 0 and r.missing() == 1])
        return tokens

    def conclude(self, member, s):
        r, _, tokens, _, is_decode = member
        drafts = tokens - 1 if is_decode else 0
        key, accepted = fold(fold(self.case["seed"], 4), r.number), 0
        while accepted < min(drafts, r.output - r.generated - 1) and (draw(key, r.generated + accepted) >> 11) * 2.0**-53 < self.case["acceptance"]:
            accepted += 1
        r.computed += tokens - (drafts - accepted)
        r.rejected, r.worked_in = drafts - accepted, s
        if r.missing() > 0:
            return
        member[3] = 1 + accepted
        r.generated += member[3]
        if r.generated == r.output:
            self.end(r, s, self.case["lag"] and accepted)

    def end(self, r, s, is_doubtful):
        """Ended by one token that was sure, it is not scheduled again; by drafts, it is, once."""
        self.ends.append(s)
        r.is_unseen = bool(is_doubtful)
        if not is_doubtful:
            self.back.append((s + 1 + self.case["lag"], r.blocks))
            r.blocks = 0


class Stage(Replica):
    """A replica of prompts, or of generation: what of its own it knows and tells, and what it hears."""

    def __init__(self, case, number, like):
        super().__init__(case | {"replicas": like}, number)
        self.all = {r.number: r for r in self.coming}
        self.real = {r.number: r.output for r in self.coming}
        self.is_stuck, self.looked, self.asked, self.moved_at, self.inbox = False, None, 0, [], []
        self.pending, self.moving, self.ended, self.heard_last = [], [], 0, 0

    def can_step(self):
        return self.has_work() and not self.is_stuck

    def moved(self, step, until):
        return step < len(self.moved_at) and (until is None or self.moved_at[step] <= until)


class Prompts(Stage):
    def __init__(self, case, number):
        super().__init__(case, number, case["prefills"])
        for r in self.coming:
            r.output = 1
        self.rooms = 0

    def admit_new(self, at, now):
        how, before = self.case["arrivals"], self.entered
        while self.coming:
            r = self.coming[0]
            until = at if how == "steps" else now
            if not (self.entered < self.share + self.rooms if how == "closed" else how == "zero" or r.arrival <= until):
                break
            self.waiting.append(self.coming.pop(0))
            self.entered += 1
        self.is_stuck &= self.entered == before

    def end(self, r, s, is_doubtful):
        self.pending.append((r, s))
        if self.real[r.number] == 1:
            super().end(r, s, is_doubtful)
        else:
            self.moves.append(r.number)

    def look(self, until):
        while self.pending:
            r, s = self.pending[0]
            is_single = self.real[r.number] == 1
            if s > self.steps - 1 - self.case["lag"] or (self.case["staged"] and not is_single and not self.moved(s, until)):
                break
            self.pending.pop(0)
            if is_single:
                self.rooms += 1
            else:
                yield "ready", r.number

    def wakes(self):
        if self.pending and self.case["staged"]:
            yield self.moved_at[self.pending[0][1]]
        if self.coming and self.case["arrivals"] == "seconds":
            yield self.coming[0].arrival

    def hear(self, kind, number):
        if kind == "read":
            self.free += self.all[number].blocks
            self.all[number].blocks = 0
            self.is_stuck = False
        else:
            self.rooms += 1


class Decodes(Stage):
    def __init__(self, case, number):
        super().__init__(case, number, case["decodes"])
        self.coming, self.handed, self.arrived, self.on_way = [], [], [], []

    def has_work(self):
        return bool(self.handed or self.arrived or self.on_way) or super().has_work()

    def hear(self, kind, number):
        r = self.all[number]
        r.computed, r.generated = r.input, 1
        self.handed.append(r)
        self.is_stuck = False

    def admit_new(self, at, now):
        pass

    def admit_arrived(self, budget, members):
        before = budget
        while self.arrived and budget and len(self.running) < self.case["sequences"]:
            tokens = self.want(self.arrived[0])
            if tokens > budget and not self.case["chunked"]:
                break
            r = self.arrived.pop(0)
            self.running.append(r)
            budget -= self.take(r, min(tokens, budget), members)
        return before - budget

    def begin_transfers(self):
        if not self.handed or self.waiting or self.on_way:
            return
        r = self.handed[0]
        blocks = -(-(r.input + self.want(r)) // 16)
        if len(self.running) + len(self.arrived) >= self.case["sequences"] or blocks > self.free:
            return
        self.free -= blocks
        r.blocks = blocks
        self.on_way.append((self.handed.pop(0), self.steps))
        self.moves.append(r.number)

    def end(self, r, s, is_doubtful):
        super().end(r, s, is_doubtful)
        self.pending.append((r, s))

    def look(self, until):
        while self.on_way and self.moved(self.on_way[0][1], until):
            r, _ = self.on_way.pop(0)
            self.arrived.append(r)
            self.is_stuck = False
            yield "read", r.number
        while self.pending and self.pending[0][1] <= self.steps - 1 - self.case["lag"]:
            r, _ = self.pending.pop(0)
            if self.case["arrivals"] == "closed":
                yield "ended", r.number

    def wakes(self):
        if self.on_way:
            yield self.moved_at[self.on_way[0][1]]


def stages_of(case):
    return [Prompts(case, i) for i in range(case["prefills"])] + [Decodes(case, i) for i in range(case["decodes"])]


def post(case, stages, i, until, at):
    for kind, number in list(stages[i].look(until)):
        to = case["prefills"] + number % case["decodes"] if kind == "ready" else number % case["prefills"]
        stages[to].inbox.append((at, kind, number, i))


def by_clock(case, stages):
    """Which of them step next, and when: the earliest that can."""
    def due(s):
        if s.looked is None:
            return s.asked
        times = [t for t in s.wakes() if t > s.looked] + [entry[0] for entry in s.inbox[:1]]
        return max(s.looked, min(times)) if times else float("inf")

    while True:
        now = min(due(s) for s in stages)
        if now == float("inf"):
            return []
        chosen = [i for i, s in enumerate(stages) if due(s) == now]
        for i in chosen:
            stages[i].looked = now
            post(case, stages, i, now, now)
        stepping = []
        for i in chosen:
            s = stages[i]
            while s.inbox and s.inbox[0][0] <= now:
                s.hear(*s.inbox.pop(0)[1:3])
            s.admit_new(None, now)
            if s.can_step():
                s.looked = None
                stepping.append((i, now, 0))
        if stepping:
            return stepping


def by_step(case, stages, at):
    for i, _ in enumerate(stages):
        post(case, stages, i, None, 0)
    ready = []
    for s in stages:
        own = [s.asked] + (s.moved_at[-1:] if isinstance(s, Decodes) or case["staged"] else [])
        ready.append(max(own))
    starts = [max([ready[i]] + [ready[e[3]] for e in s.inbox]) for i, s in enumerate(stages)]
    for s in stages:
        for entry in s.inbox:
            s.hear(*entry[1:3])
        s.inbox = []
        s.admit_new(at, None)
    if not any(s.can_step() for s in stages):
        coming = [s.coming[0].arrival for s in stages if s.coming]
        at = max([at] + ([min(coming)] if coming else []))
        for s in stages:
            s.admit_new(at, None)
        if not any(s.can_step() for s in stages):
            return []
    return [(i, starts[i], at) for i, _ in enumerate(stages)]


def check_cluster(case):
    """Every step of every engine, held against the law; the times that steps and transfers take are the product's."""
    stages, got, at = stages_of(case), iter(case["steps"]), 0
    n = preempted = moves = 0
    while True:
        turn = by_clock(case, stages) if case["arrivals"] in ("closed", "seconds") else by_step(case, stages, at)
        for i, start, at_step in turn:
            a, s = next(got, None), stages[i]
            b = {"engine": i, "start": start, "at": at_step, "batch": s.step()}
            if a is None or any(a[key] != b[key] for key in b):
                sys.exit(f"case {case['seed']}, step {n} of all:\n product {a}\n law     {b}")
            s.asked = a["asked"]
            s.moved_at.append(a["moved"])
            at, n, preempted, moves = at_step + 1, n + 1, preempted + b["batch"]["preempted"], moves + len(s.moves)
        if not turn:
            break
    if next(got, None) is not None:
        sys.exit(f"case {case['seed']}: the product has more than {n} steps")
    for s in stages:
        if s.free + sum(blocks for due, blocks in s.back if due >= s.steps) != case["blocks"] or s.has_work() or s.coming:
            sys.exit(f"case {case['seed']}: a cache or a queue is not empty at the end")
    return n, preempted, moves


def run(case, first, steps):
    """The law's steps of one engine, fed the same `now` as the product's."""
    replicas = [Replica(case, first + i) for i in range(case["together"])]
    at, answer = 0, []
    for n in range(len(steps) + 1):
        now, start = steps[n]["now"] if n < len(steps) else None, 0
        if now is None:
            now = 1 << 62
        for r in replicas:
            r.enter(n, at, now)
        if not any(r.has_work() for r in replicas):
            coming = [r.coming[0].arrival for r in replicas if r.coming]
            if not coming:
                break
            if case["arrivals"] == "steps":
                at = min(coming)
            else:
                start = min(coming)
            for r in replicas:
                r.enter(n, at, min(coming))
        if n == len(steps):
            return answer + ["more"]
        answer.append({"now": now, "start": start, "at": at, "batches": [r.step() for r in replicas]})
        at += 1
    return answer


def printed(tool, first, count, *kind):
    done = subprocess.run([tool, str(first), str(count), *kind], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} ended with {done.returncode}: {done.stderr[:400]}")
    return done.stdout.splitlines()


def main():
    tool, count, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1500, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    lines, steps, preempted, drafted = printed(tool, first, count), 0, 0, 0
    for line in lines:
        case = json.loads(line)
        for e, got in enumerate(case["engines"]):
            want = run(case, e * case["together"], got)
            for n, (a, b) in enumerate(zip(got, want)):
                if a != b:
                    sys.exit(f"case {case['seed']}, engine {e}, step {n}:\n product {a}\n law     {b}")
                preempted += sum(batch["preempted"] for batch in a["batches"])
                drafted += sum(1 for batch in a["batches"] for m in batch["members"] if m[3] > 1)
            if len(got) != len(want):
                sys.exit(f"case {case['seed']}, engine {e}: {len(got)} steps, the law has {len(want)}")
            steps += len(got)
    clusters = [check_cluster(json.loads(line)) for line in printed(tool, first, count, "cluster")]
    if len(clusters) != count or not all(sum(c[k] for c in clusters) for k in range(3)):
        sys.exit(f"{len(clusters)} cases of stages: they do not cover the law")
    print(f"prompts and generation apart: {sum(c[0] for c in clusters)} steps, {sum(c[1] for c in clusters)} pre-emptions, "
          f"{sum(c[2] for c in clusters)} transfers or ends of prompts: all as the law says")
    if len(lines) != count or not preempted or not drafted:
        sys.exit(f"{len(lines)} cases, {preempted} pre-emptions, {drafted} accepted drafts: the cases do not cover the law")
    print(f"{len(lines)} workloads, {steps} steps, {preempted} pre-emptions, {drafted} steps with accepted drafts: all as the law says")


if __name__ == "__main__":
    main()

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
        if r.generated and r.missing() == 1:
            return 1 + min(self.case["drafts"], r.output - r.generated - 1)
        return r.missing()

    def step(self):
        case, s = self.case, self.steps
        self.free += sum(blocks for due, blocks in self.back if due == s)
        budget, members, out, back, preempted = case["tokens"], [], 0, 0, 0
        queue = list(self.running)
        while queue and budget:
            r = queue.pop(0)
            tokens = min(self.want(r), budget)
            fits = True
            while -(-(r.computed + tokens) // 16) - r.blocks > self.free:
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
                self.waiting.insert(0, victim)
                if victim is r:
                    fits = False
                    break
            if not fits:
                break
            budget -= self.take(r, tokens, members)
        while not preempted and self.waiting and budget and len(self.running) < case["sequences"]:
            r = self.waiting[0]
            tokens = self.want(r)
            if tokens > budget and not case["chunked"]:
                break
            tokens = min(tokens, budget)
            if -(-(r.computed + tokens) // 16) > self.free:
                break
            self.waiting.pop(0)
            self.running.append(r)
            back += -(-r.computed // 16)
            budget -= self.take(r, tokens, members)
        used = case["blocks"] - self.free
        for member in members:
            self.conclude(member, s)
        self.running = [r for r in self.running if r.generated < r.output]
        self.undelivered = bool(case["lag"]) and any(m[3] for m in members)
        self.steps += 1
        return {"blocks": used, "preempted": preempted, "out": out, "in": back,
                "members": [[m[0].number, *m[1:4]] for m in members]}

    def take(self, r, tokens, members):
        more = max(0, -(-(r.computed + tokens) // 16) - r.blocks)
        self.free -= more
        r.blocks += more
        members.append([r, r.computed, tokens, 0, r.generated > 0 and r.missing() == 1])
        return tokens

    def conclude(self, member, s):
        r, _, tokens, _, is_decode = member
        drafts = tokens - 1 if is_decode else 0
        key, accepted = fold(fold(self.case["seed"], 4), r.number), 0
        while accepted < drafts and (draw(key, r.generated + accepted) >> 11) * 2.0**-53 < self.case["acceptance"]:
            accepted += 1
        r.computed += tokens - (drafts - accepted)
        if r.missing() > 0:
            return
        member[3] = 1 + accepted
        r.generated += member[3]
        if r.generated == r.output:
            self.ends.append(s)
            self.back.append((s + 1 + self.case["lag"], r.blocks))
            r.blocks = 0


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


def main():
    tool, count, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1500, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    done = subprocess.run([tool, str(first), str(count)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} ended with {done.returncode}: {done.stderr[:400]}")
    lines, steps, preempted, drafted = done.stdout.splitlines(), 0, 0, 0
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
    if len(lines) != count or not preempted or not drafted:
        sys.exit(f"{len(lines)} cases, {preempted} pre-emptions, {drafted} accepted drafts: the cases do not cover the law")
    print(f"{len(lines)} workloads, {steps} steps, {preempted} pre-emptions, {drafted} steps with accepted drafts: all as the law says")


main()

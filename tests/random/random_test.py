#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_test.py SIM_TIMES [COUNT [FIRST_SEED [MPIEXEC]]]: sim's start and end of every entry of random jobs against law.py,
with 1, 2 and 8 processes: threads, or, with MPIEXEC, processes of MPI. Exact equality. Half of the lots are performed once more
as a sequence whose steps have bindings of their own. Every fourth lot is emulated, in both
forms: what emulate() makes of a legal job is legal, runs as the law says, and never ends earlier than the clear job."""
import concurrent.futures
import json
import pathlib
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
import law
import programs
from checks import printed

REPETITIONS, STEPS, PROCESSES, LOT = 3, 7, "1,2,8", 50
SMALL = 40  # entries of all roles: so few are performed in more steps than have their bindings at once


def compare(name, job, answers):
    """A burst answers with one turn, its last repetition; a sequence with the turn of every step."""
    entries = 0
    turns = [[rank["turns"][k] for rank in answers[0]] for k in range(len(answers[0][0]["turns"]))]
    is_sequence = "not_before_ns" in turns[0][0]
    expected = law.solve(job, turns if is_sequence else turns * REPETITIONS, answers[0][0]["closing_sync_ns"])
    for processes, answer in zip(PROCESSES.split(","), answers):
        for rank, (got, (burst_ns, steps)) in enumerate(zip(answer, expected)):
            where = f"{name}, {processes} processes, rank {rank}"
            for k, (turn, (spans, lane_ends, asked)) in enumerate(zip(got["turns"], steps if is_sequence else steps[-1:])):
                for i, (span, want) in enumerate(zip(turn["spans"], spans)):
                    if tuple(span) != want:
                        sys.exit(f"{where}, turn {k}, entry {i}: sim {span}, law {want}")
                if is_sequence and (turn["lane_end_ns"] != lane_ends or turn["now_ns"] != asked):
                    sys.exit(f"{where}, turn {k}: sim asked at {turn['now_ns']}, lanes through at {turn['lane_end_ns']}; "
                             f"law {asked}, {lane_ends}")
                entries += len(spans)
            if got["burst_ns"] != burst_ns:
                sys.exit(f"{where}: burst: sim {got['burst_ns']}, law {burst_ns}")
    return entries


def ask(tool, mpiexec, binding, files, repetitions=REPETITIONS):
    """One line of answers a file and number of processes, files outermost."""
    last = [binding, *files]
    if not mpiexec:
        return run([tool, "b200x8-tdx", str(repetitions), PROCESSES, *last])
    by_processes = [run([mpiexec, "-np", n, tool, "b200x8-tdx", str(repetitions), "mpi", *last])
                    for n in PROCESSES.split(",")]
    return [lines[k] for k in range(len(files)) for lines in by_processes]


def run(command):
    return printed(*command).splitlines()


def check(tool, mpiexec, at, end):
    """Jobs of the seeds from `at` up to `end`; how many entries were compared."""
    jobs = {seed: programs.job(seed) for seed in range(at, end)}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for seed, job in jobs.items():
            files.append(f"{folder}/{seed}.json")
            pathlib.Path(files[-1]).write_text(json.dumps(job))
        lot = at // LOT
        entries, clear = judge(jobs, ask(tool, mpiexec, "uneven" if lot % 2 else "even", files))
        if lot % 4 in (0, 3):
            entries += judge(jobs, ask(tool, mpiexec, "sequence", files, STEPS))[0]
            small = {seed: job for seed, job in jobs.items()
                     if sum(len(role["program"]["ops"]) for role in job["roles"]) <= SMALL}
            files_of_small = [file for seed, file in zip(jobs, files) if seed in small]
            if small and not mpiexec:
                entries += judge(small, ask(tool, mpiexec, "sequence", files_of_small, law.DEPTH + STEPS))[0]
        if lot % 4 == 2 and not mpiexec:
            for form in ("host", "stream"):
                entries += judge_emulated(form, jobs, clear, run([tool, "b200x8-tdx", str(REPETITIONS), "1", form, *files]))
    return entries


def judge(jobs, lines):
    if len(lines) != 3 * len(jobs):
        sys.exit(f"{len(lines)} of {3 * len(jobs)} answers")
    answers = [[json.loads(line) for line in lines[3 * k:3 * k + 3]] for k in range(len(jobs))]
    entries = sum(compare(f"seed {seed}", job, three) for (seed, job), three in zip(jobs.items(), answers))
    return entries, [max(rank["burst_ns"] for rank in three[0]) for three in answers]


def judge_emulated(form, jobs, clear, lines):
    entries = 0
    for k, seed in enumerate(jobs):
        job, answer = json.loads(lines[2 * k]), json.loads(lines[2 * k + 1])
        entries += compare(f"seed {seed}, emulated in form {form}", job, [answer])
        if max(rank["burst_ns"] for rank in answer) < clear[k]:
            sys.exit(f"seed {seed}, form {form}: the emulated burst ends before the clear one")
    return entries


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    mpiexec = sys.argv[4] if len(sys.argv) > 4 else None
    with concurrent.futures.ProcessPoolExecutor() as pool:
        parts = [pool.submit(check, tool, mpiexec, at, min(at + LOT, first + count))
                 for at in range(first, first + count, LOT)]
        entries = sum(part.result() for part in parts)
    print(f"{count} jobs, {entries} entries with 1, 2 and 8 processes: as the law says")


if __name__ == "__main__":
    main()

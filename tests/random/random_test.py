#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_test.py SIM_TIMES [COUNT [FIRST_SEED [MPIEXEC]]]: sim's start and end of every entry of random jobs against law.py,
with 1, 2 and 8 processes: threads, or, with MPIEXEC, processes of MPI. Exact equality."""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import law
import programs

REPETITIONS, PROCESSES = 3, "1,2,8"


def compare(name, job, answers):
    entries = 0
    durations = [[tuple(d) for d in rank["durations"]] for rank in answers[0]]
    expected = law.solve(job, durations, REPETITIONS, answers[0][0]["closing_sync_ns"])
    for processes, answer in zip(PROCESSES.split(","), answers):
        for rank, (got, (burst_ns, spans)) in enumerate(zip(answer, expected)):
            for i, (span, want) in enumerate(zip(got["spans"], spans)):
                if tuple(span) != want:
                    sys.exit(f"{name}, {processes} processes, rank {rank}, entry {i} ({job['roles'][0]['program']['ops'][i]['op']}): "
                             f"sim {span}, law {want}")
            if got["burst_ns"] != burst_ns:
                sys.exit(f"{name}, {processes} processes, rank {rank}: burst: sim {got['burst_ns']}, law {burst_ns}")
            entries += len(spans)
    return entries


def ask(tool, mpiexec, binding, files):
    """One line of answers a file and number of processes, files outermost."""
    last = [binding, *files]
    if not mpiexec:
        return run([tool, "b200x8-tdx", str(REPETITIONS), PROCESSES, *last])
    by_processes = [run([mpiexec, "-np", n, tool, "b200x8-tdx", str(REPETITIONS), "mpi", *last])
                    for n in PROCESSES.split(",")]
    return [lines[k] for k in range(len(files)) for lines in by_processes]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr[:400]}")
    return done.stdout.splitlines()


def check(tool, mpiexec, at, end):
    """Jobs of the seeds from `at` up to `end`; how many entries were compared."""
    jobs = {seed: programs.job(seed) for seed in range(at, end)}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for seed, job in jobs.items():
            files.append(f"{folder}/{seed}.json")
            pathlib.Path(files[-1]).write_text(json.dumps(job))
        lines = ask(tool, mpiexec, "uneven" if at // 50 % 2 else "even", files)
    if len(lines) != 3 * len(files):
        sys.exit(f"{len(lines)} of {3 * len(files)} answers")
    return sum(compare(f"seed {seed}", job, [json.loads(line) for line in lines[3 * k:3 * k + 3]])
               for k, (seed, job) in enumerate(jobs.items()))


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    mpiexec = sys.argv[4] if len(sys.argv) > 4 else None
    with concurrent.futures.ProcessPoolExecutor() as pool:
        parts = [pool.submit(check, tool, mpiexec, at, min(at + 50, first + count)) for at in range(first, first + count, 50)]
        entries = sum(part.result() for part in parts)
    print(f"{count} jobs, {entries} entries with 1, 2 and 8 processes: as the law says")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_test.py SIM_TIMES [COUNT [FIRST_SEED]]: sim's start and end of every entry of random jobs, for 1, 2 and 8 processes,
against law.py. Exact equality."""
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


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    entries = 0
    with tempfile.TemporaryDirectory() as folder:
        for at in range(first, first + count, 50):
            seeds = range(at, min(at + 50, first + count))
            jobs = {seed: programs.job(seed) for seed in seeds}
            files = []
            for seed, job in jobs.items():
                files.append(f"{folder}/{seed}.json")
                pathlib.Path(files[-1]).write_text(json.dumps(job))
            binding = "uneven" if at // 50 % 2 else "even"
            done = subprocess.run([tool, "b200x8-tdx", str(REPETITIONS), PROCESSES, binding, *files], capture_output=True,
                                  text=True)
            lines = done.stdout.splitlines()
            if done.returncode or len(lines) != 3 * len(files):
                sys.exit(f"sim_times ended with {done.returncode} after {len(lines)} of {3 * len(files)} answers: {done.stderr[:400]}")
            for k, (seed, job) in enumerate(jobs.items()):
                entries += compare(f"seed {seed}", job, [json.loads(line) for line in lines[3 * k:3 * k + 3]])
    print(f"{count} jobs, {entries} entries with 1, 2 and 8 processes: as the law says")


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks of the CUDA backend on a machine with GPUs, about 6 minutes on two:
#   run.sh FOLDER OUT [PART...]    FOLDER: as carry.sh makes it; OUT: for logs and runs
# PARTs: one two law shared memcheck faults marks runs (default: all), probe, and sequence, which one and two hold.
# One line a part and its failures; exit 1 if any failed.
set -uo pipefail
folder=$(cd "$1" && pwd) out=$2
shift 2
[ $# -gt 0 ] || set -- one two law shared memcheck faults marks runs
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$folder" || exit 2
. tests/machine.sh || exit 2
export CCTAX_DATA=$folder/data OMPI_MCA_rmaps_base_oversubscribe=1
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
bad=0

say() { # PART, status, seconds, log
  printf '==== %-9s exit %-3s %4s s   %s passed, %s failed\n' "$1" "$2" "$3" "$(grep -c ^PASS "$4")" "$(grep -c ^FAIL "$4")"
  grep -E '^FAIL|broke the law|not recovered|ERROR SUMMARY|Program hit|Invalid|checks failed|skipped' "$4" | head -40
}
part() { # PART, limit in s, expected exit, command...
  local name=$1 limit=$2 expected=$3 log="$out/$1.log" start=$SECONDS status
  shift 3
  timeout -k 5 "$limit" "$@" >"$log" 2>&1
  status=$?
  say "$name" "$status" $((SECONDS - start)) "$log"
  case " $expected " in *" $status "*) ;; *)
    bad=1
    echo "FAIL $name: exit $status, not $expected; its last lines:"
    grep -vE '^(PASS|FAIL)|^--|^$|mpirun' "$log" | tail -6 ;;
  esac
}
with_h5py() { # a Python that has it
  local python
  for python in /usr/bin/python3 python3; do
    "$python" -c 'import h5py' 2>/dev/null && break
  done
  echo "$python"
}
ranks() { echo mpirun -np "$1" --bind-to none; }
one_line() { # PART: what cctax and its ranks said
  grep -E '^(gpu_check|cctax)' "$out/$1.log" | sort -u | head -3
}
suite() { # name, limit, flags...
  local name=$1 limit=$2
  shift 2
  part "run-$name" "$limit" "0 1" bin/cctax run "suites/$name.json" -o "$out/$name" --backend cuda --deadline 60 -q "$@"
  bin/cctax show "$out/$name" >"$out/$name.txt" 2>&1
  grep -E ' (failed|refused|open)' "$out/$name.txt" | head
  bin/cctax check "$out/$name" || bad=1
}

for library in lib/libcctax-cuda.so bin/cctax bin/cctax-rank tests/gpu_check tests/conformance_mpi; do
  ldd "$library" | grep "not found" | sed "s|^|$library lacks|"
done
for part in "$@"; do
  case $part in
  one) CUDA_VISIBLE_DEVICES=0 part one 150 0 tests/gpu_check ;;
  two) [ "$gpus" -lt 2 ] || part two 150 0 $(ranks 2) tests/gpu_check ;;
  sequence)
    CUDA_VISIBLE_DEVICES=0 part sequence-one 90 0 tests/gpu_check sequence
    [ "$gpus" -lt 2 ] || part sequence-two 90 0 $(ranks 2) tests/gpu_check sequence
    grep -hE '^(PASS|FAIL|      )' "$out"/sequence-*.log | grep -E 'binding|step|overlap|read' ;;
  law)
    export CUDA_DEVICE_MAX_CONNECTIONS=32 # more streams than the default has queues would wait for each other
    CUDA_VISIBLE_DEVICES=0 part law-one 150 "0 77" $(ranks 1) tests/conformance_mpi cuda
    [ "$gpus" -lt 2 ] || part law-two 150 "0 77" $(ranks 2) tests/conformance_mpi cuda
    unset CUDA_DEVICE_MAX_CONNECTIONS ;;
  shared) CUDA_VISIBLE_DEVICES=0 part shared 150 0 $(ranks 8) tests/gpu_check --shared-gpu values ;;
  memcheck)
    if command -v compute-sanitizer >/dev/null; then
      # What NCCL asks of kernels that this GPU has no image of is answered by an error, and no fault of ours; our own
      # calls check each answer.
      CUDA_VISIBLE_DEVICES=0 part memcheck 90 0 compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 tests/gpu_check small
    fi ;;
  faults)
    CUDA_VISIBLE_DEVICES= part no-gpu 20 77 tests/gpu_check law
    part too-few 40 "1 2 3" $(ranks $((gpus + 1))) tests/gpu_check law
    one_line too-few
    CUDA_VISIBLE_DEVICES=0 part one-for-two 40 "1 2 3" $(ranks 2) tests/gpu_check law
    one_line one-for-two
    if [ "$gpus" -ge 2 ]; then
      part late 60 0 tests/gpu_check late
      part lost 60 0 tests/gpu_check lost
      part lost-ranks 150 0 "$(with_h5py)" tests/lost_ranks.py bin/cctax "$out/lost"
    fi
    CUDA_VISIBLE_DEVICES=0 part lost-net 60 0 tests/gpu_check --shared-gpu lost
    grep -h '^PASS' "$out"/late.log "$out"/lost*.log ;;
  marks)
    CUDA_VISIBLE_DEVICES=0 suite marks 60
    part marks 20 0 "$(with_h5py)" tests/marks.py "$out/marks"
    grep -hE '^PASS.*(delay|cell)|a step performed|is marked' "$out/marks.log" "$out/marks.txt" ;;
  runs)
    CUDA_VISIBLE_DEVICES=0 suite one 150
    [ "$gpus" -lt 2 ] || suite two 150
    CUDA_VISIBLE_DEVICES=0 suite shared 180 --shared-gpu ;;
  probe)
    part probe 400 "0 1" bin/cctax probe -o "$out/probe" --backend cuda --np "$((gpus < 2 ? 1 : 2))"
    part profile 20 "0 1" bin/cctax profile "$out/probe" -o "$out/profile.json" --profile h200
    cat "$out/profile.log" ;;
  *) echo "no part $part" && exit 2 ;;
  esac
done
rm -rf "$out"/*/*.partial
folders=$(cd "$out" && ls -d */ 2>/dev/null)
[ -z "$folders" ] || { tar czf "$out/runs.tgz" -C "$out" $folders && rm -rf "$out"/*/; }
tar czf "$out/logs.tgz" -C "$out" $(cd "$out" && ls *.log *.txt *.json 2>/dev/null)
rm -f "$out"/*.log "$out"/*.txt
exit $bad

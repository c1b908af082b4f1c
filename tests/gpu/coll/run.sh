#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does `cctax coll` agree with nccl-tests? On a machine with two GPUs:
#   run.sh BUILD NCCL_TESTS OUT [SECONDS] [PAIRS] [MODE..]      modes: eager, graph; both unless some are named
#   run.sh BUILD - OUT values       instead: every collective, type, reduction, place, registration and choice, about 2 minutes;
#                                   on one GPU its values alone, by two ranks that share it
# BUILD: a build with bin/cctax; NCCL_TESTS: the folder of its *_perf programs, built with MPI; OUT: an empty folder.
# Alternates processes of both within SECONDS (default 620), PAIRS of each (default 9): all_reduce, all_gather,
# reduce_scatter and alltoall from 1 KiB to 1 GiB, eager and in graphs, two ranks, the same NCCL, -n, -w, -G and buffers. A time
# is a mean over 100 collectives in either mode (-n 100, or 5 launches of a graph of 20): over 20 eager ones, those of 1 to 16 MiB
# differ by 3 to 9 % from process to process of either program.
# Every launch leaves a JSON in nccl-tests' layout; judge.py reads them and gives the verdict. Cells that miss it are
# measured once again while time is left. Exit 0: they agree, 1: they do not, 2: cannot run, 77: no two GPUs here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD NCCL_TESTS OUT [SECONDS] [PAIRS]}") tests=${2:?} out=${3:?}
budget=${4:-620} pairs=${5:-9}
shift $(($# < 5 ? $# : 5))
modes=("$@")
[ $# -gt 0 ] || modes=(eager graph)
warmup=5
declare -A iters=([eager]=100 [graph]=20) launches=([eager]=0 [graph]=5) samples=([eager]=1 [graph]=3)
for mode in "${modes[@]}"; do
  [ -n "${iters[$mode]:-}" ] || { echo "no mode '$mode': eager, graph"; exit 2; }
done
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
[ "$gpus" -ge 2 ] || { [ "$gpus" -eq 1 ] && [ "$budget" = values ]; } || { echo "no two GPUs here"; exit 77; }
mkdir -p "$out/cells" "$out/again" && out=$(realpath "$out") || exit 2
needed=("$build/bin/cctax" "$build/bin/cctax-rank" "$build/lib/libcctax-cuda.so" "$tests/all_reduce_perf")
[ "$budget" = values ] && unset "needed[3]"
for program in "${needed[@]}"; do
  [ -e "$program" ] || { echo "no $program"; exit 2; }
done
. "$here/../machine.sh" || exit 2
export CCTAX_DATA=${CCTAX_DATA:-$build/data}
unset NCCL_ALGO NCCL_PROTO NCCL_DEBUG NCCL_GRAPH_REGISTER NCCL_TUNER_PLUGIN

[ "$budget" = values ] && exec python3 "$here/values.py" "$build/bin/cctax" "$out" $([ "$gpus" -ge 2 ] || echo --shared-gpu)

measure() { # TOOL COLLECTIVE MODE SIZES OUTPUT
  local log=$5.log rc=0
  if [ "$1" = cctax ]; then
    timeout 90 "$build/bin/cctax" coll -o "$scratch/run" --backend cuda -g 2 --collective "${2/alltoall/all_to_all}" $4 \
      -n "${iters[$3]}" -w $warmup -G "${launches[$3]}" --place out --samples "${samples[$3]}" --json -q >"$5" 2>"$log" || rc=$?
    rm -rf "$scratch/run"
  else
    timeout 90 mpirun -np 2 --bind-to none "$tests/$2_perf" $4 -n "${iters[$3]}" -w $warmup -G "${launches[$3]}" -d float -J "$5" \
      >"$log" 2>&1 || rc=$?
  fi
  if [ $rc -ne 0 ]; then
    echo "FAILED ($rc): $1 $2 $3"; tail -n 5 "$log"; rm -f "$5"; failures=$((failures + 1))
  else
    rm -f "$log"
  fi
}

both() { # FOLDER PAIR COLLECTIVE MODE SIZES: odd pairs begin with cctax
  local order=(cctax nccl-tests) tool start=$SECONDS
  [ $(($2 % 2)) -eq 1 ] || order=(nccl-tests cctax)
  for tool in "${order[@]}"; do
    measure "$tool" "$3" "$4" "$5" "$1/$3-$4-$2-$tool.json"
  done
  took=$((SECONDS - start))
  [ $took -gt $longest ] && longest=$took
}
left() { [ $((SECONDS + longest + 1)) -le "$budget" ]; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0 longest=0
for pair in $(seq "$pairs"); do
  for collective in all_reduce all_gather reduce_scatter alltoall; do
    for mode in "${modes[@]}"; do
      left || { echo "pair $pair: the time is up"; break 3; }
      both "$out/cells" "$pair" $collective $mode "-b 1K -e 1G -f 2"
    done
  done
  echo "pair $pair of $pairs done after $SECONDS s"
done
python3 "$here/judge.py" "$out" --missed >"$scratch/missed"
longest=0
while read -r collective mode least; do
  for pair in $(seq "$pairs"); do
    left || { echo "again: the time is up"; break 2; }
    both "$out/again" "$pair" "$collective" "$mode" "-b $least -e 1G -f 2"
  done
done <"$scratch/missed"
echo "$failures launches failed, $SECONDS s"
python3 "$here/judge.py" "$out" | tee "$out/verdict.txt"
rc=${PIPESTATUS[0]}
[ $failures -eq 0 ] || rc=1
exit "$rc"

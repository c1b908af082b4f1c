#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every bar that takes two GPUs, about 25 minutes; in parts where time is short, the ones first that nothing else stands for:
#   two_gpus.sh BUILD NCCL_TESTS NVBANDWIDTH OUT [PART...]
# BUILD: as tests/gpu/cuda/carry.sh makes it; NCCL_TESTS: the folder of its *_perf programs, built with MPI; NVBANDWIDTH: its
# program, or -; OUT: a folder for the parts' results. PARTs (default: all, in this order; seconds on 2 x H200):
#   eager 330   cctax coll against nccl-tests, nine pairs, eager      values 90   every collective, registration and choice by value
#   order 200   training's collectives in the order of their bytes    serve 60    caches between two GPUs, batch by batch as sim's
#   cuda 150    emulation and the timing law on two ranks, sequences, copies from peers
#   probe 260   copies between GPUs beside nvbandwidth's              training 200   the published table, a checkpoint
#   graph 300   as eager, in graphs
# One line a part. Exit 0: all hold; 1: one does not; 2: cannot run; 77: no two GPUs here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: two_gpus.sh BUILD NCCL_TESTS NVBANDWIDTH OUT [PART...]}") tests=${2:?} nvbandwidth=${3:?} out=${4:?}
shift 4
[ $# -gt 0 ] || set -- eager values order serve cuda probe training graph
[ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" -ge 2 ] || { echo "no two GPUs here"; exit 77; }
mkdir -p "$out" && out=$(realpath "$out") || exit 2
export CCTAX_DATA=${CCTAX_DATA:-$build/data}
bad=0

for part in "$@"; do
  case $part in
  eager | graph) command=("$here/coll/run.sh" "$build" "$tests" "$out/$part" 330 9 "$part") ;;
  values) command=("$here/coll/run.sh" "$build" - "$out/values" values) ;;
  order) command=("$here/steps/run.sh" "$build" "$out/order" order) ;;
  training) command=("$here/steps/run.sh" "$build" "$out/training" training checkpoint) ;;
  serve) command=("$here/serve/run.sh" "$build" "$out/serve" disaggregated) ;;
  cuda) command=("$build/run.sh" "$build" "$out/cuda" two law sequence) ;;
  probe) command=("$here/probe/run.sh" "$build" "$out/probe" 2 "$nvbandwidth" beside) ;;
  *) echo "no part '$part'"; exit 2 ;;
  esac
  start=$SECONDS
  bash "${command[@]}" >"$out/$part.txt" 2>&1
  status=$?
  echo "==== $part: $((SECONDS - start)) s, exit $status"
  grep -E '^(FAIL|FAILED|NOTE|told|held)|^geometric means|of [0-9]+ checks failed' "$out/$part.txt"
  [ $status -eq 0 ] || { bad=1; tail -n 3 "$out/$part.txt"; }
done
exit $bad

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/tuner/run.sh PLUGIN: the built tuner in real NCCL, on a machine with GPUs; about a minute. Compiles the check with
# gcc against the machine's CUDA and NCCL; runs it with that NCCL and, where python3 has PyTorch's, with that one too.
# Two GPUs: every cell forced by rules, the built-in rules, a user's filter, a refused file, loading prevented. One GPU is
# enough for the last part, eight ranks that share it. Exit 0: all as wanted, 1: not, 77: no GPU here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
proof=$here/../../../scripts/tuner-proof.sh
plugin=$(realpath "${1:?usage: run.sh PLUGIN (libnccl-tuner-cctax.so)}") || exit 2
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ') || { echo "no GPU here"; exit 77; }
[ -f "$plugin" ] || { echo "no '$plugin'"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} TMPDIR=$work # a preset stays; NVLS is not part of this check
[ "$NCCL_NVLS_ENABLE" = 0 ] || { echo "refused: NCCL_NVLS_ENABLE=$NCCL_NVLS_ENABLE; this check is for 0"; exit 2; }
unset NCCL_ALGO NCCL_PROTO NCCL_TUNER_CONFIG_FILE CCTAX_CONDITION CCTAX_TUNER_RULES CCTAX_TUNER_PROOF

cuda=${CUDA_HOME:-/usr/local/cuda}
gcc -O2 -std=gnu11 -Wall -Wextra -I"$cuda/include" "$here/tuner_gpu_check.c" -o "$work/check" \
  -L"$cuda/lib64" -L"$cuda/lib" -lcudart -lnccl -lm || { echo "the check does not compile here"; exit 2; }
export LD_LIBRARY_PATH=$cuda/lib64:$cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
torch=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null) || torch=
failures=0

arm() { # TITLE RANKS GPUS PROOF_EXIT VARIABLE=VALUE... -- CASE...
  local title=$1 ranks=$2 used=$3 wanted=$4 rc=0 variables=()
  shift 4
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  rm -rf "$work/logs"; mkdir "$work/logs"
  echo "$title"
  env NCCL_TUNER_PLUGIN="$plugin" "${variables[@]}" "$proof" run -n "$ranks" \
    sh -c '"$@"; echo "rc $?" >"$0/rc"' "$work/logs" "$work/check" "$work/logs" "$ranks" "$used" "$@" >"$work/out" 2>&1 || rc=$?
  grep -E '^  [a-zN]|^ +[1-9][0-9]*  (line|calls)|tuner_gpu_check|^problem' "$work/out"
  grep -h 'TUNER/Plugin: Using\|Successfully loaded external' "$work/logs/rank0.log" | sed 's/.*NCCL INFO /  /'
  if [ "$(cat "$work/logs/rc" 2>/dev/null)" != "rc 0" ] || [ $rc -ne "$wanted" ]; then
    echo "  FAILED: check $(cat "$work/logs/rc" 2>/dev/null), proof $rc (wanted $wanted)"
    tail -n 15 "$work/out" | sed 's/^/    /'; tail -n 5 "$work"/logs/rank*.log | sed 's/^/    /'
    failures=$((failures + 1))
  fi
}

cat >"$work/forced.csv" <<'RULES'
allreduce,1024,1024,tree,ll,-1,-1,-1
allreduce,4096,4096,tree,ll128,-1,-1,-1
allreduce,16384,16384,tree,simple,-1,-1,-1
allreduce,65536,65536,ring,ll,-1,-1,-1
allreduce,262144,262144,ring,ll128,-1,-1,-1
allreduce,1048576,1048576,ring,simple,-1,-1,-1
allreduce,16777216,16777216,nvls,simple,-1,-1,-1
allreduce,16777216,16777216,ring,ll128,4,-1,-1
allgather,65536,65536,ring,simple,-1,-1,-1
reducescatter,65536,65536,ring,ll128,-1,-1,-1
RULES
printf 'allreduce,0,-1,ring,ll,-1,-1,-1\nallreduce,0,-1,rang,ll,-1,-1,-1\n' >"$work/bad.csv"
printf 'allreduce,0,65536,ring,simple,-1,8,8,-1,-1,clear\nallreduce,65537,-1,tree,simple,-1,8,8\nallgather,0,-1,ring,simple,-1,-1,-1\n' \
  >"$work/eight.csv"
forced=(allreduce:1024:tree:ll allreduce:4096:tree:ll128 allreduce:16384:tree:simple allreduce:65536:ring:ll
  allreduce:262144:ring:ll128 allreduce:1048576:ring:simple allreduce:16777216:ring:ll128:4 allreduce:2048:own
  allgather:65536:ring:simple reducescatter:65536:ring:ll128)

both() { # the arms under one NCCL
  if [ "$gpus" -ge 2 ]; then
    arm "$1: every cell by rules" 2 2 0 CCTAX_TUNER_RULES="$work/forced.csv" -- "${forced[@]}"
    if nvidia-smi -L | head -1 | grep -q 'NVIDIA H200'; then
      arm "$1: no file, built-in rules" 2 2 0 X=1 -- allreduce:4194304:ring:ll128 allreduce:2097152:ring:ll128 \
        allreduce:1048576:own allreduce:16777216:own allgather:4194304:ring:ll128 reducescatter:4194304:own
    fi
    arm "$1: NCCL_PROTO=Simple wins over rules" 2 2 0 CCTAX_TUNER_RULES="$work/forced.csv" NCCL_PROTO=Simple -- \
      allreduce:65536:own:simple allreduce:1048576:ring:simple
    arm "$1: a refused file" 2 2 1 CCTAX_TUNER_RULES="$work/bad.csv" -- allreduce:65536:own allgather:65536:own
    grep -h 'NCCL WARN' "$work"/logs/rank0.log | sed 's/.*NCCL WARN /  /'
    arm "$1: loading prevented (the problem is to be noticed)" 2 2 1 NCCL_TUNER_PLUGIN=/nonexistent.so -- \
      allreduce:65536:own allreduce:4194304:own
  fi
  arm "$1: eight ranks on one GPU, condition not agreed" 8 1 0 CCTAX_TUNER_RULES="$work/eight.csv" -- \
    allreduce:65536:own allreduce:262144:tree:simple allgather:65536:ring:simple
  arm "$1: eight ranks on one GPU, condition agreed" 8 1 0 CCTAX_TUNER_RULES="$work/eight.csv" CCTAX_CONDITION=clear -- \
    allreduce:65536:ring:simple allreduce:262144:tree:simple
}

both "the machine's NCCL"
if [ -n "$torch" ] && [ -e "$torch/libnccl.so.2" ]; then
  export LD_LIBRARY_PATH=$torch:$LD_LIBRARY_PATH
  both "PyTorch's NCCL"
else
  echo "python3 has no NCCL of PyTorch's: skipped"
fi
echo "$failures arms failed"
exit $((failures > 0))

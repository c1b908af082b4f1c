#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the CUDA backend's checks on this machine from a build made here or elsewhere:
#   run.sh BUILD [OUT] [PART...]     OUT: a folder for the logs; PARTs: those of gpu_check, default all
# Two GPUs or more: on two ranks. One GPU: on one rank, then values with eight ranks that share it, and under
# compute-sanitizer.
set -uo pipefail
build=$1 out=${2:-/tmp/cctax-gpu}
shift $(($# < 2 ? $# : 2))
mkdir -p "$out"
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu; do
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
if ldd "$build/lib/libcctax-cuda.so" | grep "not found"; then
  echo "libcctax-cuda.so lacks the libraries above"
fi
export OMPI_MCA_rmaps_base_oversubscribe=1
check=$build/tests/gpu_check
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
if [ "$gpus" -ge 2 ]; then
  timeout 280 mpirun -np 2 --bind-to none "$check" "$@" 2>&1 | tee "$out/two.log"
  exit "${PIPESTATUS[0]}"
fi
timeout 280 "$check" "$@" 2>&1 | tee "$out/one.log"
status=${PIPESTATUS[0]}
[ $# -eq 0 ] || exit "$status"
echo "---- two ranks on one GPU without --shared-gpu: must be refused"
timeout 60 mpirun -np 2 "$check" law 2>&1 | grep -v "^--\|^$\|mpirun\|^Primary\|process returned\|terminated" | tail -3
timeout 150 mpirun -np 8 --bind-to none "$check" --shared-gpu values 2>&1 | tee "$out/shared.log" | grep -v "identity\|drift\|condition"
if command -v compute-sanitizer >/dev/null; then
  timeout 120 compute-sanitizer --tool memcheck --print-limit 20 "$check" values >"$out/memcheck.log" 2>&1
  echo "---- compute-sanitizer memcheck of values: exit $?"
  grep -E "ERROR SUMMARY|Invalid|FAIL|checks failed|Program hit" "$out/memcheck.log" | head -12
fi
exit "$status"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the CUDA backend's checks on this machine from a build made here or elsewhere:
#   run.sh BUILD [OUT] [PART...]     OUT: a folder for the logs; PARTs: those of gpu_check, default all
# With two GPUs or more the parts run on two ranks too; at last a small part runs under compute-sanitizer.
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
timeout 300 "$build/tests/gpu_check" "$@" 2>&1 | tee "$out/one.log"
status=$?
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
if [ "$gpus" -ge 2 ] && "$build/tests/gpu_check" --has-mpi; then
  timeout 300 mpirun -np 2 "$build/tests/gpu_check" "$@" 2>&1 | tee "$out/two.log" || status=1
fi
if command -v compute-sanitizer >/dev/null; then
  timeout 200 compute-sanitizer --tool memcheck --print-limit 20 "$build/tests/gpu_check" values >"$out/memcheck.log" 2>&1
  grep -E "ERROR SUMMARY|Invalid|FAIL|checks failed" "$out/memcheck.log" | head -20
fi
exit $status

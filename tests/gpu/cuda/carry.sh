#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects what run.sh needs on a machine that has the libraries but no compiler: carry.sh BUILD FOLDER
set -euo pipefail
source=$(cd "$(dirname "$0")/../../.." && pwd) build=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"/{lib,bin,tests,data}
cp "$build"/lib/libcctax-cuda.so "$build"/lib/libnccl-{tuner,net,profiler}-cctax.so "$folder/lib/"
cp "$build"/bin/cctax "$build"/bin/cctax-rank "$folder/bin/"
cp "$build"/tests/gpu_check "$build"/tests/conformance_mpi "$folder/tests/"
strip "$folder"/lib/* "$folder"/bin/* "$folder"/tests/*
cp -r "$source"/data/models "$source"/data/profiles "$folder/data/"
cp -r "$source/examples" "$folder/"
cp -r "$source/tests/gpu/cuda/suites" "$source/tests/gpu/cuda/run.sh" "$folder/"
cp "$source/tests/gpu/cuda/lost_ranks.py" "$source/tests/gpu/cuda/marks.py" "$source/tests/checks.py" \
  "$source/tests/gpu/machine.sh" "$folder/tests/"
du -sh "$folder"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh: sets the machine up, builds, runs examples/quickstart.json on eight ranks and opens the comparison. On a
# machine with enough GPUs it measures; elsewhere the simulator performs the same programs and every figure says predicted.
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-quickstart-out}
./scripts/setup.sh
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset release >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset release --target cctax cctax-rank >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
rm -rf "$out"
mkdir -p "$out"
build/release/bin/cctax run examples/quickstart.json -o "$out/run"
build/release/bin/cctax report "$out/run" -o "$out/report"
echo
echo "report: $PWD/$out/report/index.html"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs with and without the tuner, as scripts/tuner-proof.sh sees them.
set -uo pipefail
proof=$CCT_SOURCE/scripts/tuner-proof.sh
job=$CCT_BINARY/tests/tuner_job
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work NCCL_TUNER_PLUGIN=$CCT_BINARY/lib/libnccl-tuner-cctax.so
unset CCTAX_TUNER_RULES NCCL_TUNER_CONFIG_FILE CCTAX_CONDITION CCTAX_TUNER_PROOF NCCL_ALGO NCCL_PROTO
failures=0

expect() { # NAME EXIT TEXT COMMAND...
  local name=$1 exit=$2 text=$3 rc=0
  shift 3
  "$@" >"$work/out" 2>&1 || rc=$?
  if [ $rc -ne "$exit" ] || ! grep -qF -- "$text" "$work/out"; then
    echo "FAILED: $name: exit $rc, not $exit, or no '$text' in"; cat "$work/out"; failures=$((failures + 1))
  fi
}

printf 'allreduce,0,65536,ring,ll128,-1,-1,-1\n' >"$work/rules.csv"
export CCTAX_TUNER_RULES=$work/rules.csv
sum=$(cksum <"$work/rules.csv")
expect "a tuned job" 0 "        42  line 1: allreduce,0,65536,ring,ll128" "$proof" run -n 3 "$job" 3
expect "its file is the one that cksum knows" 0 "rules.csv, 1 rules, cksum $sum" "$proof" run "$job" 2
expect "loading prevented" 1 "no process loaded the tuner" env NCCL_TUNER_PLUGIN=/nonexistent.so "$proof" run "$job" 2
expect "loading not asked for" 1 "no process loaded the tuner" env -u NCCL_TUNER_PLUGIN "$proof" run "$job" 2
expect "one rank untuned" 1 "2 of its 3 ranks left a proof" "$proof" run "$job" 3 1
expect "too few processes" 1 "3 of 4 processes left a proof" "$proof" run -n 4 "$job" 3
expect "a command that fails" 1 "the command ended with 7" "$proof" run sh -c "'$job' 2; exit 7"
printf 'allreduce,9,1,ring,ll128,-1,-1,-1\n' >"$work/rules.csv"
expect "a refused file" 1 "rules refused: $work/rules.csv:1: min bytes 9 is more than max bytes 1" "$proof" run "$job" 2
expect "no folder" 2 "is not a folder" "$proof" "$work/none"
expect "no arguments" 2 "tuner-proof.sh FOLDER" "$proof"
printf 'allreduce,0,65536,ring,ll128,-1,-1,-1\n' >"$work/rules.csv"
mkdir "$work/kept"
CCTAX_TUNER_PROOF=$work/kept "$job" 2
expect "a folder read twice" 0 "finished" "$proof" "$work/kept" 2
sed -i 's/^00000014 line/00000013 line/' "$(find "$work/kept" -name '*.proof' | head -1)"
expect "ranks that differ" 1 "its ranks decided differently" "$proof" "$work/kept"
exit $((failures > 0))

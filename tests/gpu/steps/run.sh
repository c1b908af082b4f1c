#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training on two real GPUs, under 8 minutes:
#   run.sh BUILD OUT [PART...]     BUILD: a build with bin/cctax, its backend and data; OUT: a folder for runs and logs
# PARTs (default: all):
#   order     order.json: do collectives over tp and ep take time in the order of their counted bytes? A line a pair, PASS
#             or FAIL where the counts differ by 25 %, with the 95 % interval over rounds; NOTE where they do not
#   training  examples/paper-training-h200x2.json: the published table at reduced size, what each collective exposes,
#             and how fast it trains
#   checkpoint  examples/training-checkpoint.json: what a checkpoint adds, synchronous and asynchronous
# Exit 0: all hold, 1: one does not, 2: cannot run, 77: no two GPUs here. STEPS_BACKEND=sim: what sim expects (docs/training.md).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD OUT [PART...]}") out=${2:?usage: run.sh BUILD OUT [PART...]}
shift 2
[ $# -gt 0 ] || set -- order training checkpoint
backend=${STEPS_BACKEND:-cuda} machine=()
if [ "$backend" = sim ]; then
  machine=(--profile h200)
else
  [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" -ge 2 ] || { echo "no two GPUs here"; exit 77; }
fi
[ -x "$build/bin/cctax" ] || { echo "no $build/bin/cctax"; exit 2; }
mkdir -p "$out" && out=$(realpath "$out") || exit 2
. "$here/../machine.sh" || exit 2
export OMPI_MCA_rmaps_base_oversubscribe=1
[ -d "$build/data" ] && export CCTAX_DATA=${CCTAX_DATA:-$build/data}
cctax=$build/bin/cctax
bad=0

perform() { # NAME SUITE SECONDS: its run, what show says of it, its report
  local name=$1 start=$SECONDS status
  rm -rf "${out:?}/$name"
  timeout -k 10 "$3" "$cctax" run "$2" --backend "$backend" "${machine[@]}" -q -o "$out/$name" >"$out/$name.log" 2>&1
  status=$?
  [ $status -eq 0 ] || { echo "FAIL $name: cctax run: exit $status"; tail -n 5 "$out/$name.log"; bad=1; }
  "$cctax" show "$out/$name" >"$out/$name-show.txt" 2>&1
  "$cctax" report "$out/$name" --json >"$out/$name.json" 2>"$out/$name-report.log" || {
    echo "FAIL $name: cctax report: exit $?"
    tail -n 5 "$out/$name-report.log"
    bad=1
  }
  echo "==== $name: $((SECONDS - start)) s, exit $status"
}

for part in "$@"; do
  case $part in
  order) suite=$here/order.json ;;
  training) suite=$here/../../../examples/paper-training-h200x2.json ;;
  checkpoint) suite=$here/../../../examples/training-checkpoint.json ;;
  *) echo "no part '$part'"; exit 2 ;;
  esac
  perform "$part" "$suite" 280
  [ -s "$out/$part.json" ] && { python3 "$here/judge.py" "$part" "$out/$part.json" || bad=1; }
done
exit $bad

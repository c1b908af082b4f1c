#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doctor, probe and profile on this machine's GPUs, and the probe's figures beside nvbandwidth's and bare loops:
#   run.sh BUILD OUT [NP] [NVBANDWIDTH] [PART...]
# BUILD: bin/ and lib/, as built here or as tests/gpu/cuda/carry.sh makes it; OUT: a folder for the results; NP: ranks, 0 or
# left out: the GPUs that are visible, at most 8; NVBANDWIDTH: its program, or - for none; PARTs: doctor probe beside (default:
# all). About 5 minutes on one GPU and 9 on two, where collectives are measured under NCCL_GRAPH_REGISTER 0 and 1. Nothing of the
# machine is changed.
# Exit 0: done; 1: a cell failed, the probe took longer than its bar, or a figure is outside its bar; 77: no GPU here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD OUT [NP] [NVBANDWIDTH] [PART...]}") out=${2:?} np=${3:-0} nvbandwidth=${4:--}
shift $(($# < 4 ? $# : 4))
[ $# -gt 0 ] || set -- doctor probe beside
mkdir -p "$out" && out=$(realpath "$out") || exit 2
[ "$nvbandwidth" = - ] || nvbandwidth=$(realpath "$nvbandwidth") || exit 2
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
else
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
fi
[ "$gpus" -gt 0 ] || { echo "no GPU here"; exit 77; }
[ "$np" -gt 0 ] || np=$((gpus < 8 ? gpus : 8))
[ "$np" -le "$gpus" ] || { echo "$np ranks need as many GPUs; $gpus are visible"; exit 2; }
. "$here/../machine.sh" || exit 2
[ ! -d "$build/data" ] || export CCTAX_DATA=${CCTAX_DATA:-$build/data}
cctax=$build/bin/cctax
bad=0
miss() { echo "FAILED $*"; bad=1; }

probe() { # NAME BAR_S FLAGS...: the probe, what of it was refused, and its profile
  local name=$1 bar=$2 start=$SECONDS status
  shift 2
  rm -rf "${out:?}/$name"
  timeout -k 10 580 "$cctax" probe --backend cuda --np "$np" -o "$out/$name" "$@" >"$out/$name.log" 2>&1
  status=$?
  echo "==== probe $name on $np ranks: $((SECONDS - start)) s, exit $status"
  grep -v '^block' "$out/$name.log" | sort | uniq -c | sort -rn | head -40
  [ $status -le 1 ] || { miss "probe $name: exit $status"; return; }
  [ "$bar" = 0 ] || [ $((SECONDS - start)) -le "$bar" ] || miss "the probe took longer than $bar s"
  "$cctax" show "$out/$name" >"$out/$name-show.txt"
  "$cctax" check "$out/$name" || miss "the run $name is not sound"
  grep -A5 '"probe":"experiment"' "$out/$name-show.txt" | grep -v '^--'
  "$cctax" profile "$out/$name" -o "$out/$name-profile.json" --profile h200 >"$out/$name-profile.txt" 2>"$out/$name-profile.log"
  echo "==== profile of $name: exit $?"
  cat "$out/$name-profile.txt"
  "$cctax" profile "$out/$name" -o "$out/$name-profile.json" --profile h200 --json >"$out/$name-values.json" 2>/dev/null
}

for part in "$@"; do
  case $part in
  doctor)
    "$cctax" doctor --before-run
    echo "==== doctor before a run: exit $?"
    start=$SECONDS
    "$cctax" doctor --try --json >"$out/doctor.json" 2>"$out/doctor.log"
    echo "==== doctor --try: $((SECONDS - start)) s, exit $?"
    cat "$out/doctor.log"
    "$cctax" doctor --fixture "$out/doctor.json" | grep -A2 ' try-'
    grep -A2 '"name": "try\.' "$out/doctor.json" | grep -o '"try[^"]*"\|"value": .*' | paste - -
    "$cctax" doctor --json --fixture "$out/doctor.json" >"$out/replayed.json"
    if cmp "$out/replayed.json" "$out/doctor.json"; then echo "==== its record replays"; else miss "the doctor's record"; fi ;;
  probe)
    if [ "$np" -gt 1 ]; then probe off 0 --arms registration=off,on; else probe off 180; fi
    [ ! -s "$out/off-values.json" ] || python3 "$here/beside.py" profile "$out/off-values.json" "${CCTAX_DATA:-$here/../../../data}/profiles/h200.json" ;;
  beside)
    python3 "$here/beside.py" measure "$cctax" "$out/beside" "$np" "$nvbandwidth" 2>&1 | tee "$out/beside.txt"
    [ "${PIPESTATUS[0]}" -eq 0 ] || miss "figures beside nvbandwidth and bare loops" ;;
  *) echo "no part $part"; exit 2 ;;
  esac
done
folders=$(cd "$out" && ls -d ./*/ 2>/dev/null)
[ -z "$folders" ] || { tar czf "$out/runs.tgz" -C "$out" --exclude='*.partial' $folders && rm -rf "$out"/*/; }
exit $bad

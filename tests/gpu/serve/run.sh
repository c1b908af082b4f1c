#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Serving on real GPUs, under 4 minutes on one or two H200s:
#   run.sh BUILD OUT [PART...]     BUILD: a build with bin/cctax, its backend and data; OUT: a folder for runs and logs
# PARTs: calibrate readback overlap graph schedule disaggregated (default: all; those that need a size calibrate first).
# disaggregated on one GPU runs two ranks on it (--shared-gpu): schedules are judged, times are not.
# Every check is one line, PASS or FAIL, with the figure, its 95 % interval over rounds and what was expected; judge.py
# reads them from cctax report --json and cctax show. Exit 0: all hold, 1: one does not, 2: cannot run, 77: no GPU here.
# What sim expects of the same suites: run.sh BUILD OUT with SERVE_BACKEND=sim (docs/serving.md gives its figures).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD OUT [PART...]}") out=${2:?usage: run.sh BUILD OUT [PART...]}
shift 2
parts=("$@")
[ $# -gt 0 ] || parts=(readback overlap graph schedule disaggregated)
backend=${SERVE_BACKEND:-cuda}
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
if [ "$backend" = cuda ]; then
  [ "$gpus" -ge 1 ] || { echo "no GPU here"; exit 77; }
else
  gpus=2
fi
[ -x "$build/bin/cctax" ] || { echo "no $build/bin/cctax"; exit 2; }
mkdir -p "$out" && out=$(realpath "$out") || exit 2
. "$here/../machine.sh" || exit 2
export OMPI_MCA_rmaps_base_oversubscribe=1
data=$build/data
[ -d "$data" ] || data=$here/../../../data
export CCTAX_DATA=${CCTAX_DATA:-$data}
bad=0

cctax() { # NAME, suite's text or flags...
  local name=$1 start=$SECONDS
  shift
  rm -rf "${out:?}/$name"
  local machine=()
  [ "$backend" = sim ] && machine=(--profile h200)
  timeout 150 "$build/bin/cctax" run "$@" --backend "$backend" "${machine[@]}" -o "$out/$name" -q \
    >"$out/$name.log" 2>&1 || { echo "FAIL $name: cctax run: exit $?"; tail -n 3 "$out/$name.log"; bad=1; return 1; }
  echo "     $name: $((SECONDS - start)) s"
}
judge() { python3 "$here/judge.py" "$build/bin/cctax" "$out" "$@" || bad=1; }
suite() { # NAME, JSON without the shared parts
  cat >"$out/$1.json"
}
# One H200 reads the 16.4 GB of qwen3-8b in about 4 ms; the clear step has to last 4.5 to 6 ms.
shared='"model": "qwen3-8b", "workload": "serve", "layout": "tp=1", "np": 1, "concurrency": 16, "num_prompts": 16, "input_len": 256,
  "kv_tokens": 16384, "check": 0'

layers=36 calibrated=0
calibrate() {
  calibrated=1
  suite calibrate <<E1
{"schema": 1, "rounds": 1, "arms": {"factor": "condition", "values": ["off"]},
 "defaults": {$shared, "output_len": 60, "overlap": "on"}, "cells": [{}]}
E1
  cctax calibrate "$out/calibrate.json" || return
  layers=$(python3 "$here/judge.py" "$build/bin/cctax" "$out" layers)
  echo "     layers for a clear step of 4.5 to 6 ms: $layers"
}

readback() {
  suite readback <<E1
{"schema": 1, "question": "What does the read-back of tokens cost under confidential computing?", "rounds": 3,
 "arms": {"factor": "condition", "values": ["off", "emulated:b200x8-tdx"]},
 "defaults": {$shared, "layers": $layers, "output_len": 80, "overlap": "on", "host_us": 2500},
 "cells": [{"readback": ["sync", "worker"]}]}
E1
  cctax readback "$out/readback.json" && judge readback
}
overlap() {
  suite overlap <<E1
{"schema": 1, "question": "Is an overlapped scheduler faster on a clear machine?", "rounds": 3,
 "arms": {"factor": "overlap", "values": ["off", "on"]},
 "defaults": {$shared, "layers": $layers, "output_len": 60, "host_us": 1000}, "cells": [{}]}
E1
  cctax overlap "$out/overlap.json" --condition off && judge overlap
}
graph() {
  suite graph <<E1
{"schema": 1, "question": "Does a graph of the whole step remove all submissions but those left outside?", "rounds": 3,
 "arms": {"factor": "condition", "values": ["off", "emulated:b200x8-tdx"]},
 "defaults": {$shared, "layers": 12, "output_len": 40}, "cells": [{"graph": ["none", "full"]}]}
E1
  cctax graph "$out/graph.json" && judge graph
}
schedule() {
  local cell='"model": "qwen3-8b", "workload": "serve", "check": 0, "layers": 4, "concurrency": 12, "num_prompts": 40, "input_len": 200, "output_len": 30,
    "random_range_ratio": 0.6, "kv_tokens": 2400, "max_batched_tokens": 512'
  suite schedule <<E1
{"schema": 1, "rounds": 1, "arms": {"factor": "condition", "values": ["off"]}, "defaults": {$cell},
 "cells": [{"layout": "tp=1", "np": 1, "overlap": ["off", "on"]},
           {"layout": "tp=1", "np": 1, "arrivals": "steps", "request_rate": 0.4, "speculate": 3, "graph": "piecewise"},
           {"layout": "tp=1", "np": 1, "arrivals": "zero", "preempt": "offload", "readback": "worker", "overlap": "on"}
           $([ "$gpus" -ge 2 ] && echo ', {"layout": ["tp=2", "dp=2"], "np": 2, "overlap": "on"}')]}
E1
  cctax schedule "$out/schedule.json" || return
  backend=sim cctax schedule-sim "$out/schedule.json" && judge schedule
}

disaggregated() {
  local cell='"model": "qwen3-8b", "workload": "serve", "layout": "dp=2", "np": 2, "check": 0, "layers": 4, "input_len": 1000, "output_len": 40,
    "random_range_ratio": 0.5, "kv_tokens": 24000, "disaggregate": "1:1"' share=()
  [ "$gpus" -ge 2 ] || share=(--shared-gpu)
  suite apart <<E1
{"schema": 1, "rounds": 1, "arms": {"factor": "condition", "values": ["off"]}, "defaults": {$cell, "num_prompts": 24},
 "cells": [{"arrivals": "zero", "kv_route": ["p2p", "host"], "overlap": ["off", "on"]},
           {"arrivals": "steps", "request_rate": 0.4, "kv_route": ["p2p", "host"], "readback": "worker", "overlap": "on"}]}
E1
  cctax apart "$out/apart.json" "${share[@]}" || return
  backend=sim cctax apart-sim "$out/apart.json" && judge apart
  suite routes <<E1
{"schema": 1, "question": "What does confidential computing add to caches that change replicas, by the way they take?", "rounds": 3,
 "arms": {"factor": "condition", "values": ["off", "emulated:b200x8-tdx"]},
 "defaults": {$cell, "concurrency": 8, "num_prompts": 32, "overlap": "on", "readback": "worker"},
 "cells": [{"kv_route": ["p2p", "host"]}]}
E1
  cctax routes "$out/routes.json" "${share[@]}" || return
  judge routes "${#share[@]}"
}

for part in "${parts[@]}"; do
  case $part in
    readback | overlap | calibrate) [ $calibrated = 1 ] || calibrate ;;
  esac
  [ "$part" = calibrate ] || "$part"
done
[ $bad = 0 ] && echo "PASS all of: ${parts[*]}" || echo "FAIL"
exit $bad

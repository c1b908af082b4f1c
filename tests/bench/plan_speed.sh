#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plan_speed.sh CCTAX: time and memory of the two plans that have a budget, on one core. Not run by CI.
#   all layouts of deepseek-r1 on 8 ranks: under 1 s; 4096 ranks: under 30 s and 1 GB
set -euo pipefail
cctax=$(realpath "${1:?usage: plan_speed.sh CCTAX}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
export CCTAX_DATA=$root/data
# 4096 ranks need the cost of a network between NVLink domains, which no shipped profile has.
python3 - "$CCTAX_DATA/profiles/b200x8-tdx.json" "$folder/net.json" <<'PY'
import json, sys
profile = json.load(open(sys.argv[1]))
def cost(value):
    return {"value": value, "lo": value, "hi": value, "kind": "assumed", "source": "benchmark"}
profile["clear"]["net"] = {"us": cost(12), "gb_s": cost(45)}
profile["confidential"]["net"] = {"us": cost(20), "gb_s": cost(40)}
json.dump(profile, open(sys.argv[2], "w"))
PY
timed() {
  local what=$1
  shift
  /usr/bin/time -f "$what: %e s wall, %U s user, %M KiB" taskset -c 0 "$cctax" plan --model deepseek-r1 "$@" > "$folder/out" 2> "$folder/err"
  grep wall "$folder/err"
}
for workload in decode prefill serve train; do
  timed "deepseek-r1, 8 ranks, all layouts, $workload" --np 8 --workload "$workload" --profile b200x8-tdx
done
timed "deepseek-r1, 4096 ranks, all layouts, serve" --np 4096 --workload serve --concurrency 8192 --profile "$folder/net.json"
timed "deepseek-r1, 4096 ranks, all layouts, train" --np 4096 --workload train --profile "$folder/net.json"

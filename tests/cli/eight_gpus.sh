#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/eight-gpus.sh in sim: parts are performed, interrupted, resumed, and not repeated. eight_gpus.sh SCRIPT CCTAX
set -uo pipefail
script=$1
export CCTAX=$2 BACKEND=sim SMALL=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; cat "$work"/*/*.log 2>/dev/null | tail -n 5; exit 1; }

out=$(FLAGS="--procs 1" "$script" "$work/a" doctor coll-8 steps report 2>&1) || fail "parts end with $?: $out"
[ "$(grep -c 'exit 0' "$work/a/times.txt")" = 4 ] || fail "times.txt: $(cat "$work/a/times.txt")"
for page in train decode decode-4 coll-8; do
  [ -s "$work/a/report/$page/index.html" ] || fail "no report of $page"
done
[[ $("$script" "$work/a" steps) == "steps: done before"* ]] || fail "a part that is done is repeated"

LIMIT=0 "$script" "$work/b" steps >/dev/null 2>&1
[ $? -eq 3 ] || fail "a part without time does not end with 3"
[ ! -e "$work/b/train" ] || fail "a part without time does something"
LIMIT=1 "$script" "$work/b" steps >/dev/null 2>&1 # nine blocks of eight processes
[ $? -eq 3 ] || fail "an interrupted part does not end with 3"
[ ! -e "$work/b/steps.done" ] || fail "an interrupted part counts as done"
"$script" "$work/b" steps >/dev/null || fail "an interrupted part does not go on: $?"
"$CCTAX" check "$work/b/train" >/dev/null || fail "what was interrupted is damaged"

"$script" "$work/c" coll-16 2>/dev/null
[ $? -eq 2 ] || fail "an unknown part is not refused"
BACKEND=cuda NP=99 "$script" "$work/c" doctor 2>/dev/null
[ $? -eq 2 ] || fail "99 GPUs are not missed"
echo passed

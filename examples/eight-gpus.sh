#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# eight-gpus.sh OUT [PART...]: the whole measurement of one eight-GPU machine in at most 25 minutes.
#
# Parts, each at most 8 minutes, in this order; without PART all of them (seconds: the time at which a part is interrupted):
#   doctor    what the machine is                                                               30
#   probe     the unit costs of every boundary, and a profile of them                          210
#   coll-2    collectives by algorithm and protocol, in graphs, 1 KiB to 1 GiB, on 2 ranks      75
#   coll-4    the same on 4                                                                     90
#   coll-8    the same on 8                                                                    120
#   tune      rules for NCCL's tuner, and their verification against NCCL's own choice         450
#   steps     training and decoding by layout under off, stripped and emulated:b200x8-tdx      330
#   plan      what sim says of the same arms and layouts on the probed profile, and the planner of the shipped ones  40
#   report    pages of all of it                                                                90
# A part that was finished is not repeated; one that was interrupted goes on when this is called again. What was left in OUT
# is what is kept: runs (HDF5), OUT/report, OUT/profile.json, OUT/tune/rules.csv, OUT/times.txt.
#
# The machine's environment stays as it is. Where NCCL_NVLS_ENABLE=0 is set, `off` has no multicast either: the arm stripped then
# takes nothing away, and OUT/times.txt says so. Exit 0: all parts done, 1: and something wrong was found, 2: a part could
# not run, 3: a part was interrupted.
#
# To rehearse on other machines: NP=2 (or 4, 1), BACKEND=sim, FLAGS=--shared-gpu (eight ranks on one GPU), SMALL=1 (short sizes).
set -uo pipefail
cctax=${CCTAX:-$(cd "$(dirname "$0")" && pwd)/../build/release/bin/cctax}
out=${1:?usage: eight-gpus.sh OUT [PART...]}
shift
np=${NP:-8} backend=${BACKEND:-cuda} small=${SMALL:-}
read -ra flags <<<"${FLAGS:-}"
parts=("$@")
[ $# -gt 0 ] || parts=(doctor probe coll-2 coll-4 coll-8 tune steps plan report)
declare -A seconds=([doctor]=30 [probe]=210 [coll-2]=75 [coll-4]=90 [coll-8]=120 [tune]=450 [steps]=330 [plan]=40 [report]=90)
for part in "${parts[@]}"; do
  [ -n "${seconds[$part]:-}" ] || { echo "no part '$part': ${!seconds[*]}" >&2; exit 2; }
done
command -v "$cctax" >/dev/null || { echo "no $cctax: build first (README), or name it by CCTAX" >&2; exit 2; }
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
if [ "$backend" = cuda ] && [ ${#flags[@]} -eq 0 ]; then
  there=$(nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null | sort -u | wc -l)
  [ "$there" -ge "$np" ] || { echo "$there GPUs here, $np are needed: NP=N for fewer, or BACKEND=sim" >&2; exit 2; }
fi
case $backend in sim) machine=(--profile "${PROFILE:-h200}") ;; *) machine=() ;; esac
if [ -n "$small" ]; then
  sizes=(-b 64K -e 1M -f 16 -n 2 -w 1 -G 1 --samples 2) algorithms=default,ring protocols=default,simple
  probing=(--samples 2 -w 1 --rounds 1) stepping=(--rounds 1 --samples 1 -w 1) training=(--seq-len 128)
  model=$out/small-moe.json layers=2 # gradients of a whole model would go through the host for minutes
  cat >"$model" <<EOF
{"model_type": "qwen3_moe", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 64,
 "intermediate_size": 1024, "moe_intermediate_size": 256, "num_experts": 16, "num_experts_per_tok": 2, "vocab_size": 8192,
 "torch_dtype": "bfloat16", "tie_word_embeddings": false, "mlp_only_layers": [], "decoder_sparse_step": 1}
EOF
  tuning=(-b 64K -e 64K --samples 2 --collective all_reduce --algorithms ring --protocols simple --channels default)
else
  sizes=(-b 1K -e 1G -f 4 -n 20 -G 2 --samples 3) algorithms=default,ring,tree protocols=default,ll,ll128,simple
  model=qwen3-30b-a3b probing=(--samples 10) layers=8 stepping=(--rounds 3 --samples 20) training=() tuning=()
fi
[ "${NCCL_NVLS_ENABLE:-}" != 0 ] || echo "NCCL_NVLS_ENABLE=0 here: off has no multicast" | tee -a "$out/times.txt"
decoding=(--batch 32)
worst=0

run() { # LOG, command: 0 and 1 are results, as 77 is (nothing here to be asked); whatever else ends the part
  local log=$1 rc=0 left=$((until - SECONDS))
  shift
  [ $left -gt 0 ] || return 3 # to timeout, 0 is no limit
  timeout -s INT -k 20 $left "$@" >"$out/$log.txt" 2>"$out/$log.log" || rc=$?
  [ $rc -ne 77 ] || rc=0
  [ $rc -le 1 ] || { echo "$log: exit $rc"; tail -n 3 "$out/$log.log"; } >&2
  [ $rc -ne 124 ] || rc=3
  [ $rc -le 1 ] || return $rc
  found=$((found > rc ? found : rc))
}
measure() { # FOLDER, COMMAND, flags: a run, or the rest of it
  local folder=$1 command=$2
  shift 2
  if [ -n "$(ls -A "$out/$folder" 2>/dev/null)" ]; then
    run "$folder" "$cctax" "$command" -o "$out/$folder" --resume
  else
    run "$folder" "$cctax" "$command" -o "$out/$folder" "$@"
  fi
}
here=(--backend "$backend" "${machine[@]}" "${flags[@]}")
collectives() { # ranks
  local choices=(--algorithms "$algorithms" --protocols "$protocols")
  [ "$1" -le "$np" ] || return 0
  [ "$backend" = cuda ] || choices=() # NCCL's alone
  measure "coll-$1" coll "${here[@]}" -g "$1" --collective all_reduce,all_gather,reduce_scatter,all_to_all "${sizes[@]}" \
    --place out "${choices[@]}"
}
layouts() { # of a workload, for np ranks
  case $1-$np in
  train-1 | decode-1) echo tp=1 ;;
  train-2) echo tp=2/ep=2,dp=2 ;;
  decode-2) echo tp=2/ep=2,dp=2 ;;
  train-*) echo "tp=$np/ep=$np,dp=$np/tp=2,ep=$np,dp=$((np / 2))" ;;
  decode-*) echo "tp=$np/ep=$np,dp=$np" ;;
  esac
}
steps() { # FOLDER PREFIX, then what performs them
  local prefix=$1
  shift
  step() { # WORKLOAD, FOLDER, RANKS, LAYOUTS
    local workload=$1 folder=$prefix$2 ranks=$3 layouts=$4
    shift 4
    measure "$folder" run "$@" --model "$model" --workload "$workload" --np "$ranks" --layouts "$layouts" --layers "$layers" \
      --condition off,stripped,emulated:b200x8-tdx "${stepping[@]}" "${more[@]}"
  }
  local more=("${training[@]}")
  step train train "$np" "$(layouts train)" "$@" && more=("${decoding[@]}") && step decode decode "$np" "$(layouts decode)" "$@" &&
    { [ "$np" -lt 8 ] || step decode decode-4 4 tp=4 "$@"; }
}
perform() {
  case $1 in
  doctor) run doctor "$cctax" doctor --json ;;
  probe)
    measure probe probe "${here[@]}" --np "$np" "${probing[@]}" && { [ -e "$out/profile.json" ] || run profile "$cctax" profile "$out/probe" \
      -o "$out/profile.json" --profile "${PROFILE:-h200}"; } ;;
  coll-2 | coll-4 | coll-8) collectives "${1#coll-}" ;;
  tune) measure tune tune "${here[@]}" -g "$np" "${tuning[@]}" ;;
  steps) steps "" "${here[@]}" ;;
  plan)
    local workload profile=$out/profile.json
    [ -e "$profile" ] || profile=${PROFILE:-h200}
    steps predicted- --backend sim --profile "$profile" || return
    for workload in train decode; do
      local planning=()
      [ $workload = train ] || planning=("${decoding[@]}")
      for profile in h200 b200x8-tdx; do
        run "plan-$workload-$profile" "$cctax" plan --model "$model" --workload "$workload" --np "$np" \
          --layouts "$(layouts $workload)" --layers "$layers" "${planning[@]}" --profile "$profile" || return
      done
    done ;;
  report)
    local folder machine=${PROFILE:-h200}
    [ ! -e "$out/profile.json" ] || machine=$out/profile.json
    mkdir -p "$out/report" || return 2
    for folder in {,predicted-}{train,decode,decode-4} coll-{2,4,8}; do
      [ ! -e "$out/$folder/run.json" ] || [ -e "$out/report/$folder/index.html" ] ||
        run "report-$folder" "$cctax" report "$out/$folder" -o "$out/report/$folder" --profile "$machine" || return
    done ;;
  esac
}
for part in "${parts[@]}"; do
  [ ! -e "$out/$part.done" ] || { echo "$part: done before (rm $out/$part.done to repeat it)"; continue; }
  start=$SECONDS until=$((SECONDS + ${LIMIT:-${seconds[$part]}})) found=0 rc=0
  perform "$part" || rc=$?
  [ $rc -ne 0 ] || { rc=$found && touch "$out/$part.done"; }
  echo "$part: exit $rc, $((SECONDS - start)) of ${seconds[$part]} s" | tee -a "$out/times.txt"
  worst=$((worst > rc ? worst : rc))
done
exit $worst

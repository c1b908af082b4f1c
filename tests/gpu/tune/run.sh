#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does `cctax tune` find what NCCL's default loses, and do its rules keep it? On a machine with two GPUs:
#   run.sh BUILD OUT [NCCL_TESTS|-] [PART...]
# BUILD: a build with bin/cctax and lib/libnccl-tuner-cctax.so; OUT: a folder, kept between calls; NCCL_TESTS: the folder of its
# *_perf programs, built with MPI. Parts, each of which goes on where an earlier call was ended:
#   measure     the grid, all_reduce, all_gather and reduce_scatter from 1 KiB to 1 GiB; rules and environment
#   verify      the rules against NCCL's default, 9 alternating pairs, and the bars
#   nccl-tests  unchanged programs with and without OUT/run/nccl.conf, 5 alternating pairs; sizes with a rule and one beside
#               each end, and up to 256 MiB where channels were chosen
#   torch       a PyTorch all-reduce in a CUDA graph, the same
# Without PART all that is possible. A call ends by itself after LIMIT seconds (default 520); what is not finished then is
# finished by the next call. TUNE_FLAGS go to cctax tune's first call. Exit 0: all bars held, 1: not, 2: cannot run, 3: the time
# was up, 77: no two GPUs here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD OUT [NCCL_TESTS|-] [PART...]}") out=${2:?} tests=${3:--}
parts=("${@:4}")
[ ${#parts[@]} -gt 0 ] || parts=(measure verify nccl-tests torch)
limit=${LIMIT:-520} pairs=${PAIRS:-5}
[ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" -ge 2 ] || { echo "no two GPUs here"; exit 77; }
mkdir -p "$out" && out=$(realpath "$out") || exit 2
for program in bin/cctax bin/cctax-rank lib/libcctax-cuda.so lib/libnccl-tuner-cctax.so; do
  [ -e "$build/$program" ] || { echo "no $build/$program"; exit 2; }
done
. "$here/../machine.sh" || exit 2
[ -d "$build/data" ] && data=$build/data || data=$(realpath "$here/../../../data")
export CCTAX_DATA=${CCTAX_DATA:-$data}
unset NCCL_ALGO NCCL_PROTO NCCL_DEBUG NCCL_GRAPH_REGISTER NCCL_TUNER_PLUGIN NCCL_CONF_FILE CCTAX_TUNER_RULES
worst=0
left() { echo $((limit - SECONDS)); }
note() { [ "$1" -gt "$worst" ] && worst=$1; return 0; }

tune() { # FLAGS: begins the tune, or goes on with it; interrupted when the time is up
  local rc=0
  [ "$(left)" -gt 20 ] || { echo "$*: the time is up"; note 3; return 3; }
  timeout -s INT -k 30 "$(left)" "$build/bin/cctax" tune -o "$out/run" "$@" >"$out/tune.txt" || rc=$?
  cat "$out/tune.txt"
  [ $rc -eq 124 ] && rc=3
  echo "cctax tune $*: exit $rc, $SECONDS s"
  note $rc
  return $rc
}

measure() {
  if [ -e "$out/run/tune.json" ]; then
    tune --resume --verify no
  else
    # shellcheck disable=SC2086
    tune --backend cuda -g 2 --verify no ${TUNE_FLAGS:-}
  fi
}

alternate() { # NAME LONGEST COMMAND...: with and without, told apart by $arm and $pair; files that are there stay
  local name=$1 longest=$2 file part=$out/$1.part.json # nccl-tests writes what is named .json alone, and never over a file
  shift 2
  mkdir -p "$out/$name"
  for pair in $(seq "$pairs"); do
    for arm in $([ $((pair % 2)) -eq 1 ] && echo plain tuned || echo tuned plain); do
      for what in "$@"; do
        file=$out/$name/$what-$arm-$pair.json
        [ -s "$file" ] && continue
        [ "$(left)" -gt "$longest" ] || { echo "$name, pair $pair: the time is up"; note 3; return; }
        rm -f "$part"
        if [ "$arm" = tuned ]; then
          env NCCL_CONF_FILE="$out/run/nccl.conf" timeout 90 "run_$name" "$what" "$part" >"$file.log" 2>&1
        else
          env NCCL_TUNER_PLUGIN=none timeout 90 "run_$name" "$what" "$part" >"$file.log" 2>&1
        fi && mv "$part" "$file" || { echo "FAILED: $name $what $arm $pair"; tail -n 5 "$file.log"; note 1; }
      done
    done
  done
}

cat >"$out/run_nccl-tests" <<SCRIPT
#!/bin/sh
set -- "\$1" "\$2" \$(python3 "$here/judge.py" "$out" sizes "\$1")
exec mpirun -np 2 --bind-to none "$tests/\$1_perf" -b "\$3" -e "\$4" -f 2 -n 20 -w 5 -G 5 -d float -J "\$2"
SCRIPT
cat >"$out/run_torch" <<SCRIPT
#!/bin/sh
exec python3 "$here/torch_all_reduce.py" "\$2" \$(python3 "$here/judge.py" "$out" sizes "\$1")
SCRIPT
chmod +x "$out/run_nccl-tests" "$out/run_torch"
PATH=$out:$PATH

for part in "${parts[@]}"; do
  case $part in
  measure) measure || break ;;
  verify) tune --resume --verify yes || true ;;
  nccl-tests)
    if [ -x "$tests/all_reduce_perf" ]; then
      alternate nccl-tests 10 all_reduce all_gather reduce_scatter
    else
      echo "nccl-tests: no $tests/all_reduce_perf, left out"
    fi
    ;;
  torch)
    if python3 -c 'import torch; assert torch.cuda.device_count() > 1' 2>/dev/null; then
      alternate torch 20 all_reduce
    else
      echo "torch: python3 has none, left out"
    fi
    ;;
  *) echo "no part '$part'"; exit 2 ;;
  esac
done
if [ "$worst" -ne 3 ]; then
  rc=0
  python3 "$here/judge.py" "$out" | tee "$out/verdict.txt" || true
  rc=${PIPESTATUS[0]}
  note "$rc"
fi
echo "$SECONDS s"
exit "$worst"

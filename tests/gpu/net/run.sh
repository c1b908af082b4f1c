#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/net/run.sh [OUT [all|figures]]: the net plugin under real NCCL on this machine's GPUs, against NCCL's own Socket.
# all: under 5 minutes. figures: under 100 s, the search and the rounds alone, at six sizes.
# Compiles plugin and programs with gcc (OpenSSL 3, CUDA and NCCL are needed; no cmake). Two ranks on two GPUs over loopback, peer
# to peer and shared memory off; eight ranks on one GPU. Values first, then errors, then the best settings of Socket and of the plugin,
# then rounds that alternate all arms. Logs in OUT. Exit 0: all right, 1: something is wrong, 77: no GPU here.
# Machine presets (NCCL_NVLS_ENABLE) stay as they are.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$here/../../..")
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ') || { echo "no GPU here"; exit 77; }
out=${1:-$(mktemp -d)} mode_of_run=${2:-all}
case $mode_of_run in
all) sizes=(8 128 1024 8192 65536 262144 1048576 4194304 16777216 134217728) time_for_rounds=220 ;;
figures) sizes=(8 128 1024 8192 1048576 134217728) time_for_rounds=78 ;;
*) echo "run.sh: '$mode_of_run' is neither all nor figures"; exit 2 ;;
esac
mkdir -p "$out"
rm -f "$out"/{errors,values,load,last}.log "$out"/{stats,tls,chosen}.jsonl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$SECONDS failures=0
cuda=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH=$work:$cuda/lib64:$cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
flags=(-O3 -std=gnu11 -Wno-format-truncation -D_GNU_SOURCE "-DCCT_VERSION=\"gpu\"" "-I$root/core" "-I$root")
net=$root/nccl_plugin/net base=$root/core/base

product=()
for file in "$net"/net_*.c; do
  case $file in *_test.c | *net_play.c | *net_bench.c | *net_fuzz.c) ;; *) product+=("$file") ;; esac
done
gcc "${flags[@]}" -fPIC -shared -fvisibility=hidden "${product[@]}" "$base"/{text,log,status,clock}.c \
  -Wl,--version-script="$net/net_plugin.map" -Wl,-z,defs -Wl,-z,nodelete -o "$work/libnccl-net-cctax.so" -lssl -lcrypto -lpthread -lm &&
  gcc "${flags[@]}" "-DCCT_NET_PLUGIN=\"$work/libnccl-net-cctax.so\"" "$net"/net_{bench,play}.c -o "$work/net_bench" -ldl &&
  gcc "${flags[@]}" -I"$cuda/include" "$here/net_gpu.c" -o "$work/net_gpu" -L"$cuda/lib64" -L"$cuda/lib" -lcudart -lnccl -lpthread ||
  { echo "does not compile here"; exit 1; }
gcc "${flags[@]}" -fPIC -shared -fvisibility=hidden "$root/nccl_plugin/profiler/profiler_plugin.c" "$base"/{text,log,status,clock}.c \
  -Wl,--version-script="$root/nccl_plugin/profiler/profiler_plugin.map" -Wl,-z,defs -o "$work/libnccl-profiler-cctax.so" -lpthread -lm ||
  { echo "the profiler does not compile here"; exit 1; }
(umask 077; openssl rand -hex 32 >"$work/psk"; openssl rand -hex 32 >"$work/psk2")

unset NCCL_ALGO NCCL_PROTO NCCL_SOCKET_NTHREADS NCCL_NSOCKS_PERTHREAD NCCL_HOSTID
export NCCL_SOCKET_IFNAME=lo NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1 NCCL_DEBUG=WARN PSK_STRANGER=$work/psk2
export NCCL_TUNER_PLUGIN=none CCTAX_NET_PSK_FILE=$work/psk
socket=(NCCL_NET_PLUGIN=none NCCL_NET=Socket)
plain=(NCCL_NET_PLUGIN=cctax NCCL_NET=cctax CCTAX_NET_MODE=plain)
tls=(NCCL_NET_PLUGIN=cctax NCCL_NET=cctax CCTAX_NET_MODE=tls)

machine="$(nvidia-smi -L | sed 's/^GPU [0-9]*: //; s/ (UUID.*//' | sort | uniq -c | tr -s ' ' | paste -sd';'), driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)
  $(nproc) cores, $(lscpu | sed -n 's/^Model name: *//p'), $(grep -qw vaes /proc/cpuinfo && echo VAES || echo no VAES), Linux $(uname -r)
  $(openssl version | cut -d' ' -f1-2): $(for c in aes-256-gcm aes-128-gcm; do openssl speed -evp $c -bytes 16384 -seconds 1 2>/dev/null | awk -v c=$c 'END {printf "%s %.1f GB/s a core, ", c, $2 / 1e6}'; done)kernel TLS: $(grep -qw tls /proc/sys/net/ipv4/tcp_available_ulp 2>/dev/null && echo there || echo none)
  $(date -u +%F), NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-unset}"
echo "machine:$machine"

must() { # TITLE SECONDS VARIABLE=VALUE... -- COMMAND...
  local title=$1 limit=$2 variables=() rc=0 begin=$SECONDS
  shift 2
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  env "${variables[@]}" timeout "$limit" "$@" >"$out/last.log" 2>&1 || rc=$?
  cat "$out/last.log" >>"$out/values.log"
  if [ $rc -eq 0 ]; then
    echo "ok      $title ($((SECONDS - begin)) s)"
  else
    echo "FAILED  $title: rc $rc"; tail -n 12 "$out/last.log" | sed 's/^/    /'; failures=$((failures + 1))
  fi
}

if [ "$mode_of_run" = all ] && [ "$gpus" -ge 2 ]; then
  env "${tls[@]}" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET timeout 60 "$work/net_gpu" time 2 1024 >"$out/load.log" 2>&1
  if grep -q "cctax" "$out/load.log" && grep -iq "using network cctax" "$out/load.log"; then
    grep -h "NET/cctax\|net plugin cctax\|NCCL version" "$out/load.log" | sed 's/.*NCCL INFO //' | sort -u | head -4
  else
    echo "FAILED  NCCL does not use the plugin"; tail -n 15 "$out/load.log"; failures=$((failures + 1))
  fi
  for mode in plain tls; do
    declare -n variables_of=$mode
    must "$mode: 2 ranks on 2 GPUs, by value" 60 "${variables_of[@]}" -- "$work/net_gpu" check 2
  done
  must "tls: a key update every 64 records, by value" 60 "${tls[@]}" CCTAX_NET_KEY_RECORDS=64 CCTAX_NET_STATS="$out/stats.jsonl" -- "$work/net_gpu" check 2
  grep -o '"key_updates_sent":[0-9]*' "$out/stats.jsonl" | head -2 | paste -sd' '
  must "profiler: records what NCCL chose" 60 "${tls[@]}" NCCL_PROFILER_PLUGIN=cctax CCTAX_PROFILER_FILE="$out/chosen.jsonl" -- "$work/net_gpu" time 2 1024 $((1 << 26))
  grep '"event":"coll"' "$out/chosen.jsonl" | sed 's/.*"func":"\([^"]*\)","count":\([0-9]*\).*"algo":"\([^"]*\)","proto":"\([^"]*\)","channels":\([0-9]*\).*/        \1 of \2: \3 \4, \5 channels/' | sort | uniq -c
  must "tls: a rank is killed, the other gets an NCCL error" 60 "${tls[@]}" -- "$work/net_gpu" kill 2
  grep -h "^rank\|WARN" "$out/last.log" | head -3 | sed 's/^/        /'
  must "tls: a rank has another key, both get an NCCL error" 60 "${tls[@]}" CCTAX_NET_CONNECT_TIMEOUT_S=3 -- "$work/net_gpu" stranger 2
  grep -h "^rank\|WARN" "$out/last.log" | head -5 | sed 's/^/        /'
fi
for mode in $([ "$mode_of_run" = all ] && echo plain tls); do
  declare -n variables_of=$mode
  must "$mode: 8 ranks on one GPU, by value (shared GPU)" 60 "${variables_of[@]}" CUDA_VISIBLE_DEVICES=0 -- "$work/net_gpu" check 8
done
[ "$gpus" -ge 2 ] || { echo "one GPU: no figures"; exit $((failures > 0)); }

if [ "$mode_of_run" = all ]; then
  timeout 30 "$work/net_bench" "$work/psk" 60 2 8 >"$out/bench.txt" 2>&1 || { echo "FAILED  net_bench"; failures=$((failures + 1)); }
  cat "$out/bench.txt"
fi

# The search: every setting once, the three fastest of each arm once more; the best has the best mean.
large=134217728
try() { # ARM VARIABLE=VALUE...: one line "ARM VARIABLES | BYTES US GB_S CORES" in search.txt
  local -n variables_of_try=$1
  local name=$1 line
  shift
  line=$(env "${variables_of_try[@]}" "$@" timeout 40 "$work/net_gpu" time 2 $large 2>>"$out/errors.log" | grep -E '^[0-9]+ ' | tail -1)
  echo "$name $* | $line" >>"$out/search.txt"
}
ranked() { # ARM LEAST: its settings that were tried LEAST times or more, the fastest mean first
  awk -v arm="$1" -v least="$2" -F' [|] ' 'index($1, arm " ") == 1 && split($2, f, " ") == 4 {sum[$1] += f[3]; n[$1]++}
    END {for (s in sum) if (n[s] >= least) printf "%.3f %s\n", sum[s] / n[s], substr(s, length(arm) + 2)}' "$out/search.txt" | sort -rn | cut -d' ' -f2-
}
: >"$out/search.txt"
for setting in "1 1" "2 2" "4 1" "4 2" "4 4" "8 2"; do
  read -r threads each <<<"$setting"
  try socket NCCL_SOCKET_NTHREADS="$threads" NCCL_NSOCKS_PERTHREAD="$each"
done
for setting in "4 8" "8 8" "8 12" "8 16" "16 12" "16 16"; do
  read -r sockets threads <<<"$setting"
  for mode in plain tls; do
    try $mode CCTAX_NET_SOCKETS="$sockets" CCTAX_NET_THREADS="$threads"
  done
done
for arm in socket plain tls; do
  while read -ra setting; do
    try $arm "${setting[@]}" </dev/null
  done < <(ranked $arm 1 | head -3)
done
read -ra socket_best <<<"$(ranked socket 2 | head -1)"; read -ra plain_best <<<"$(ranked plain 2 | head -1)"; read -ra tls_best <<<"$(ranked tls 2 | head -1)"
if [ "$mode_of_run" = all ]; then
  try tls "${tls_best[@]}" CCTAX_NET_INLINE_BYTES=65536
  try tls "${tls_best[@]}" CCTAX_NET_SPIN_US=100
  try plain "${plain_best[@]}" CCTAX_NET_SPIN_US=100
fi
echo "search: arm and settings | bytes us GB/s cores"
sed 's/^/  /' "$out/search.txt"
echo "searched after $((SECONDS - started)) s"

# Rounds: every arm once, in an order that turns, as long as time allows (two at least, seven at most).
arms=(socket-default socket-best plain-default plain-best tls-default tls-best tls-best-128)
one() { # ARM
  case $1 in
  socket-default) env "${socket[@]}" timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  socket-best) env "${socket[@]}" "${socket_best[@]}" timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  plain-default) env "${plain[@]}" timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  plain-best) env "${plain[@]}" "${plain_best[@]}" timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  tls-default) env "${tls[@]}" timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  tls-best-128) env "${tls[@]}" "${tls_best[@]}" CCTAX_NET_CIPHER=aes-128-gcm timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  tls-best) env "${tls[@]}" "${tls_best[@]}" CCTAX_NET_STATS="$out/tls.jsonl" timeout 40 "$work/net_gpu" time 2 "${sizes[@]}" ;;
  esac 2>>"$out/errors.log"
}
: >"$out/rounds.txt"
for ((round = 0; round < 7 && (round < 2 || SECONDS - started < time_for_rounds); round++)); do
  for ((i = 0; i < ${#arms[@]}; i++)); do
    turn=${arms[$(((i + round) % ${#arms[@]}))]}
    one "$turn" | grep -E '^[0-9]+ ' | sed "s/^/$round $turn /" >>"$out/rounds.txt"
  done
done
python3 - "$out/rounds.txt" "$machine" "socket ${socket_best[*]}" "plain ${plain_best[*]}" "tls ${tls_best[*]}" <<'TABLE'
import collections, statistics, sys
rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    _, arm, size, us, gbs, cores = line.split()
    rows[arm, int(size)].append((float(us), float(cores)))
arms = ["socket-default", "socket-best", "plain-default", "plain-best", "tls-default", "tls-best", "tls-best-128"]
sizes = sorted({size for _, size in rows})
cores = lambda arm, size: statistics.median([v[1] for v in rows[arm, size]] or [float("nan")])
us = lambda arm, size: statistics.median([v[0] for v in rows[arm, size]] or [float("nan")])
print("\n%s\nbest: %s" % (sys.argv[2].strip(), "; ".join(sys.argv[3:])))
print("all-reduce, 2 ranks on 2 GPUs, loopback; us an operation, median (least-most) of %d rounds" % max(map(len, rows.values())))
print("%10s" % "bytes" + "".join("%28s" % a for a in arms))
for s in sizes:
    print("%10d" % s + "".join("%28s" % ("%.1f (%.1f-%.1f)" % (us(a, s), min(rows[a, s])[0], max(rows[a, s])[0])) if rows[a, s] else "%28s" % "-" for a in arms))
print("%10s" % "GB/s" + "".join("%28s" % ("%.2f" % (1e-3 * sizes[-1] / us(a, sizes[-1]))) for a in arms) + "   at %d bytes" % sizes[-1])
print("%10s" % "cores" + "".join("%28.1f" % cores(a, sizes[-1]) for a in arms) + "   a rank there")
print("%10s" % "core ns/B" + "".join("%28.2f" % (1e3 * cores(a, sizes[-1]) * us(a, sizes[-1]) / sizes[-1]) for a in arms) + "   of one rank, to send and to receive a byte")
big = sizes[-1]
print("plain-best / socket-best at %d: %.2f of its bandwidth (wanted: 1 or more)" % (big, us("socket-best", big) / us("plain-best", big)))
for tls in "tls-default", "tls-best", "tls-best-128":
    print("%s: %.2f of plain-best (wanted: 0.85 or more), %.2f GB/s (wanted: above 7.2)" % (
        tls, us("plain-best", big) / us(tls, big), 1e-3 * big / us(tls, big)))
for s in sizes[:4]:
    least = min(us("socket-default", s), us("socket-best", s))
    print("%d bytes: plain %.2f, tls %.2f times Socket (wanted: 1.3 or less)" % (
        s, min(us("plain-default", s), us("plain-best", s)) / least, min(us("tls-default", s), us("tls-best", s)) / least))
TABLE
tail -n 1 "$out/tls.jsonl" 2>/dev/null
[ -s "$out/errors.log" ] && { echo "errors:"; sort "$out/errors.log" | uniq -c | sort -rn | head -8; }
echo "failures: $failures; $((SECONDS - started)) s"
exit $((failures > 0))

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doctor, probe and profile on this machine's GPUs, from a build made here or elsewhere:
#   run.sh BUILD [OUT] [NP]     OUT: a folder for the results; NP: ranks, default 1 (one GPU, the three-minute bar)
# Prints what the doctor says, how long the probe took, which cells were refused, the profile's values, and submission and
# copies beside the bare loops and, where it is installed, nvbandwidth. Nothing of the machine is changed.
set -uo pipefail
build=$1 out=${2:-/tmp/cctax-probe} np=${3:-1}
mkdir -p "$out"
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu; do
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_rmaps_base_oversubscribe=1
cctax=$build/bin/cctax
"$cctax" doctor --before-run --json >"$out/doctor.json"
"$cctax" doctor --before-run
echo "---- doctor: exit $?"
"$cctax" doctor --before-run --json --fixture "$out/doctor.json" | cmp - "$out/doctor.json" && echo "---- its record replays"
rm -rf "$out/off"
start=$(date +%s)
"$cctax" probe --backend cuda --np "$np" -o "$out/off" 2>"$out/probe.log"
status=$?
echo "---- probe on $np ranks: $(($(date +%s) - start)) s, exit $status"
grep -v "^block\|left$" "$out/probe.log" | sort | uniq -c | sort -rn | head -40
"$cctax" show "$out/off" >"$out/show.txt"
grep -A2 '"probe":"experiment"' "$out/show.txt" | head -120
"$cctax" profile "$out/off" -o "$out/profile.json" --profile h200 | tee "$out/profile.txt"
echo "---- profile: exit ${PIPESTATUS[0]}"
if command -v nvbandwidth >/dev/null; then
  nvbandwidth -t host_to_device_memcpy_ce device_to_host_memcpy_ce device_to_device_memcpy_read_ce | tee "$out/nvbandwidth.txt"
fi
exit "$status"

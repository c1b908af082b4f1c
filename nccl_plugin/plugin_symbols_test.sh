#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plugin_symbols_test.sh PLUGIN "SYMBOLS" "LIBRARIES": it shows NCCL these tables and nothing else, and needs libc and these alone.
# One that needs OpenSSL has threads, and must not be unloaded under them.
set -euo pipefail
libraries=${3:-}
shown=$(nm -D --defined-only "$1" | awk '{print $3}' | sort | tr '\n' ' ')
[ "$shown" = "$2 " ] || { echo "it exports: $shown"; exit 1; }
needs=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p')
for library in $needs; do
  case " libc.so.6 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 $libraries " in *" $library "*) continue ;; esac
  case $library in
  libasan* | libubsan* | libtsan* | libgcov* | libm.so.6) [ -n "${CCT_SANITIZED:-}" ] || { echo "it needs $library"; exit 1; } ;;
  *) echo "it needs $library"; exit 1 ;;
  esac
done
case $libraries in *libssl*) readelf -d "$1" | grep -q NODELETE || { echo "it could be unloaded under its threads"; exit 1; } ;; esac

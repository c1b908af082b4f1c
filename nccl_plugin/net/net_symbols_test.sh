#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_symbols_test.sh PLUGIN: it shows NCCL three tables and nothing else, and needs libc and OpenSSL alone.
set -euo pipefail
shown=$(nm -D --defined-only "$1" | awk '{print $3}' | sort | tr '\n' ' ')
[ "$shown" = "ncclNetPlugin_v10 ncclNetPlugin_v11 ncclNetPlugin_v12 " ] || { echo "it exports: $shown"; exit 1; }
needs=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p')
for library in $needs; do
  case $library in
  libc.so.6 | ld-linux* | libssl.so.3 | libcrypto.so.3) ;;
  libasan* | libubsan* | libtsan* | libgcov* | libm.so.6) [ -n "${CCT_NET_SANITIZED:-}" ] || { echo "it needs $library"; exit 1; } ;;
  *) echo "it needs $library"; exit 1 ;;
  esac
done
readelf -d "$1" | grep -q NODELETE || { echo "it could be unloaded under its threads"; exit 1; }

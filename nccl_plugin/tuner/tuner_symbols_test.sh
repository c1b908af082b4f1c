#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tuner_symbols_test.sh LIBRARY: it exports exactly what is promised, needs libc alone, and knows no multicast call.
set -euo pipefail
wanted=$(printf 'ncclTunerPlugin_v%d\n' 3 4 5 6)
exported=$(nm -D --defined-only "$1" | awk '{print $3}' | LC_ALL=C sort)
# ld-linux is libc's own: thread-local variables name it
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
paths=$(readelf -d "$1" | grep -cE '\((RPATH|RUNPATH)\)' || true)
[ "$exported" = "$wanted" ] || { printf 'exports:\n%s\n' "$exported"; exit 1; }
[ "$needed" = libc.so.6 ] || { printf 'needs:\n%s\n' "$needed"; exit 1; }
[ "$paths" = 0 ] || { echo "has a run path"; exit 1; }
! grep -qa cuMulticast "$1" || { echo "names a multicast call"; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh [CTEST FLAGS]: sets the machine up, builds, runs every test that this machine can run. PRESET=asan-ubsan, tsan or
# debug chooses another build. Tests for hardware that is not here are skipped with their reason.
set -euo pipefail
cd "$(dirname "$0")"
preset=${PRESET:-release}
./scripts/setup.sh --tests
cmake --preset "$preset" -DCCT_WERROR=${CI:+ON} >build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
rm -f build-configure.log
cmake --build --preset "$preset"
# Tests on real clocks share this machine with whatever else it does: a failure has to happen twice to count.
ctest --test-dir "build/$preset" --no-tests=error --output-on-failure --repeat until-pass:2 -j2 "$@"

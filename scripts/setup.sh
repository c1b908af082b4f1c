#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh [--tests]: installs by apt what building and running cctax needs and this machine lacks. Asks for nothing.
# Debian 12 and Ubuntu 24.04. With --tests also what only the tests use.
set -euo pipefail

packages=(gcc make cmake ninja-build pkg-config python3 libopenmpi-dev openmpi-bin libhdf5-dev gnuplot-nox
  fonts-inter fonts-dejavu-core libcmocka-dev libjansson-dev libgsl-dev libhwloc-dev libopenblas-dev libssl-dev)
test_packages=(python3-h5py hdf5-tools binutils clang-format iproute2 openssl)
[ "${1:-}" = --tests ] && packages+=("${test_packages[@]}")
# Ubuntu's chromium is a snap that does not install in a container; the page's browser test then skips with its reason.
[ "${1:-}" = --tests ] && grep -q '^ID=debian' /etc/os-release && packages+=(chromium)

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: this machine has no apt-get; install these by its own means: ${missing[*]}" >&2
  exit 2
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "setup: run as root or with passwordless sudo, or install first: ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo -n)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }; }
quietly apt-get -o Acquire::Retries=3 update
quietly apt-get -o Acquire::Retries=3 install -y --no-install-recommends "${missing[@]}"

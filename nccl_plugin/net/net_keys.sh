#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# net_keys.sh DIR: key material for the net plugin's tests: two pre-shared keys (psk, psk2), an authority (ca) with the certificates
# good and expired, and another authority (foreign_ca) with foreign. docs/net.md shows the same commands for a real job.
set -euo pipefail
umask 077
cd "$1"
openssl rand -hex 32 > psk
openssl rand -hex 32 > psk2
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n' > ca.conf
for ca in ca foreign_ca; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $ca.key -out $ca.pem -days 30 -subj "/CN=$ca" 2> log
done
certificate() { # NAME CA FROM UNTIL
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2> log
  : > index
  openssl rand -hex 8 > serial
  openssl ca -batch -config ca.conf -cert "$2.pem" -keyfile "$2.key" -in "$1.csr" -out "$1.pem" -notext -startdate "$3" -enddate "$4" 2> log
}
certificate good ca 20200101000000Z 20990101000000Z
certificate expired ca 20200101000000Z 20210101000000Z
certificate foreign foreign_ca 20200101000000Z 20990101000000Z

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tuner-proof.sh FOLDER [PROCESSES]                 reads the proofs that the tuner left in FOLDER (CCTAX_TUNER_PROOF)
# tuner-proof.sh run [-n PROCESSES] COMMAND ...      runs COMMAND with a fresh folder for them, then reads it
# Prints who loaded the tuner, with which rules, and what each decided. Exit 1, with one line a problem: no proof at all (NCCL
# runs on untuned, without an error, when it cannot load a tuner), fewer processes than expected, a communicator with a
# proof from some of its ranks only, a refused rules file, or ranks that decided differently. Exit 2: wrong usage.
set -euo pipefail

usage() { sed -n '3,4s/^# *//p' "$0" >&2; exit 2; }

read_proofs() { # FOLDER PROCESSES
  shopt -s nullglob
  local files=("$1"/*.proof)
  [ -d "$1" ] || { echo "tuner-proof: '$1' is not a folder" >&2; exit 2; }
  if [ ${#files[@]} -eq 0 ]; then
    echo "problem: no proof in '$1': no process loaded the tuner; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING says why"
    return 1
  fi
  awk -v wanted="$2" '
    function problem(text) { print "problem: " text; found = 1 }
    function close_file() {
      if (!name) return
      process = fact["host"] ":" fact["pid"]
      processes[process] = 1
      printf "%s pid %s  communicator %s  %s  %s\n", fact["host"], fact["pid"], fact["communicator"], fact["state"], fact["rules"]
      if (fact["rules"] ~ /^refused/) problem(process ": rules " fact["rules"])
      split(fact["communicator"], c, " ")
      if (c[1] != "0") {
        members[c[1]]++; size[c[1]] = c[3]
        if (fact["state"] != "finished") open[c[1]] = 1
        if ((c[1] in rules) && rules[c[1]] != fact["rules"]) problem("communicator " c[1] ": its ranks have different rules")
        if ((c[1] in counts) && counts[c[1]] != line) differ[c[1]] = 1
        rules[c[1]] = fact["rules"]; counts[c[1]] = line
      }
      delete fact
      line = ""
    }
    FNR == 1 { close_file(); name = FILENAME }
    /^[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9] / {
      text = substr($0, 10); sub(/ +$/, "", text)
      total[text] += $1; if (!(text in order)) { order[text] = ++n; texts[n] = text }
      line = line " " $1
      next
    }
    { key = $1; sub(/^[^ ]+ +/, ""); sub(/ +$/, ""); fact[key] = $0 }
    END {
      close_file()
      print ""
      for (i = 1; i <= n; i++) if (total[texts[i]] || texts[i] ~ /^calls that/) printf "%10d  %s\n", total[texts[i]], texts[i]
      for (id in members) {
        if (members[id] < size[id]) problem("communicator " id ": " members[id] " of its " size[id] " ranks left a proof")
        if ((id in differ) && !(id in open)) problem("communicator " id ": its ranks decided differently")
      }
      for (p in processes) np++
      if (wanted && np < wanted) problem(np " of " wanted " processes left a proof")
      exit found
    }' "${files[@]}"
}

[ $# -ge 1 ] || usage
if [ "$1" = run ]; then
  shift
  processes=0
  if [ "${1:-}" = -n ]; then processes=${2:-}; shift 2 || usage; fi
  [ $# -ge 1 ] && [[ $processes =~ ^[0-9]+$ ]] || usage
  CCTAX_TUNER_PROOF=$(mktemp -d)
  export CCTAX_TUNER_PROOF
  rc=0
  "$@" || rc=$?
  echo "proofs: $CCTAX_TUNER_PROOF"
  read_proofs "$CCTAX_TUNER_PROOF" "$processes" || exit $?
  [ $rc -eq 0 ] || { echo "problem: the command ended with $rc"; exit 1; }
else
  [ $# -le 2 ] && [[ ${2:-0} =~ ^[0-9]+$ ]] || usage
  read_proofs "$1" "${2:-0}"
fi

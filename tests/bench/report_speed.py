#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a report of 1000 cells and 1e6 samples takes one core, and what it weighs; exit 1 beyond 5 s, 500 MB or a page of
10 MB. CPU time of cctax and of the gnuplots it starts, so that a busy machine does not decide.

  report_speed.py BUILD        BUILD: a release build folder with bin/cctax and tests/make_run"""
import os, resource, subprocess, sys, tempfile

build = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    run, out = os.path.join(folder, "run"), os.path.join(folder, "out")
    subprocess.run([build + "/tests/make_run", run, "cells", "1000", "1000000"], check=True)
    best, largest = None, 0
    for attempt in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([build + "/bin/cctax", "report", run, "-o", out], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = seconds if best is None else min(best, seconds)
    megabytes = after.ru_maxrss / 1e3
    page = os.path.getsize(os.path.join(out, "index.html")) / 1e6
print("1000 cells, 1e6 samples: %.2f s of one core (best of 3), %.0f MB, page %.1f MB" % (best, megabytes, page))
sys.exit(0 if best < 5 and megabytes < 500 and page < 10 else 1)

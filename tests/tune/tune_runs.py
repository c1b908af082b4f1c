#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tune_runs.py CCTAX: cctax tune from flags to rules, files, page and verdict, on sim with noise and a known truth, and on the
host backend; and what it refuses. One line a part; exit 1 if one failed."""
import copy
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/..")
import checks

CCTAX = os.path.realpath(sys.argv[1])
DATA = os.environ.get("CCTAX_DATA") or os.path.join(os.path.dirname(__file__), "..", "..", "data")
ROOT = tempfile.mkdtemp(prefix="cctax-tune-")
PROFILE, NOISE = os.path.join(ROOT, "machine.json"), os.path.join(ROOT, "noise.txt")
GRID = (f"--backend sim --profile {PROFILE} --noise {NOISE} -g 2 --collective all_reduce,all_gather -b 256K -e 64M -f 16 "
        "--algorithms ring --channels 32 --samples 3 --procs 1")
CHECKS = checks.Checks(most=30)
say = CHECKS.say


def command(name, flags):
    return [CCTAX, "tune", "-o", os.path.join(ROOT, name), *flags.split()]


def tune(name, flags, **environment):
    return checks.perform(*command(name, flags), timeout=150, **environment)


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def make_machine(ll128=1.0):
    """Two H200s whose NCCL takes LL, then Simple, and never LL128, which is faster at 4 MiB; 32 channels carry more."""
    with open(os.path.join(DATA, "profiles", "h200.json"), encoding="utf-8") as file:
        profile = json.load(file)
    for kind in ("all_reduce", "all_gather"):
        rows = [row for row in profile["clear"]["collective"][kind] if row["ranks"] == 2]
        made = []
        for row in rows:
            for channels in (0, 32):
                own = copy.deepcopy(row)
                own["channels"] = channels
                own["busbw_gb_s"] = scaled(row["busbw_gb_s"], (1.1 if channels else 1) *
                                           (ll128 if row["protocol"] == "LL128" else 1))
                made.append(own)
                if row["algorithm"] == "Ring" and row["protocol"] != "LL128":
                    made.append(dict(own, algorithm="auto", protocol="range" + row["protocol"]))
        profile["clear"]["collective"][kind] = made
    with open(PROFILE, "w", encoding="utf-8") as file:
        json.dump(profile, file)


def scaled(cost, factor):
    return dict(cost, value=cost["value"] * factor, lo=cost["lo"] * factor, hi=cost["hi"] * factor)


def rules_of(name):
    return [line for line in read(name, "rules.csv").splitlines() if line[0] != "#" and not line.startswith("collective")]


def rules_are_found():
    done = tune("a", GRID + " --json")
    say(done.returncode == 0, "a tune ends well", done.stderr + done.stdout)
    document = json.loads(done.stdout)
    wanted = ["allreduce,2228225,35651584,ring,ll128,-1,1,2,1,-1,no-multicast,NVIDIA H200",
              "allgather,2228225,35651584,ring,ll128,-1,1,2,1,-1,no-multicast,NVIDIA H200"]
    say(rules_of("a") == wanted == document["rules"], "LL128 at 4 MiB alone, ranges halfway to 256 KiB and 64 MiB",
        read("a", "rules.csv"))
    say("# predicted: gpu=NVIDIA H200; ranks=2; nccl=none; driver=none; condition=off; date=20" in read("a", "rules.csv"),
        "the rules say where they are from", read("a", "rules.csv"))
    say(document["channels"] == 32, "32 channels are taken", document["settings"])
    verdict = document["verification"]
    say(verdict["held"] and verdict["ratio"] < 0.95 and verdict["slower"] == 0, "and hold against NCCL's own", verdict)
    cells = {(c["collective"], c["bytes"]): c for c in document["cells"]}
    middle = cells["all_reduce", 4 << 20]
    say(middle["choice"] == "ring/ll128/32" and middle["judged"]["n"] == 4 and middle["judged"]["hi"] < 1 and
        middle["verified"]["n"] == 9 and middle["verified"]["hi"] < 1, "every number is in the document", middle)
    say(json.loads(read("a", "tune.json"))["cells"] == document["cells"], "and in tune.json")
    conf, script = read("a", "nccl.conf"), read("a", "environment.sh")
    say("\nNCCL_MIN_CTAS=32\nNCCL_MAX_CTAS=32\n" in conf and f"\nCCTAX_TUNER_RULES={os.path.realpath(ROOT)}/a/rules.csv\n" in conf,
        "nccl.conf", conf)
    shell = checks.perform("sh", "-c", f". {ROOT}/a/environment.sh; echo $NCCL_MAX_CTAS $CCTAX_TUNER_RULES").stdout
    say(shell == f"32 {os.path.realpath(ROOT)}/a/rules.csv\n", "environment.sh", script)
    page = read("a", "report", "index.html")
    say("What do rules gain over NCCL&#39;s own choices?" in page or "What do rules gain over NCCL's own choices?" in page and
        page.rstrip().endswith("</html>") and "all bars held" in page, "the page", page[-2000:])
    if shutil.which("gnuplot"):
        say(page.count("<svg") == 4, "with both figures, wide and narrow", page.count("<svg"))


def objectives_differ():
    done = tune("o", GRID.replace("-b 256K", "-b 64M").replace(",all_gather", "") + " --objective overlap --verify no --json")
    document = json.loads(done.stdout)
    say(done.returncode == 0 and document["plan"]["objective"] == "overlap" and "verification" not in document and
        any(s["beside_gemm"] for s in document["settings"]), "a GEMM beside the collectives is measured", done.stdout)


def interrupted_is_resumed():
    process = subprocess.Popen(command("b", GRID), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    block = os.path.join(ROOT, "b", "rest", "block-0001.h5")
    limit = time.monotonic() + 100
    while not os.path.exists(block) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    say(process.returncode == 3 and f"go on with: cctax tune -o {ROOT}/b --resume" in said, "an interrupt ends it with 3", said)
    say(not os.path.exists(os.path.join(ROOT, "b", "rules.csv")), "and leaves no rules")
    tune("other", GRID.replace("-b 256K -e 64M", "-b 512K -e 128M") + " --verify no")
    shutil.copytree(os.path.join(ROOT, "b"), os.path.join(ROOT, "mixed"))
    shutil.rmtree(os.path.join(ROOT, "mixed", "first"))
    shutil.move(os.path.join(ROOT, "other", "first"), os.path.join(ROOT, "mixed", "first"))
    done = tune("mixed", "--resume")
    say(done.returncode == 2 and "mixed/first: " in done.stderr and "not what this run was begun with" in done.stderr,
        "another tune's run of as many cells is not taken for this one's", done.stderr)
    done = tune("b", "--resume --rounds 9")
    say(done.returncode == 2 and "goes on as its tune.json says" in done.stderr, "flags beside --resume are refused", done.stderr)
    done = tune("b", "--resume --procs 1")
    strip = [line for line in read("b", "rules.csv").splitlines() if not line.startswith("# measured")]
    first = [line for line in read("a", "rules.csv").splitlines() if not line.startswith("# measured")]
    say(done.returncode == 0 and strip == first, "--resume gives the same rules as without the interrupt", done.stderr)
    same = [json.loads(read(name, "tune.json"))["cells"] for name in "ab"]
    say(same[0] == same[1], "and the same numbers")


def damage_is_seen():
    shutil.copytree(os.path.join(ROOT, "b"), os.path.join(ROOT, "d"))
    with open(os.path.join(ROOT, "d", "rest", "block-0002.h5"), "r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    os.remove(os.path.join(ROOT, "d", "rules.csv"))
    done = tune("d", "--resume --procs 1")
    say(done.returncode not in (0, 3) and "rest/block-0002.h5: damaged" in done.stderr and
        not os.path.exists(os.path.join(ROOT, "d", "rules.csv")), "a damaged record chooses nothing", done.stderr)
    with open(os.path.join(ROOT, "d", "tune.json"), "w", encoding="utf-8") as file:
        file.write('{"schema": 1, "plan": {"backend": "sim"}}')
    done = tune("d", "--resume --procs 1")
    say(done.returncode == 2 and "$.plan" in done.stderr, "a damaged tune.json is named by its path", done.stderr)


def other_rules_were_verified():
    shutil.copytree(os.path.join(ROOT, "b"), os.path.join(ROOT, "v"))
    document = json.loads(read("v", "tune.json"))
    document["rules"].pop()
    with open(os.path.join(ROOT, "v", "tune.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)
    for _ in range(2):
        done = tune("v", "--verify only --procs 1")
    say(done.returncode == 2 and "holds the verification of other rules" in done.stderr, "another cctax's verification is none of these rules",
        done.stdout + done.stderr)


def a_changed_machine_misses_the_bars():
    done = tune("c", GRID + " --verify no")
    say(done.returncode == 0, "measured, not verified", done.stderr)
    make_machine(ll128=0.5)
    done = tune("c", "--verify only --procs 1")
    document = json.loads(read("c", "tune.json"))
    say(done.returncode == 1 and document["verification"]["slower"] == 2 and not document["verification"]["held"] and
        "SLOWER" in done.stdout and "again" in done.stdout, "rules that do not hold are told, with both measurements",
        done.stdout + done.stderr)
    done = tune("c", "--verify only --procs 1")
    say(done.returncode == 1, "read again, the verdict stands", done.stdout)
    make_machine()


def bad_input_is_refused():
    rules = os.path.join(ROOT, "mine.csv")
    with open(rules, "w", encoding="utf-8") as file:
        file.write("mine\n")
    rows = [
        ("--rules " + rules, "a file is there, and stays"),
        ("--rounds 8", "5 to choose and 4 to judge"),
        ("--channels 32,32", "--channels: 32 is given twice"),
        ("--channels 65", "neither default nor 1 to 64"),
        ("--algorithms ring,tre", "did you mean tree?"),
        ("--protocols ll,simpel", "did you mean simple?"),
        ("--condition off,stripped", "rules are of one condition"),
        ("--collective all_reduce,all_to_allv", "all_to_all for all_to_allv"),
        ("-f 1", "a factor of 2 or more"),
        ("-b 2M -e 1M", "at most -e"),
        ("-g 1", "one rank has nothing to tune"),
        ("-d float,half", "tune measures one type"),
        ("--plugin /nowhere.so", "no such file"),
        ("--objective speed", "objective"),
        ("--dry-run", "no single program"),
        ("--resume", "no tune is there"),
        ("--verify only", "no tune is there"),
    ]
    for flags, words in rows:
        own = flags if "--resume" in flags or "only" in flags else f"--backend sim --profile {PROFILE} {flags}"
        done = tune("x", own)
        say(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout and
            not os.path.exists(os.path.join(ROOT, "x")), f"refused: {flags}", done.stderr + done.stdout)
    say(open(rules, encoding="utf-8").read() == "mine\n", "and the file is what it was")
    done = tune("a", f"--backend sim --profile {PROFILE}")
    say(done.returncode == 2 and "holds a tune" in done.stderr, "refused: the folder of another tune", done.stderr)
    for name, value in (("NCCL_ALGO", "ring"), ("NCCL_MIN_CTAS", "4"), ("NCCL_TUNER_PLUGIN", "x.so")):
        done = tune("x", "--backend cuda -g 2 --verify no", **{name: value})
        say(done.returncode == 2 and name in done.stderr and not os.path.exists(os.path.join(ROOT, "x")),
            f"refused: {name}={value} around NCCL", done.stderr)


def others_are_told():
    done = tune("e", f"--backend sim --profile {PROFILE} -g 2 --collective all_to_all -b 4M -e 4M --channels default --samples 1 --procs 1 -q "
                "--verify no")
    say(done.returncode == 0 and "all_to_all     NCCL asks no tuner; environment settings alone" in done.stdout and
        not rules_of("e"), "all_to_all has no rules, and that is said", done.stdout + done.stderr)
    done = tune("p", f"--backend sim --profile {PROFILE} -g 2 --collective all_reduce -b 4M -e 4M --algorithms ring --protocols simple "
                "--channels default,16 --samples 1 --procs 1 -q --verify no")
    say(done.returncode == 0 and "not played: profile" in done.stdout and "has no row of all_reduce with 16 channels" in done.stdout,
        "channels that the profile does not price are said not to be played", done.stdout + done.stderr)
    done = tune("s", f"--backend sim --profile {PROFILE} -g 2 --collective all_reduce -b 4M -e 4M --algorithms ring --protocols simple "
                "--samples 1 --procs 1 -q --verify no --json")
    say(done.returncode == 0 and json.loads(done.stdout)["plan"]["channels"] == [0, 32], "of the standard numbers those that the profile prices", done.stdout + done.stderr)
    done = tune("none", "-g 2", CUDA_VISIBLE_DEVICES="")
    say(done.returncode == 77 and done.stderr.startswith("cctax: rules are measured on GPUs: ") and done.stderr.count("\n") == 1 and
        "--backend sim predicts them" in done.stderr and not os.path.exists(os.path.join(ROOT, "none")), "without a GPU nothing is predicted unasked", done.stderr)
    done = tune("h", "--backend host -g 2 --collective all_reduce -b 4K -e 64K -f 16 --samples 2 -q")
    say(done.returncode == 0 and "one choice only" in done.stdout and not rules_of("h"), "host has one choice, and says so",
        done.stdout + done.stderr)


random.seed(11)
with open(NOISE, "w", encoding="utf-8") as noise:
    noise.writelines(f"{math.exp(random.gauss(0, 0.004)):.6f}\n" for _ in range(3000))
make_machine()
for part in (rules_are_found, objectives_differ, interrupted_is_resumed, damage_is_seen, other_rules_were_verified, a_changed_machine_misses_the_bars,
             bad_input_is_refused, others_are_told):
    part()
shutil.rmtree(ROOT)
CHECKS.end()

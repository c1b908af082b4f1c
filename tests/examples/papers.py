# SPDX-License-Identifier: Apache-2.0
# papers.py CCTAX SOURCE: every examples/paper-*.json and examples/training-*.json that serves nothing opens with its
# question, runs in sim, ends with every cell done, and no confidential arm of it is faster than the clear one.
import glob, json, os, sys, tempfile

sys.path.append(sys.path[0] + "/..")
import checks

cctax, source = sys.argv[1:3]
profiles = {"rtx": "rtx-pro-6000-sev-snp", "decode-loop": "rtx-pro-6000-sev-snp", "b300": "b300-sev-snp"}
shorter = {"paper-training": ["--accumulation", "2"]}  # of 69 micro-batches, which repeat
bad = []

def check(path):
    name = os.path.basename(path)[:-5]
    text = open(path).read()
    suite = json.loads(text)
    if "question" not in list(suite)[:2] or not suite["question"].rstrip().endswith((".", "?")):
        bad.append(f"{name}: does not open with its question")
    if '"serve"' in text:
        return 0
    profile = next((p for word, p in profiles.items() if word in name), "b200x8-tdx")
    with tempfile.TemporaryDirectory() as folder:
        try:
            document = checks.reported(cctax, folder + "/run", path, "--backend", "sim", "--profile", profile, "--rounds", "1",
                                       "--samples", "1", "--warmup", "0", "--procs", "1", *shorter.get(name, []))
        except SystemExit as trouble:
            bad.append(f"{name}: {trouble}")
            return 1
    for row in document["cells"]:
        if row["verdict"] == "refused" or row["time_overhead_pct"] is None or row["time_overhead_pct"] < -1e-6:
            bad.append(f"{name}: {row['workload']} {row['parameters']}, {row['arm']}: {row['verdict']} {row['time_overhead_pct']}")
    if "training" in name:
        if not document["training"] or not document["collectives"]:
            bad.append(f"{name}: no training speed or exposed collectives")
        for row in document["training"]:
            if not 0 < row["model_tflop_s_per_gpu"] <= 1.02 * row["hardware_tflop_s_per_gpu"] < 5000:
                bad.append(f"{name}: {row}")
    return 1

paths = sorted(glob.glob(source + "/examples/paper-*.json") + glob.glob(source + "/examples/training-*.json"))
n = sum(check(path) for path in paths)
print(f"{n} suites performed, {len(paths) - n} of serving read")
print("\n".join("FAILED: " + line for line in bad))
sys.exit(bool(bad) or n < 9)

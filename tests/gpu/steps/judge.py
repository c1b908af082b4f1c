# SPDX-License-Identifier: Apache-2.0
# judge.py order|training|checkpoint REPORT.json: what the report says, a PASS, FAIL or NOTE line a statement. Exit 1 on FAIL.
import json
import sys

sys.path.append(sys.path[0] + "/../..")
import checks

part, report = sys.argv[1], json.load(open(sys.argv[2]))
CHECKS = checks.Checks("PASS", "FAIL")

def say(passed, text):
    CHECKS.say(passed, f"{part}: {text}")

def way(side):
    return f"{side['layout']} {side['dispatch'] or ''}".strip()

if part == "order":
    if not report["order"]:
        say(False, "the report has no pair of cells to hold against each other")
    for pair in report["order"]:
        interval = pair["ci95_ratio"]
        text = (f"{way(pair['more'])} counts x{pair['counted_ratio']:.2f} the bytes of {way(pair['less'])} and takes "
                f"x{pair['time_ratio']:.3f} the time" +
                (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "") +
                f" ({pair['more']['moved_us']:.0f} against {pair['less']['moved_us']:.0f} us): {pair['verdict']}")
        if pair["verdict"] == "not ordered":
            print("NOTE order:", text)
        else:
            say(pair["verdict"] == "as counted", text)
else:
    for row in report["training"]:
        text = (f"{row['cell']}, {row['arm']}: {row['s_per_step']:.4g} s a step, {row['tokens_per_s']:.4g} tokens/s, "
                f"{row['model_tflop_s_per_gpu']:.4g} model TFLOP/s a GPU")
        if row["checkpoint_s"] is not None:
            text += f", a checkpoint adds {row['checkpoint_s']:.3g} s"
        say(row["hardware_tflop_s_per_gpu"] >= 0.99 * row["model_tflop_s_per_gpu"] > 0, text)
    for row in report["collectives"]:
        text = (f"{row['cell']}, {row['arm']}: {row['collective']} over {row['group']} {row['spent_us']:.0f} us, "
                f"{row['exposed_us']:.0f} us of them exposed")
        say(0 <= row["exposed_us"] <= 1.000001 * row["spent_us"], text)
    for row in report["training"] if part == "checkpoint" else []:
        say(row["checkpoint_s"] is not None, f"{row['cell']}, {row['arm']}: a step with a checkpoint was measured")
    if not report["training"] or not report["collectives"]:
        say(False, "the report lacks training or collectives")
sys.exit(CHECKS.failures > 0)

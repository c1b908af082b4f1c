#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help, manual page and completion say the same: every command and every flag of its help stands in the manual, and bash
completes them. Help fits 100 columns. manual.py CCTAX"""
import re
import shutil
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
import checks

CCTAX = sys.argv[1]


def said(*words):
    return checks.printed(CCTAX, *words)


def completed(line):
    """What bash offers behind the line's last word."""
    script = f"""source <({CCTAX} completion bash); COMP_WORDS=({line}); [[ '{line}' == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _cctax; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return checks.printed("bash", "-c", script).split()


def main():
    manual, wrong, n_flags = said("man"), [], 0
    commands = re.findall(r"^  (\S+)  ", said("--help"), re.M)
    if completed("cctax ") != commands:
        wrong.append(f"bash offers {completed('cctax ')}, help lists {commands}")
    for command in commands:
        text = said(command, "--help")
        wrong += [f"{command}: {len(line)} columns: {line}" for line in text.splitlines() if len(line) > 100]
        flags = re.findall(r"^  (?:-\w, |    )--([\w-]+)", text, re.M)
        n_flags += len(flags)
        entry = re.compile(r"^\\fB" + re.escape(command) + r"\\fR", re.M)
        if not flags or not entry.search(manual):
            wrong.append(f"{command}: not in the manual, or no flags in its help")
        wrong += [f"{command}: --{flag} is not in the manual" for flag in flags
                  if "\\fB\\-\\-" + flag.replace("-", "\\-") + "\\fR" not in manual]
        if sorted(completed(f"cctax {command} --")) != sorted("--" + flag for flag in flags):
            wrong.append(f"{command}: bash offers {completed(f'cctax {command} --')}")
    if completed("cctax run --graph ") != ["none", "piecewise", "full"]:
        wrong.append(f"--graph: bash offers {completed('cctax run --graph ')}")
    with tempfile.NamedTemporaryFile("w", suffix=".1") as page:
        page.write(manual)
        page.flush()
        if shutil.which("lexgrog"):
            done = checks.perform("lexgrog", page.name)
            if done.returncode or "what confidential computing costs" not in done.stdout:
                wrong.append(f"lexgrog: {done.stdout}{done.stderr}")
        if shutil.which("groff"):
            done = checks.perform("groff", "-man", "-Tascii", "-ww", page.name)
            if done.returncode or done.stderr:
                wrong.append(f"groff: {done.stderr}")
    print("\n".join(wrong) or f"{len(commands)} commands, {n_flags} flags")
    return 1 if wrong else 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a report in headless Chromium at three widths and requires: no console message of an error, no sideways overflow,
every figure visible, no text of a figure cut off at its edge or printed over another, and nothing requested from outside.

  browser_test.py MAKE_RUN CCTAX FOLDER   skips (77) where Chromium is missing. With CCT_SCREENSHOTS=1 pictures to
  look at are left in FOLDER."""
import json, os, re, shutil, subprocess, sys

make_run, cctax, folder = sys.argv[1:4]
WIDTHS = [360, 700, 1200]
browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not browser:
    print("skipped: no Chromium here (apt install chromium)")
    sys.exit(77)

CHECK = r"""<script>
addEventListener('load', () => {
  const bad = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) bad.push('page is ' + root.scrollWidth + ' px wide in ' + root.clientWidth);
  const figures = [...document.querySelectorAll('figure')];
  for (const figure of figures) {
    const name = figure.closest('section').id;
    const shown = [...figure.querySelectorAll('svg')].filter(s => getComputedStyle(s).display !== 'none');
    if (shown.length !== 1) { bad.push(name + ': ' + shown.length + ' drawings shown'); continue; }
    const box = shown[0].getBoundingClientRect();
    if (box.width < 250 || box.height < 80) bad.push(name + ': ' + box.width + ' x ' + box.height + ' px');
    if (!shown[0].getAttribute('aria-label')) bad.push(name + ': no alternative text');
    const texts = [...shown[0].querySelectorAll('text')].filter(t => t.textContent.trim());
    if (texts.length < 5) bad.push(name + ': only ' + texts.length + ' texts');
    const boxes = texts.map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
    for (const [text, b] of boxes) {
      if (b.left < box.left - 2 || b.right > box.right + 2 || b.top < box.top - 2 || b.bottom > box.bottom + 2)
        bad.push(name + ': cut off: ' + text);
      if (b.height < 10) bad.push(name + ': ' + b.height.toFixed(1) + ' px high: ' + text);
    }
    for (let i = 0; i < boxes.length; i++)
      for (let j = 0; j < i; j++) {
        const [s, a] = boxes[i], [t, b] = boxes[j];
        const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (w > 3 && h > 0.45 * Math.min(a.height, b.height)) bad.push(name + ': printed over each other: ' + s + ' / ' + t);
      }
  }
  parent.postMessage({width: innerWidth, figures: figures.length, bad: bad}, '*');
});
</script>"""

HOST = """<!doctype html><meta charset="utf-8"><body>%s<pre id="result"></pre><script>
const all = [];
addEventListener('message', e => { all.push(e.data);
  if (all.length === %d) document.getElementById('result').textContent = JSON.stringify(all); });
</script>"""


def run_browser(*arguments):
    return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
                           "--log-level=0", "--allow-file-access-from-files", "--virtual-time-budget=8000",
                           "--user-data-dir=" + os.path.join(folder, "profile"), *arguments],
                          capture_output=True, text=True, timeout=110)


def check(name):
    report = os.path.join(folder, name)
    page = open(os.path.join(report, "index.html"), encoding="utf-8").read()
    problems = [m for m in re.findall(r'(?:src|href)="(?!figures/|report\.)([^"#][^"]*)"', page)]
    problems = ["asks for " + p for p in problems]
    open(os.path.join(report, "checked.html"), "w", encoding="utf-8").write(page + CHECK)
    frames = "".join('<iframe src="checked.html" width="%d" height="900"></iframe>' % w for w in WIDTHS)
    open(os.path.join(report, "host.html"), "w").write(HOST % (frames, len(WIDTHS)))
    done = run_browser("--dump-dom", "file://" + os.path.join(report, "host.html"))
    problems += [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    if not result or not result.group(1):
        problems.append("the page never finished loading")
    else:
        for frame in json.loads(result.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")):
            if frame["figures"] < 2:
                problems.append("%d px: only %d figures" % (frame["width"], frame["figures"]))
            problems += ["%d px: %s" % (frame["width"], b) for b in frame["bad"]]
    os.remove(os.path.join(report, "host.html"))
    os.remove(os.path.join(report, "checked.html"))
    looks = (("wide", "1100,6000", []), ("narrow", "500,9000", []), ("dark", "1100,6000", ["--force-dark-mode"]))
    for form, size, flags in looks if os.environ.get("CCT_SCREENSHOTS") else ():
        shot = os.path.join(folder, "%s-%s.png" % (name, form))
        run_browser("--screenshot=" + shot, "--window-size=" + size, *flags, "file://" + os.path.join(report, "index.html"))
        if not os.path.exists(shot):
            problems.append("no screenshot " + form)
    for p in problems:
        print("%s: %s" % (name, p))
    return not problems


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
is_right = True
for name, arguments in (("boots", ["showcase", "3"]), ("rounds", ["showcase", "1"]), ("many", ["cells", "200", "40000"])):
    run = os.path.join(folder, "run-" + name)
    subprocess.run([make_run, run, *arguments], check=True)
    subprocess.run([cctax, "report", run, "-o", os.path.join(folder, name)], check=True, stdout=subprocess.DEVNULL)
    is_right = check(name) and is_right
sys.exit(0 if is_right else 1)

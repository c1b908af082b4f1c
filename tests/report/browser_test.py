#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens reports in headless Chromium at three widths and requires: no console message of an error, no sideways overflow,
every figure visible, no text of a figure cut off at its edge or printed over another, and nothing requested from outside.

  browser_test.py MAKE_RUN CCTAX FOLDER   skips (77) where Chromium is missing. With CCT_SCREENSHOTS=1 pictures to
  look at are left in FOLDER."""
import concurrent.futures, json, os, re, shutil, subprocess, sys

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
  parent.postMessage({name: %s, width: innerWidth, figures: figures.length, bad: bad}, '*');
});
</script>"""

HOST = """<!doctype html><meta charset="utf-8"><body>%s<pre id="result"></pre><script>
const all = [];
addEventListener('message', e => { all.push(e.data);
  if (all.length === %d) document.getElementById('result').textContent = JSON.stringify(all); });
</script>"""


def run_browser(*arguments):
    return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
                           "--log-level=0", "--allow-file-access-from-files", "--virtual-time-budget=8000", "--no-first-run",
                           "--disable-extensions", "--disable-background-networking", "--disable-component-update",
                           "--user-data-dir=" + os.path.join(folder, "profile"), *arguments],
                          capture_output=True, text=True, timeout=110)


def make(name, arguments):
    """Makes a run and its report; what the page asks for beyond its own folder is a problem."""
    run, report = os.path.join(folder, "run-" + name), os.path.join(folder, name)
    subprocess.run([make_run, run, *arguments], check=True)
    subprocess.run([cctax, "report", run, "-o", report], check=True, stdout=subprocess.DEVNULL)
    page = open(os.path.join(report, "index.html"), encoding="utf-8").read()
    open(os.path.join(report, "checked.html"), "w", encoding="utf-8").write(page + CHECK % json.dumps(name))
    asked = re.findall(r'(?:src|href)="(?!figures/|report\.)([^"#][^"]*)"', page)
    return ["%s: asks for %s" % (name, a) for a in asked]


def open_all(names):
    """One start of the browser, one load of each page at each width."""
    frames = ['<iframe src="%s/checked.html" width="%d" height="900"></iframe>' % (n, w) for n in names for w in WIDTHS]
    host = os.path.join(folder, "host.html")
    open(host, "w").write(HOST % ("".join(frames), len(frames)))
    done = run_browser("--dump-dom", "file://" + host)
    problems = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    if not result or not result.group(1):
        return problems + ["the pages never finished loading"]
    seen = json.loads(result.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    for frame in seen:
        if frame["figures"] < 2:
            frame["bad"].append("only %d figures" % frame["figures"])
        problems += ["%s, %d px: %s" % (frame["name"], frame["width"], b) for b in frame["bad"]]
    return problems


def take_pictures(name):
    page = "file://" + os.path.join(folder, name, "index.html")
    for form, size, flags in (("wide", "1100,6000", []), ("narrow", "500,9000", []), ("dark", "1100,6000", ["--force-dark-mode"])):
        run_browser("--screenshot=" + os.path.join(folder, "%s-%s.png" % (name, form)), "--window-size=" + size, *flags, page)


REPORTS = {"boots": ["showcase", "3"], "appended": ["appended"], "serving": ["serving"], "many": ["cells", "60", "6000"]}
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
with concurrent.futures.ThreadPoolExecutor() as pool:
    problems = sum(pool.map(make, REPORTS, REPORTS.values()), [])
problems += open_all(REPORTS)
for name in REPORTS if os.environ.get("CCT_SCREENSHOTS") else ():
    take_pictures(name)
for p in problems:
    print(p)
sys.exit(1 if problems else 0)

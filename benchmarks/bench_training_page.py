"""A run's curves in the page: how soon they are drawn, what following costs, and how fast a number or an alarm is seen.

- 10 curves of 100,000 points (two ranks, five names) in a run's Overview: from the request for the series to the painted charts, what the server needs for it, and tasks over
  50 ms while 20 lines with 5 numbers each are added per second.
- A rank prints a number: time until it is painted.
- A loss is NaN, and one of 64 ranks fails: time until the notification.

The variable ``TENSORBOARD`` names a ``tensorboard`` program of an environment of its own (``pip install tensorboard``). With it, TensorBoard shows the same numbers.

python benchmarks/bench_training_page.py [--json] [--quick]
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from log_fixtures import arguments, median, percentile, report
from page_fixtures import RUN_PAGE, browser_of, keep_front_end, scratch
from playwright.sync_api import Browser, Page, ViewportSize

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from lab_page import execute, hide_page, open_lab, run_tab
from lab_server import TOKEN, LabServer, free_port

#: All charts are in view, in TensorBoard too, which loads no others.
VIEWPORT: ViewportSize = {"width": 1400, "height": 1700}
NAMES = ("loss", "accuracy", "learning_rate", "grad_norm", "tokens_per_second")
RANKS = 2
POINTS = 100_000
FOLLOW_S = 20
LINES_A_SECOND = 20
MANY = 64

#: Counts drawings of charts, and keeps long tasks.
WATCH = """() => {
  window.longTasks = [];
  new PerformanceObserver(list => list.getEntries().forEach(one => window.longTasks.push(one.duration)))
    .observe({ entryTypes: ['longtask'] });
  performance.setResourceTimingBufferSize(10000);
  window.drawn = new Map();
  const { clearRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...all) {
    if (this.canvas.closest('.jp-HyperPod-Chart-plot')) {
      window.drawn.set(this.canvas, (window.drawn.get(this.canvas) ?? 0) + 1);
    }
    return clearRect.apply(this, all);
  };
  window.painted = () => new Promise(done => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  }));
}"""

#: Milliseconds from the first request for the series to the frame with all charts, and to the end of the answer; and its size.
FIRST_PAINT = """async ([selector, count]) => {
  const shown = () => [...window.drawn.keys()].filter(one => one.isConnected).length;
  while (shown() < count) await new Promise(requestAnimationFrame);
  const end = await window.painted();
  const [asked] = performance.getEntriesByType('resource').filter(one => /[/]series[?]/.test(one.name));
  return [end - asked.startTime, asked.responseEnd - asked.startTime, asked.decodedBodySize];
}"""

#: Unix milliseconds at which each of the values was painted.
SEEN = """values => {
  window.seen = {};
  const wanted = new Set(values);
  const look = async () => {
    const cell = document.querySelector('.jp-HyperPod-Chart-legend td');
    const value = cell?.textContent;
    if (!wanted.has(value)) return;
    wanted.delete(value);
    const canvas = cell.closest('.jp-HyperPod-Chart').querySelector('canvas');
    const before = window.drawn.get(canvas) ?? 0;
    // The figure may be there before its place on the curve.
    for (let n = 0; n < 30 && canvas && (window.drawn.get(canvas) ?? 0) === before; n++) await window.painted();
    await window.painted();
    window.seen[value] = Date.now();
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""

#: Unix milliseconds at which a notification with all texts was painted.
NOTICE = """texts => new Promise(done => {
  const look = async () => {
    const found = [...document.querySelectorAll('.Toastify__toast')].some(one =>
      texts.every(text => one.textContent.includes(text)));
    if (!found) return;
    watcher.disconnect();
    await window.painted();
    done(Date.now());
  };
  const watcher = new MutationObserver(look);
  watcher.observe(document.body, { subtree: true, childList: true, characterData: true });
  void look();
})"""

PRINTS = """
import json, os, random, sys, time
count, said = int(sys.argv[1]), {}
while not os.path.exists(sys.argv[3]):
    time.sleep(0.1)
for step in range(1, count + 1):
    time.sleep(random.uniform(0.4, 0.9))
    value = 1 + step / 1000
    said[f"{value:.4g}"] = time.time()
    print(f"step {step} loss {value:.3f}", flush=True)
json.dump(said, open(sys.argv[2], "w"))
time.sleep(600)
"""

BREAKS = """
import os, sys, time
kind, folder, go = sys.argv[1:]
rank = int(os.environ["RANK"])
for step in range(1, 40):
    print(f"step {step} loss {2 / step:.4f}", flush=True)
    time.sleep(0.02)
open(f"{folder}/ready-{rank}", "w").close()
while not os.path.exists(go):
    step += 1
    print(f"step {step} loss 0.05", flush=True)
    for _ in range(25):
        time.sleep(0.01)
        if os.path.exists(go):
            break
if kind == "nan" or rank == 37:
    with open(f"{folder}/at-{rank}", "w") as file:
        file.write(str(time.time()))
    if kind == "nan":
        print(f"step {step + 1} loss nan", flush=True)
    else:
        raise RuntimeError("rank 37 is out of memory")
time.sleep(600)
"""


def value_of(name: str, rank: int, step: int) -> float:
    """A number of a training."""
    fall = 2 / (1 + step / 5000) + 0.05 * math.sin(step / 40 + rank)
    return {
        "loss": fall,
        "accuracy": 1 - fall / 3,
        "learning_rate": 1e-4 * (1 + math.cos(step / POINTS * 3)) / 2,
        "grad_norm": fall * (1 + (step * 7919 % 100) / 100),
        "tokens_per_second": 91_000 + step * 6151 % 900,
    }[name]


def line(rank: int, step: int, moment: float) -> str:
    """A record as the launcher writes it."""
    values = {name: round(value_of(name, rank, step), 6) for name in NAMES}
    document = {"time": round(moment, 3), "rank": rank, "step": step, "values": values}
    return json.dumps(document) + "\n"


def submit(server: LabServer, name: str, *words: str, ranks: int = 1) -> str:
    """Submit a run; returns its id."""
    size = ("--processes-per-node", str(ranks), "--launcher", "python", "--name", name)
    return server.hpj("submit", *words[:1], *size, "--", *words[1:])


def state_of(server: LabServer, run_id: str) -> str:
    """How a run is."""
    return str(json.loads(server.hpj("show", run_id, "--json"))["state"])


def await_running(server: LabServer, run_id: str) -> Path:
    """The folder with the records of a run that has started."""
    while True:
        for folder in (server.home / "fsx").rglob(run_id):
            if state_of(server, run_id) == "running" and (folder / "logs/attempt-1").is_dir():
                return folder / "logs/attempt-1"
        time.sleep(0.3)


def answer_ms(server: LabServer, run_id: str) -> float:
    """How long the server needs for all series."""
    address = f"{server.url}/hyperpod/api/v1/runs/{run_id}/series?most=1000"
    request = urllib.request.Request(address, headers={"Authorization": f"token {TOKEN}"})
    begin = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        answer.read()
    return (time.perf_counter() - begin) * 1000


@contextmanager
def watched(browser: Browser) -> Iterator[Page]:
    """A page of its own that counts."""
    context = browser.new_context(viewport=VIEWPORT)
    context.add_init_script(f"({WATCH})()")
    page = context.new_page()
    page.set_default_timeout(120_000)
    yield page
    context.close()


def told(tasks: list[float]) -> str:
    """Long tasks in a word."""
    return f"{len(tasks)} (longest {max(tasks, default=0):.0f} ms)"


def long_tasks(page: Page, seconds: float) -> list[float]:
    """How long each task over 50 ms took, in ms."""
    page.evaluate("() => { window.longTasks = []; }")
    page.wait_for_timeout(seconds * 1000)
    return list(page.evaluate("window.longTasks"))


def row(what: str, value: float | str, beside: float = math.nan, digits: int = 0) -> dict[str, Any]:
    """A row of a report."""
    shown = {"what": what, "value": value if isinstance(value, str) else round(value, digits)}
    if isinstance(value, str) or math.isnan(beside):
        return shown
    return {**shown, "tensorboard": round(beside, digits), "ratio": round(value / beside, 2)}


def open_overview(page: Page, run_id: str) -> None:
    """Open the Overview of a run."""
    execute(page, "hyperpod:open-run", {"runId": run_id})
    run_tab(page.locator(RUN_PAGE), "Overview")


class Curves:
    """A run with long curves, in the page."""

    def __init__(self, server: LabServer, browser: Browser, points: int) -> None:
        self._server, self._browser, self._points = server, browser, points
        (server.work / "wait.py").write_text("import time\ntime.sleep(3000)\n")
        self.run_id = submit(server, "long", "wait.py", ranks=RANKS)
        self.file = await_running(server, self.run_id) / "node-0.metrics.jsonl"
        begin = time.time() - points / 10
        with self.file.open("w") as file:
            file.write('{"format":1}\n')
            for step in range(points):
                file.writelines(line(rank, step, begin + step / 10) for rank in range(RANKS))

    def paint(self, rounds: int) -> dict[str, float]:
        """The first paint of the charts; medians."""
        cold = answer_ms(self._server, self.run_id)
        warm = median(answer_ms(self._server, self.run_id) for _ in range(5))
        found = []
        for _ in range(rounds):
            with watched(self._browser) as page:
                open_lab(page, self._server)
                open_overview(page, self.run_id)
                found.append(page.evaluate(FIRST_PAINT, [RUN_PAGE, len(NAMES)]))
        paint, answer, size = (median(one[at] for one in found) for at in range(3))
        return {"cold": cold, "warm": warm, "paint": paint, "answer": answer, "kb": size / 1000}

    def follow(self, seconds: float) -> tuple[list[float], list[float], float, int]:
        """Long tasks while nothing comes and while numbers come; drawings a second; requests while the page is hidden."""
        with watched(self._browser) as page:
            open_lab(page, self._server)
            open_overview(page, self.run_id)
            page.evaluate(FIRST_PAINT, [RUN_PAGE, len(NAMES)])
            page.wait_for_timeout(3000)
            idle = long_tasks(page, seconds)
            stop = threading.Event()
            thread = threading.Thread(target=self._add, args=(stop,))
            thread.start()
            count = "() => [...window.drawn.values()].reduce((one, other) => one + other, 0)"
            page.wait_for_timeout(1000)
            before = page.evaluate(count)
            live = long_tasks(page, seconds)
            drawn = (page.evaluate(count) - before) / seconds / len(NAMES)
            hide_page(page)
            page.wait_for_timeout(1000)
            asked: list[str] = []
            page.on("request", lambda one: asked.append(one.url))
            page.wait_for_timeout(5000)
            hidden = sum("/series" in one for one in asked)
            stop.set()
            thread.join()
        return idle, live, drawn, hidden

    def _add(self, stop: threading.Event) -> None:
        step = self._points
        with self.file.open("a", buffering=1) as file:
            while not stop.is_set():
                step += 1
                file.writelines(line(rank, step, time.time()) for rank in range(RANKS))
                stop.wait(RANKS / LINES_A_SECOND)


def latency(server: LabServer, browser: Browser, count: int) -> list[float]:
    """Milliseconds from the print of a number to its paint."""
    (server.work / "prints.py").write_text(PRINTS)
    said = server.home / "said.json"
    go = server.home / "go"
    run_id = submit(server, "prints", "prints.py", str(count), str(said), str(go))
    await_running(server, run_id)
    with watched(browser) as page:
        open_lab(page, server)
        open_overview(page, run_id)
        page.evaluate(SEEN, [f"{1 + step / 1000:.4g}" for step in range(1, count + 1)])
        go.touch()
        while not said.exists() or not said.read_text():
            page.wait_for_timeout(500)
        page.wait_for_timeout(2000)
        seen = page.evaluate("window.seen")
    server.hpj("cancel", run_id)
    printed = json.loads(said.read_text())
    # The first ones are there before the chart is.
    known = [name for name in printed if name in seen][1:]
    assert len(known) > len(printed) * 0.8, (printed, seen)
    return [seen[name] - printed[name] * 1000 for name in known]


def notices(server: LabServer, page: Page, kind: str, rounds: int) -> list[float]:
    """Milliseconds from a NaN, or the failure of one of 64 ranks, to the notification."""
    (server.work / "breaks.py").write_text(BREAKS)
    found = []
    for number in range(rounds):
        folder = server.home / f"{kind}-{number}"
        folder.mkdir()
        ranks, go = MANY, folder / "go"
        name = f"{kind}{number}"
        run_id = submit(server, name, "breaks.py", kind, str(folder), str(go), ranks=ranks)
        while len(list(folder.glob("ready-*"))) < ranks:
            time.sleep(0.2)
        page.wait_for_timeout(5000 + random.uniform(0, 2000))
        go.touch()
        said = "Loss is not finite" if kind == "nan" else "failed"
        shown = float(page.evaluate(NOTICE, [name, said]))
        begun = min(float(one.read_text()) for one in folder.glob("at-*") if one.stat().st_size)
        found.append(shown - begun * 1000)
        if kind == "nan":
            server.hpj("cancel", run_id)
        page.wait_for_timeout(15_000)  # the next one is not to join this notification
    return found


class TensorBoard:
    """TensorBoard with the same numbers."""

    WRITE = """
import sys, json
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
folder = sys.argv[1]
writers = {}
for text in sys.stdin:
    one = json.loads(text)
    if "values" not in one:
        continue
    rank = one["rank"]
    if rank not in writers:
        writers[rank] = EventFileWriter(f"{folder}/rank{rank}")
    values = [Summary.Value(tag=f"train/{name}", simple_value=value) for name, value in one["values"].items()]
    writers[rank].add_event(Event(wall_time=one["time"], step=one["step"], summary=Summary(value=values)))
for writer in writers.values():
    writer.close()
"""

    #: From the first request for points to a frame after all answers, in which no chart loads: a worker may draw later.
    PAINT = """async count => {
      const asked = () => performance.getEntriesByType('resource').filter(one => one.name.includes('/timeSeries'));
      const drawn = () => [...document.querySelectorAll('scalar-card')].filter(one =>
        one.querySelector('line-chart') && !one.querySelector('mat-spinner')).length;
      const answered = () => asked().filter(one => one.responseEnd > 0).length;
      while (answered() < count || drawn() < count) await new Promise(requestAnimationFrame);
      const end = await window.painted();
      return [end - asked()[0].startTime, Math.max(...asked().map(one => one.responseEnd)) - asked()[0].startTime];
    }"""

    def __init__(self, program: str, folder: Path, records: Path) -> None:
        self._folder = folder / "tensorboard"
        python = str(Path(program).with_name("python"))
        with records.open() as lines:
            subprocess.run([python, "-c", self.WRITE, str(self._folder)], stdin=lines, check=True)
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self._begin = time.monotonic()
        words = [program, "--logdir", str(self._folder), "--port", str(port), "--bind_all"]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready_s(self) -> float:
        """Seconds from the start to the last point."""
        query = f"{self.url}/data/plugin/scalars/scalars?tag=train%2Floss&run=rank{RANKS - 1}"
        while True:
            try:
                with urllib.request.urlopen(query) as answer:
                    if json.load(answer)[-1][1] >= POINTS - 1:
                        return time.monotonic() - self._begin
            except (OSError, ValueError, IndexError):
                pass
            if time.monotonic() - self._begin > 300:
                raise SystemExit("TensorBoard does not read its files")
            time.sleep(0.2)

    def paint(self, browser: Browser, rounds: int) -> tuple[float, float]:
        """First paint and answers in ms; medians."""
        found = []
        for _ in range(rounds):
            with watched(browser) as page:
                page.goto(f"{self.url}/#timeseries")
                found.append(page.evaluate(self.PAINT, len(NAMES)))
        return median(one[0] for one in found), median(one[1] for one in found)

    def close(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()


def of_page(quick: bool) -> list[dict[str, Any]]:
    """All figures."""
    rounds = 2 if quick else 5
    points = POINTS // 10 if quick else POINTS
    rows = []
    with scratch() as folder, browser_of() as browser:
        server = LabServer(folder / "home", slots=200)
        keep_front_end(server)
        try:
            server.start()
            curves = Curves(server, browser, points)
            theirs = (math.nan, math.nan)
            ready = math.nan
            if (program := os.environ.get("TENSORBOARD")) and not quick:
                peer = TensorBoard(program, folder, curves.file)
                ready = peer.ready_s()
                theirs = peer.paint(browser, rounds)
                peer.close()
            mine = curves.paint(rounds)
            paint, answer = theirs
            cold = mine["cold"] / 1000
            rows.append(row("first answer of a new server, s", cold, ready, digits=2))
            rows.append(row("answer of the server, ms", mine["warm"]))
            rows.append(row("request to answer in the page, ms", mine["answer"], answer))
            rows.append(row("size of the answer, kB", mine["kb"]))
            rows.append(row("request to paint, ms", mine["paint"], paint))
            idle, live, drawn, hidden = curves.follow(5 if quick else FOLLOW_S)
            rows.append(row("tasks over 50 ms while it follows", told(live)))
            rows.append(row("tasks over 50 ms, nothing new", told(idle)))
            rows.append(row("drawings of a chart a second", drawn, digits=1))
            rows.append(row("requests in 5 s while hidden", hidden))
            server.hpj("cancel", curves.run_id)
            late = latency(server, browser, 8 if quick else 30)
            rows.append(row(f"print to paint, p50 of {len(late)}, ms", percentile(late, 0.5)))
            rows.append(row("print to paint, p95, ms", percentile(late, 0.95)))
            with watched(browser) as page:
                open_lab(page, server)
                execute(page, "hyperpod:show-panel", keep=False)
                kinds = {"nan": "NaN of 64 ranks", "error": "error of one of 64 ranks"}
                for kind, words in kinds.items():
                    times = notices(server, page, kind, 2 if quick else 7)
                    name = f"{words} to notification"
                    rows.append(row(f"{name}, p50, ms", percentile(times, 0.5)))
                    rows.append(row(f"{name}, longest, ms", max(times)))
        finally:
            server.stop()
            if (server.home / "fsx").exists():
                server.cancel_all()
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    report(options, "Curves of a run in the page; beside: TensorBoard", of_page(options.quick))


if __name__ == "__main__":
    main()

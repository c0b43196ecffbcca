"""A cluster of 2,000 nodes with 8 GPUs each and 200 jobs in the page: the node map under the mouse, and the nodes table.

The cluster's answer is a fixture: it is the page that is measured. Beside it the same page with a map of 16 nodes, and for the table
a plain one with all rows in the document.

python benchmarks/bench_node_map.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, arguments, median, percentile, report
from page_fixtures import lab_page, row
from playwright.sync_api import Locator, Page, Route

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from lab_page import CLUSTER_PAGE, execute, open_lab

NODES, GPUS, JOBS = 2_000, 8, 200
FEW = 16
"""Nodes of the small map beside."""
WATCH_S = 5
MAP = ".jp-HyperPod-NodeMap-canvas"

#: Notes when frames begin, from a mouse event (its own time, and that of its first listener) to the frame with another tooltip, and from an answer to the
#: frame with the map of its data. A message that is posted in a frame arrives once it is painted.
WATCH = """() => {
  const seen = window.seen = { frames: [], hover: [], handled: [], redraw: [], long: [] };
  const painted = note => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = note;
    port2.postMessage(0);
  });
  const frame = time => { seen.frames.push(time); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver(list => list.getEntries().forEach(entry => seen.long.push(entry.duration)))
    .observe({ entryTypes: ['longtask'] });
  let moved = null, answered = null;
  document.addEventListener('mousemove', event => { moved = [event.timeStamp, performance.now()]; }, true);
  new MutationObserver(records => {
    const isTip = records.some(({ target }) =>
      (target instanceof Element ? target : target.parentElement)?.closest('.jp-HyperPod-NodeMap-tip'));
    if (isTip && moved) {
      const [at, from] = moved;
      moved = null;
      painted(() => {
        seen.hover.push(performance.now() - at);
        seen.handled.push(performance.now() - from);
      });
    }
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  const read = Response.prototype.text;
  Response.prototype.text = async function () {
    const text = await read.call(this);
    if (this.url.includes('/overview')) answered = performance.now();
    return text;
  };
  const clear = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, 'width');
  Object.defineProperty(HTMLCanvasElement.prototype, 'width', { ...clear, set(value) {
    clear.set.call(this, value);
    if (answered !== null && this.closest('.jp-HyperPod-NodeMap')) {
      const from = answered;
      answered = null;
      painted(() => seen.redraw.push(performance.now() - from));
    }
  } });
}"""

#: A plain table of all nodes, in place of ours; resolves once it is painted.
PLAIN = """([count, columns]) => new Promise(resolve => {
  const begin = performance.now();
  const host = document.createElement('div');
  host.id = 'plain';
  host.style.cssText = 'position: fixed; inset: 0; overflow: auto; z-index: 100000; background: white';
  const cells = Array.from({ length: columns }, (_, at) => `<td>value ${at}</td>`).join('');
  host.innerHTML = `<table>${Array.from({ length: count }, (_, at) => `<tr><td>node-${at}</td>${cells}</tr>`).join('')}</table>`;
  document.body.append(host);
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(performance.now() - begin);
    port2.postMessage(0);
  });
})"""


class Cluster:
    """The cluster in the page: what the server says of its overview and its nodes."""

    def __init__(self, page: Page) -> None:
        self.nodes = NODES
        self.looks = 0
        page.route("**/clusters/local/overview*", self._overview)
        page.route("**/clusters/local/nodes*", self._table)

    def _overview(self, route: Route) -> None:
        """An overview of that many nodes; other jobs each time."""
        answer = route.fetch().json()
        self.looks += 1
        per_job = max(1, self.nodes // JOBS)
        tile = answer["nodes"][0] | {"gpus": GPUS, "used": GPUS, "gpu_type": "h100"}
        answer["nodes"] = [
            tile
            | {
                "name": f"ip-10-1-{at // 250}-{at % 250}",
                "shares": [{"job": str((at // per_job + self.looks) % JOBS), "gpus": GPUS}],
            }
            for at in range(self.nodes)
        ]
        answer["running"] = [job(at, per_job) for at in range(JOBS)]
        route.fulfill(body=json.dumps(answer), content_type="application/json")

    def _table(self, route: Route) -> None:
        """A page of the table as the server cuts it."""
        answer = route.fetch().json()
        first = answer["nodes"][0]
        answer["nodes"] = [first | {"name": f"ip-10-1-0-{at}"} for at in range(50)]
        answer |= {"total": self.nodes, "next": "more"}
        route.fulfill(body=json.dumps(answer), content_type="application/json")


def job(at: int, nodes: int) -> dict[str, Any]:
    """A running job; every seventh is the user's."""
    started = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 60 * at))
    missing = ["reason", "reason_code", "reason_detail", "cpus", "array", "account", "qos"]
    missing += ["priority", "time_limit", "run_id", "ends_at", "expected_start"]
    nothing: dict[str, Any] = dict.fromkeys(missing)
    return nothing | {
        "scheduler_id": str(at),
        "name": f"train-{at}",
        "user": f"user{at % 31}",
        "state": "running",
        "mine": at % 7 == 0,
        "queue": "gpu",
        "nodes": [],
        "node_count": nodes,
        "accelerators": nodes * GPUS,
        "resources": [],
        "submitted_at": started,
        "started_at": started,
    }


def seen(page: Page, what: str) -> list[float]:
    """What was noted since the last look."""
    return list(page.evaluate("what => window.seen[what].splice(0)", what))


def frames(page: Page, act: Any, seconds: float) -> dict[str, float]:
    """Frames a second, and the longest one (ms), while something is done again and again."""
    seen(page, "frames")
    deadline = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < deadline:
        act(turn)
        turn += 1
    times = seen(page, "frames")
    gaps = [after - before for before, after in pairwise(times)]
    return {"rate": 1000 / (sum(gaps) / len(gaps)), "p95": percentile(gaps, 0.95)}


def mover(page: Page, node_map: Locator) -> Any:
    """Moves the mouse over the map in steps from node to node."""
    box = node_map.bounding_box()
    window = page.viewport_size
    assert box is not None
    assert window is not None
    height = min(box["height"], window["height"] - box["y"] - 20)

    def move(turn: int) -> None:
        x = box["x"] + (turn * 37) % box["width"]
        y = box["y"] + (turn * 11) % height
        page.mouse.move(x, y)

    return move


def wheel(page: Page) -> Any:
    """Scrolls down and up."""
    return lambda turn: page.mouse.wheel(0, 120 if turn // 20 % 2 == 0 else -120)


def of_map(page: Page, cluster: Cluster, nodes: int, seconds: float, rounds: int) -> dict[str, Any]:
    """The figures of a map with that many nodes."""
    cluster.nodes = nodes
    shown = page.locator(CLUSTER_PAGE)
    found: dict[str, Any] = {"redraw": []}
    for _ in range(rounds):
        seen(page, "redraw")
        shown.get_by_role("button", name="Refresh").click()
        page.wait_for_function("window.seen.redraw.length > 0", timeout=60_000)
        found["redraw"] += seen(page, "redraw")
    page.wait_for_timeout(500)
    node_map = page.locator(MAP)
    node_map.scroll_into_view_if_needed()
    seen(page, "hover")
    seen(page, "handled")
    seen(page, "long")
    found["moving"] = frames(page, mover(page, node_map), seconds)
    found["hover"], found["handled"] = seen(page, "hover"), seen(page, "handled")
    found["scrolling"] = frames(page, wheel(page), seconds)
    found["long"] = seen(page, "long")
    page.mouse.move(2, 2)
    return found


def of_table(page: Page, seconds: float, rounds: int) -> dict[str, Any]:
    """The nodes table: from the click to its rows, and scrolling it."""
    shown = page.locator(CLUSTER_PAGE)
    opened = []
    for _ in range(rounds):
        shown.get_by_role("tab", name="Overview").click()
        page.locator(MAP).wait_for()
        opened.append(
            page.evaluate(
                """() => new Promise(resolve => {
                  const begin = performance.now();
                  const look = () => document.querySelectorAll('.jp-HyperPod-Table tbody tr').length >= 50
                    ? setTimeout(() => resolve(performance.now() - begin)) : requestAnimationFrame(look);
                  [...document.querySelectorAll('.jp-HyperPod-ClusterPage [role=tab]')]
                    .find(tab => tab.textContent === 'Nodes').click();
                  look();
                })"""
            )
        )
    shown.locator(".jp-HyperPod-Table tbody tr").first.hover()
    scrolling = frames(page, wheel(page), seconds)
    plain = [page.evaluate(PLAIN, [NODES, 8])]
    page.mouse.move(400, 400)
    plain_scrolling = frames(page, wheel(page), seconds)
    page.evaluate("() => document.getElementById('plain').remove()")
    return {"opened": opened, "scrolling": scrolling, "plain": plain, "plain scrolling": plain_scrolling}


def measure(seconds: float, rounds: int) -> list[dict[str, Any]]:
    """All figures: the big map, and the small one beside."""
    with lab_page() as (page, server):
        cluster = Cluster(page)
        open_lab(page, server)
        page.evaluate(WATCH)
        execute(page, "hyperpod:open-cluster", {"cluster": "local"})
        page.locator(MAP).wait_for()
        big, small = (of_map(page, cluster, nodes, seconds, rounds) for nodes in (NODES, FEW))
        cluster.nodes = NODES
        table = of_table(page, seconds, rounds)
    rows = []
    for what in ("moving", "scrolling"):
        for figure, text in (("rate", "frames a second"), ("p95", "time between frames, p95 ms")):
            values = (round(one[what][figure], 1) for one in (big, small))
            rows.append(row(f"map, {what}: {text}", *values))
    for what, text in (
        ("hover", "from the mouse event to the painted tooltip"),
        ("handled", "the same from its first listener"),
    ):
        for share in (0.5, 0.95):
            values = (round(percentile(one[what], share), 1) for one in (big, small))
            rows.append(row(f"map: {text}, p{share * 100:.0f} ms", *values))
    rows.append(row("tooltips", len(big["hover"]), len(small["hover"])))
    redraws = (round(median(one["redraw"]), 1) for one in (big, small))
    rows.append(row("map: from an answer to its painted map, ms", *redraws))
    rows.append(row("tasks over 50 ms meanwhile", len(big["long"]), len(small["long"])))
    opened = (round(median(table[key]), 1) for key in ("opened", "plain"))
    rows.append(row("nodes table: opening, ms (beside: a plain one of all rows)", *opened))
    rates = (round(table[key]["rate"], 1) for key in ("scrolling", "plain scrolling"))
    rows.append(row("nodes table, scrolling: frames a second", *rates))
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    seconds, rounds = (1, 1) if options.quick else (WATCH_S, ROUNDS)
    title = f"{NODES} nodes with {GPUS} GPUs and {JOBS} jobs in the page; beside: {FEW} nodes"
    report(options, title, measure(seconds, rounds))


if __name__ == "__main__":
    main()

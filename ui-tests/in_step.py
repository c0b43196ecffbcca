"""Whether all places of a page say the same of a cluster's jobs, and what its scheduler says."""

from __future__ import annotations

import itertools
import threading
import time

from playwright.sync_api import Page
from slurm_lab import CLUSTER

from tests.slurm.cluster import SlurmTestbed

#: So long a place may be behind the scheduler, or differ from another place.
LAG_S = 3.0
#: From one look at the page or the scheduler to the next; a busy machine takes longer, and is as much longer behind.
STEP_S = 0.75

#: Jobs that run and that wait; the second is None where a place does not tell.
Counts = tuple[int, int | None]

#: Each half second, the running and waiting jobs that each place tells of.
_WATCH = """([cluster, runId, gpusOfJob]) => {
  const text = node => node?.textContent ?? '';
  const all = selector => [...document.querySelectorAll(selector)];
  const count = (words, name) => Number(words.match(`([0-9]+) ${name}`)?.[1] ?? 0);
  const counts = words => [count(words, 'running'), count(words, 'waiting')];
  const tile = label => {
    const found = all('.jp-HyperPod-Tile').find(node => text(node).startsWith(label));
    return found && Number(text(found.querySelector('.jp-HyperPod-Tile-number')));
  };
  const byGpus = (free, total) => [(total - free) / gpusOfJob, null];
  const look = () => {
    const said = {};
    const card = all('[aria-label="Clusters"] .jp-HyperPod-Row').find(
      node => text(node.querySelector('.jp-HyperPod-Row-name')) === cluster
    );
    said.card = counts(text(card?.querySelector('.jp-HyperPod-Row-end')));
    const [, free, total] = text(card?.querySelector('.jp-HyperPod-Row-detail')).match('([0-9]+) of ([0-9]+)');
    said['GPUs of the card'] = byGpus(Number(free), Number(total));
    const status = all('.jp-HyperPod-StatusItem').find(node => text(node).includes(' running'));
    said['status bar'] = status?.offsetParent ? counts(text(status)) : [0, 0];
    const state = all('.jp-HyperPod-Runs li').find(node =>
      node.querySelector(`[title^="${runId}"]`)
    )?.dataset.state;
    said['run list'] = [Number(state === 'running'), Number(state === 'waiting')];
    if (tile('Running jobs') !== undefined) {
      said.tiles = [tile('Running jobs'), tile('Waiting jobs')];
      said['GPUs of the tile'] = byGpus(tile('H100 free'), Number(total));
      said['GPU map'] = [all('.jp-HyperPod-NodeMap [data-use="mine"]').length, null];
    }
    const jobs = all('.jp-HyperPod-Table[aria-label="Jobs of all users"]')[0];
    if (text(jobs?.querySelector('.jp-HyperPod-count')).includes('row')) {
      const chips = [...jobs.querySelectorAll('tbody .jp-HyperPod-StateChip')].map(text);
      said.jobs = ['running', 'waiting'].map(one => chips.filter(chip => chip === one).length);
    }
    window.samples.push([Date.now() / 1000, said]);
  };
  window.samples = [];
  window.setInterval(look, 500);
}"""


def watch(page: Page, run_id: str, gpus: int) -> None:
    """Begin to note what the page says; the cluster has no other jobs than this run's, which has so many GPUs."""
    page.evaluate(_WATCH, [CLUSTER, run_id, gpus])


class Scheduler(threading.Thread):
    """Asks the scheduler itself again and again how many jobs run and wait."""

    def __init__(self, slurm: SlurmTestbed) -> None:
        super().__init__(daemon=True)
        self._slurm = slurm
        self._over = threading.Event()
        self.answers: list[tuple[float, float, Counts]] = []
        """When it was asked, when it had answered, and what it said."""

    def run(self) -> None:
        while not self._over.wait(0.3):
            asked = time.time()
            states = self._slurm.exec("ctl", "squeue", "-h", "-o", "%T").split()
            waiting = states.count("PENDING")
            self.answers.append((asked, time.time(), (len(states) - waiting, waiting)))

    def stop(self) -> None:
        self._over.set()
        self.join()

    def around(self, at: float, step: float) -> set[Counts]:
        """What was so at a time, or up to `LAG_S` before; no time is known better than by a step."""
        begin, end = at - LAG_S - step, at + step
        before = [counts for _, until, counts in self.answers if until < begin]
        near = [said for since, until, said in self.answers if until >= begin and since <= end]
        return {*before[-1:], *near}


def find_lies(page: Page, scheduler: Scheduler) -> list[str]:
    """Where a place of the page said what was not so for longer than `LAG_S`, and where two differed for as long."""
    samples = page.evaluate("() => window.samples")
    assert len(samples) > 50
    gaps = [later[0] - sooner[0] for sooner, later in itertools.pairwise(samples)]
    step = max(STEP_S, *gaps, *(until - since for since, until, _ in scheduler.answers))
    found = []
    apart: dict[tuple[str, str], float] = {}
    for at, said in samples:
        truth = scheduler.around(at, step)
        when = f"{at - samples[0][0]:.1f} s"
        for place, (running, waiting) in said.items():
            if not any(running == one and waiting in {two, None} for one, two in truth):
                found.append(f"{when}: {place} says {running, waiting}, so is {sorted(truth)}")
        for pair in itertools.combinations(said, 2):
            (running, waiting), (others_running, others_waiting) = (said[place] for place in pair)
            is_same = waiting == others_waiting or None in {waiting, others_waiting}
            if running == others_running and is_same:
                apart.pop(pair, None)
            elif at - apart.setdefault(pair, at) > LAG_S + step:
                found.append(f"{when}: {' and '.join(pair)} differ: {said}")
    return found

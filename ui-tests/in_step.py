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
#: From one look at the page to the next.
STEP_S = 0.5
#: So much longer a look at the page or the scheduler may take on a busy machine. What is behind just then may be behind longer by as much, and nothing else.
MAX_STALL_S = 2.0

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
  window.setInterval(look, STEP_MS);
}""".replace("STEP_MS", str(1000 * STEP_S))


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

    def lag(self, at: float, said: Counts) -> float:
        """For how long it had not been so what was said at a time; 0: it was so then."""
        later = next((index for index, (asked, _, _) in enumerate(self.answers) if asked >= at), len(self.answers))
        until_changed = at
        for _, until, (running, waiting) in reversed(self.answers[: later + 1]):
            if said[0] == running and said[1] in {waiting, None}:
                return max(0.0, at - until_changed)
            until_changed = until
        return float("inf")

    def slowest(self, begin: float, end: float) -> float:
        """The longest that an answer took in a span of time."""
        spans = [until - asked for asked, until, _ in self.answers if until >= begin and asked <= end]
        return max(spans, default=0.0)


def find_lies(page: Page, scheduler: Scheduler) -> list[str]:
    """Where a place of the page said what was not so for longer than `LAG_S`, and where two differed for as long."""
    samples = page.evaluate("() => window.samples")
    assert len(samples) > 50
    stalls = [0.0, *(later[0] - sooner[0] - STEP_S for sooner, later in itertools.pairwise(samples))]
    slowest = scheduler.slowest(samples[0][0], samples[-1][0])
    assert max(*stalls, slowest) <= MAX_STALL_S, (
        f"this machine was too slow to judge: the page stood still for {max(stalls):.1f} s, "
        f"the scheduler took {slowest:.1f} s to answer"
    )
    found = []
    apart: dict[tuple[str, str], float] = {}
    largest: dict[str, float] = {}
    for index, (at, said) in enumerate(samples):
        begin = at - LAG_S - MAX_STALL_S
        stall = max(stalls[n] for n in range(index + 1) if samples[n][0] >= begin)
        allowed = LAG_S + max(stall, scheduler.slowest(begin, at))
        when = f"{at - samples[0][0]:.1f} s"
        for place, (running, waiting) in said.items():
            lag = scheduler.lag(at, (running, waiting))
            largest[place] = max(lag, largest.get(place, 0.0))
            if lag > allowed:
                found.append(f"{when}: {place} says {running, waiting}, {lag:.1f} s late")
        for pair in itertools.combinations(said, 2):
            (running, waiting), (others_running, others_waiting) = (said[place] for place in pair)
            is_same = waiting == others_waiting or None in {waiting, others_waiting}
            if running == others_running and is_same:
                apart.pop(pair, None)
            elif at - apart.setdefault(pair, at) > allowed:
                found.append(f"{when}: {' and '.join(pair)} differ: {said}")
    lags = ", ".join(f"{place} {lag:.1f} s" for place, lag in largest.items())
    print(f"Largest lags: {lags}; stall {max(stalls):.1f} s, scheduler {slowest:.1f} s")
    return found

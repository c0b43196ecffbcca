"""A pod without our launcher: what it prints is the log of its node, one attempt for each of its containers."""

from __future__ import annotations

from pathlib import Path

from hyperpod_jlab.orchestrators.kubernetes.api.pod_log import Entry, Gap, Portion, Started
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_spool import PodSpool
from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_ends import note_others
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes, Piece
from hyperpod_jlab.orchestrators.kubernetes.watching.stand_in import Begun, StandIn
from hyperpod_jlab.storage.records import BundleReader

_GAPS = {
    "rotated": b"hyperpod: lines are missing here: the node had begun a new file before they were fetched\n",
    "restarted": b"hyperpod: lines are missing here: the container was started again before they were fetched\n",
    "deleted": b"hyperpod: lines may be missing here: the pod was removed before they were fetched\n",
}


class RawPod(PodSpool):
    """See the module.

    Args:
        bundle: The run.
        pod: The pod.
        rank: Its place among the run's nodes.
        modes: For what is made in the bundle.
        stand_in: Numbers the attempts.
        namespace: Where the pod is.
    """

    def __init__(
        self,
        bundle: BundleReader,
        pod: RunPod,
        rank: int,
        modes: Modes,
        stand_in: StandIn,
        namespace: str,
    ) -> None:
        super().__init__(bundle, pod, modes)
        self._bundle = bundle
        self._namespace = namespace
        self._rank = rank
        self._stand_in = stand_in

    def _begin(self) -> None:
        self._restart = self._now.cursor.restart
        self._stamp = 0

    def _put(self, portion: Portion) -> bool:
        pieces: dict[Path, list[Piece]] = {}
        for item in portion.items:
            if isinstance(item, Started):
                self._restart = item.restart
                self._count(said=0)
                self._number()
            elif isinstance(item, Entry):
                self._stamp = item.stamp
                self._add(pieces, item.data + (b"\n" if item.ends else b""))
            elif isinstance(item, Gap):
                self._add(pieces, _GAPS[item.reason])
        self._write(pieces)
        return True

    def _add(self, pieces: dict[Path, list[Piece]], data: bytes) -> None:
        path = self._logs / f"attempt-{self._number()}" / f"node-{self._rank}.rank-0.log"
        pieces.setdefault(path, []).append(Piece(self._now.said, data, self._stamp))
        self._count(said=self._now.said + len(data))

    def _number(self) -> int:
        """The attempt of the container that is read."""
        number = self._now.attempts.get(self._restart)
        if number is None:
            number = self._stand_in.number(Begun.of(self.pod, self._rank, self._restart))
            self._count(attempts={**self._now.attempts, self._restart: number})
            note_others(self._bundle, number, self._rank, self.pod, self._namespace)
        return number

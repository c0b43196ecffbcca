"""The records of attempts that nobody saw (see `unseen`): written down by whoever finds them first, before those of the pods that came after."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_spool import spool_name
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_ends import note_lost
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_records import SpooledRecords
from hyperpod_jlab.orchestrators.kubernetes.watching.unseen import GonePod, Unseen
from hyperpod_jlab.storage import atomic, descent
from hyperpod_jlab.storage.records import BundleReader

OBSERVER = "events"
"""Who tells of these attempts: what is left in the cluster."""


def note_unseen(
    bundle: BundleReader, scheduler_id: str, found: Sequence[Unseen], modes: Modes
) -> None:
    """Write down attempts that nobody saw, unless some of their pods were seen after all, or a later attempt is there; each once. Blocking.

    Args:
        bundle: The run.
        scheduler_id: Its job's name.
        found: The attempts, the oldest first.
        modes: For what is made.
    """
    with contextlib.suppress(
        OSError, StorageError
    ):  # as with all that is fetched: the next who looks does it
        for unseen in found:
            records = bundle.read()
            if _is_new(bundle, records, unseen):
                _note(bundle, scheduler_id, unseen, modes, records)


def _is_new(bundle: BundleReader, records: RunRecords, unseen: Unseen) -> bool:
    if any(descent.is_file(bundle.records / spool_name(pod.name, pod.uid)) for pod in unseen.pods):
        return False
    claims = [one.claim for one in records.attempts if one.claim is not None]
    if any(claim.incarnation == unseen.key for claim in claims):
        return False
    if not unseen.pods:
        return not records.attempts
    starts = [node.started_at for one in records.attempts for node in one.nodes]
    return max([*(claim.time for claim in claims), *starts], default=0.0) < unseen.began


def _note(
    bundle: BundleReader, scheduler_id: str, unseen: Unseen, modes: Modes, records: RunRecords
) -> None:
    claim = {"scheduler_id": scheduler_id, "incarnation": unseen.key, "time": unseen.began}
    told = max((one.number for one in records.attempts), default=0) + 1
    number = SpooledRecords(bundle.records, modes).attempt(told, atomic.to_json(claim))
    folder = bundle.records / "status" / f"attempt-{number}"
    for pod in unseen.pods:
        path = folder / f"node-{pod.rank}.json"
        if not descent.is_file(path):
            descent.create(path, _record(pod), mode=modes.file)
    for rank in [pod.rank for pod in unseen.pods] or [0]:
        note_lost(bundle, number, rank)
    word = Observation(
        time=unseen.ended,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        attempt=number,
        state="waiting",
        verdict=unseen.verdict,
        reason=f"{unseen.reason}; its log was not kept",
        reason_code=unseen.code,
    )
    bundle.add_observation(word)


def _record(pod: GonePod) -> bytes:
    return atomic.to_json(
        {
            "format": 1,
            "node_rank": pod.rank,
            "node": pod.node,
            "host": pod.name,
            "started_at": pod.began,
            "ended_at": None,
            "exit_code": None,
            "signal": None,
            "error": None,
            "pod_uid": pod.uid,
            "restart": 0,
        }
    )

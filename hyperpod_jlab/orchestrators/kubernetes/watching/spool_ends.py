"""What a log lacks: a line in the node's own log says so, such as of pods that were removed before all was fetched."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.model.records import RunRecords
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_spool import FOLDER
from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_CUT_OFF = b"hyperpod: this node never told its end (it was killed, or its pod removed): what it said last may be lost\n"

_LOST = b"hyperpod: the log of this node is lost: the cluster keeps little of what pods print, and it was not fetched in time\n"


def note_cut_off(bundle: BundleReader, records: RunRecords, begun: Iterable[int]) -> None:
    """Say of each node that never told its end that its logs may lack theirs, or that there are none; once, whoever comes. Blocking.

    Args:
        bundle: The run.
        records: Its records.
        begun: Ranks of the nodes whose containers have begun.
    """
    folder = bundle.records / FOLDER
    last = records.attempts[-1] if records.attempts else None
    told = {node.node_rank for node in last.nodes} if last is not None else set()
    number = last.number if last is not None else 1
    with contextlib.suppress(OSError, StorageError):
        for attempt in records.attempts:
            for node in attempt.nodes:
                if node.ended_at is None:
                    _say(bundle, folder, (attempt.number, node.node_rank), _CUT_OFF)
            if attempt is not last:
                known = {node.node_rank for node in attempt.nodes}
                for rank in sorted({*range(records.head.nodes)} - known):
                    note_lost(bundle, attempt.number, rank)
        for rank in sorted({*begun} - told):
            note_lost(bundle, number, rank)


def note_lost(bundle: BundleReader, attempt: int, rank: int) -> None:
    """Say in a node's log of an attempt that it is lost; once, whoever comes. Blocking."""
    _say(bundle, bundle.records / FOLDER, (attempt, rank), _LOST)


def note_others(bundle: BundleReader, attempt: int, rank: int, pod: RunPod, namespace: str) -> None:
    """Say in a node's log which containers of its pod are not shown; once, whoever comes. Blocking."""
    if not pod.others:
        return
    listed = ", ".join(pod.others)
    words = (
        f"hyperpod: the log of this node is what the container {pod.container} prints; those of the others ({listed}) are shown by: "
        f"kubectl logs -n {namespace} {pod.name} -c {pod.others[0]}\n"
    )
    with contextlib.suppress(OSError, StorageError):
        _say(bundle, bundle.records / FOLDER, (attempt, rank), words.encode(), "others")


def _say(
    bundle: BundleReader,
    folder: Path,
    which: tuple[int, int],
    words: bytes,
    what: str = "cut-off",
) -> None:
    attempt, rank = which
    Modes(bundle.folder, bundle.folder_mode, bundle.file_mode).make(folder)
    name = f"attempt-{attempt}.node-{rank}.{what}.json"
    if descent.create(folder / name, b"{}\n", mode=bundle.file_mode):
        _append(bundle, attempt, rank, words)


def _append(bundle: BundleReader, attempt: int, rank: int, words: bytes) -> None:
    path = bundle.records / "logs" / f"attempt-{attempt}" / f"node-{rank}.log"
    Modes(bundle.folder, bundle.folder_mode, bundle.file_mode).make(path.parent)
    descriptor = descent.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, bundle.file_mode)
    try:
        os.write(descriptor, words)
    finally:
        os.close(descriptor)

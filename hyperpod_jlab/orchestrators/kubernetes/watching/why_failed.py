"""Why a run failed, as its records tell where no pod does: its launchers never began, or a pod was ended from outside."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.model.records import AttemptRecords, NodeRecord, Observation, RunRecords
from hyperpod_jlab.model.state import RESTARTS_USED_UP
from hyperpod_jlab.orchestrators.kubernetes.kinds.conditions import true_conditions
from hyperpod_jlab.orchestrators.seal import EXIT_UNTRUSTED, UNTRUSTED, refusal
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

POD_ENDED = "pod_ended"
"""The reason code of a run of which a pod was told to end."""

_NOT_FOUND = frozenset({126, 127})
"""Exit codes of a shell that cannot find or execute a program (POSIX, Shell Command Language 2.8.2)."""
_NO_PYTHON = (
    "the image has no such Python: name an interpreter that it has with --python, or another image"
)

_NODE = re.compile(r"node-[0-9]+\.json")
_LOG = re.compile(r".+\.log")
_MOST = 1000
"""Names that are looked at, and files that are read, at most."""
_LARGEST = 1 << 20
_LONGEST = 300
_TAIL = 1 << 16
"""Bytes at the end of a log in which its last words are looked for."""


def explained(word: Observation, bundle: BundleReader, records: RunRecords) -> Observation:
    """The word on a job that failed, with why. Blocking."""
    if word.verdict != "FAILED" or word.reason_code is not None:
        return word
    if records.attempts:
        node = _ended_from_outside(records.attempts[-1])
        cancelled = any(action.action == "cancel" for action in records.actions)
        if node is None or cancelled:
            return word
        words = f"node {node.node_rank} ({node.node}): its pod was told to end: removed, or put off its node"
        return word.model_copy(
            update={"verdict": "NODE_FAIL", "reason": words, "reason_code": POD_ENDED}
        )
    said = unstarted(bundle)
    if said is not None:
        reason, code = said
        return word.model_copy(update={"reason": reason, "reason_code": code})
    if word.exit_code == EXIT_UNTRUSTED:
        reason = refusal(bundle.run_id)
        return word.model_copy(update={"reason": reason, "reason_code": UNTRUSTED})
    if word.exit_code in _NOT_FOUND:
        return word.model_copy(update={"reason": _NO_PYTHON, "reason_code": "no_program"})
    last = last_words(bundle)
    return word if last is None else word.model_copy(update={"reason": last})


def gave_up(word: Observation, job: Mapping[str, Any], records: RunRecords) -> Observation:
    """The word on a user's own Job that failed because its containers did so too often.

    With ``restartPolicy: OnFailure`` the Job gives up while the container after the last failure runs already, which it ends (seen on 1.34): of that one nobody
    knows an exit code, so the run has that of the last one that ended by itself.

    Args:
        word: What the Job and its pods say.
        job: The Job.
        records: The run's records.
    """
    failed = true_conditions(job).get("Failed") or {}
    if word.verdict != "FAILED" or failed.get("reason") != "BackoffLimitExceeded":
        return word
    codes = [
        node.exit_code
        for attempt in reversed(records.attempts)
        for node in attempt.nodes
        if node.exit_code
    ]
    code = word.exit_code or next(iter(codes), None)
    last = f": the last to end by itself had exit code {code}" if code else ""
    return word.model_copy(
        update={
            "exit_code": code,
            "reason": f"its containers failed more often than the Job's backoffLimit allows{last}",
            "reason_code": RESTARTS_USED_UP,
        }
    )


def _ended_from_outside(attempt: AttemptRecords) -> NodeRecord | None:
    """The node that was told to end, when none of the attempt failed by itself."""
    if any(node.exit_code and node.stopped_by is None for node in attempt.nodes):
        return None
    told = [node for node in attempt.nodes if node.stopped_by in {"SIGTERM", "SIGINT"}]
    return min(told, key=lambda node: node.ended_at or 0.0, default=None)


def unstarted(bundle: BundleReader) -> tuple[str, str | None] | None:
    """What a launcher wrote down that came into no attempt. Blocking."""
    for path in _files(bundle.records / "status" / "unstarted", _NODE):
        try:
            error = from_json(descent.read(path, _LARGEST))["error"]
            return str(error["message"]), str(error["code"]) if error.get("code") else None
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def last_words(bundle: BundleReader) -> str | None:
    """The last line that says something of what a pod printed beside its launcher's frames. Blocking."""
    for path in _files(bundle.records / "logs" / "pods", _LOG):
        try:
            with os.fdopen(descent.open_file(path), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                text = file.read(_TAIL).decode("utf-8", "replace")
        except OSError:
            continue
        said = [line.strip() for line in text.splitlines() if line.strip()]
        if said:
            return said[-1].removeprefix("hyperpod: ")[:_LONGEST]
    return None


def _files(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The files of a folder whose names match, in order."""
    try:
        found = descent.names(folder, _MOST)
    except OSError:
        return []
    return [folder / name for name in sorted(filter(names.fullmatch, found))]

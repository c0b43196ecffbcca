"""Data repository tasks of FSx for Lustre, from FSx' API.

Which errors there are and what they mean is from botocore's model. It was not tried on an account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from hyperpod_jlab.features.storage.models import KINDS, RepositoryTask, TaskVerb, kind_of

_PAGE = 50
"""Tasks on a page: the most that FSx gives."""

_REPORT = {"Format": "REPORT_CSV_20191124", "Scope": "FAILED_FILES_ONLY"}
"""The only form and scope of reports that there are."""

_REFUSALS: dict[str, tuple[type[HyperpodError], str, str | None]] = {
    "DataRepositoryTaskExecuting": (
        ConflictError,
        "task_running",
        "wait for its end (hpj storage tasks), or cancel it",
    ),
    "DataRepositoryTaskEnded": (ConflictError, "task_ended", None),
    "DataRepositoryTaskNotFound": (NotFoundError, "not_found", "see: hpj storage tasks"),
    "ServiceLimitExceeded": (RefusedError, "aws_limit", "AWS Support can raise some limits"),
    "UnsupportedOperation": (
        UnsupportedError,
        "unsupported",
        "tasks need an FSx for Lustre file system that is linked to S3",
    ),
}
"""FSx' codes as errors of ours, with what to do."""


async def create_task(
    aws: Aws,
    file_system: str,
    verb: TaskVerb,
    paths: Sequence[str],
    unused_days: int = 0,
    report: str | None = None,
) -> RepositoryTask:
    """Have AWS do something to files of a file system; the answer comes when it has taken the task.

    Args:
        aws: AWS in the file system's region.
        file_system: The file system's id.
        verb: What to do.
        paths: Relative to the file system's root, or places in S3 for an import; the root itself is ``/``.
        unused_days: With ``release``: only files that nobody has read or changed for so many days.
        report: Place in S3, in a linked one, where a list of the files that failed is to be laid; None: none is made.

    Raises:
        ConflictError: Another task runs on the file system.
        HyperpodError: See `aws.errors`.
    """
    given: dict[str, Any] = {
        "FileSystemId": file_system,
        "Type": KINDS[verb],
        "Report": {"Enabled": True, "Path": report, **_REPORT} if report else {"Enabled": False},
    }
    if verb == "release" or "/" not in paths:  # the others take everything where no path is given
        given["Paths"] = list(paths)
    if verb == "release":
        age = {"Unit": "DAYS", "Value": unused_days}
        given["ReleaseConfiguration"] = {"DurationSinceLastAccess": age}
    try:
        told = await aws.call("fsx", "CreateDataRepositoryTask", **given)
    except HyperpodError as error:
        raise _refusal(error) from error
    return _task(told["DataRepositoryTask"])


async def list_tasks(
    aws: Aws, file_systems: Sequence[str] = (), tasks: Sequence[str] = ()
) -> list[RepositoryTask]:
    """Tasks, those asked for last first. AWS keeps them for some time after their end.

    Args:
        aws: AWS in their region.
        file_systems: Only those of these file systems, by id; none: of all.
        tasks: Only these, by id.

    Raises:
        NotFoundError: There is no task of an id.
        HyperpodError: See `aws.errors`.
    """
    given: dict[str, Any] = {}
    if tasks:
        given["TaskIds"] = list(tasks)
    else:
        given["MaxResults"] = _PAGE
    if file_systems:
        given["Filters"] = [{"Name": "file-system-id", "Values": list(file_systems)}]
    found: list[RepositoryTask] = []
    while True:  # botocore has no paginator for it
        try:
            told = await aws.call("fsx", "DescribeDataRepositoryTasks", **given)
        except HyperpodError as error:
            raise _refusal(error) from error
        found += map(_task, told.get("DataRepositoryTasks") or [])
        if not told.get("NextToken"):
            return sorted(found, key=lambda task: (str(task.created), task.task_id), reverse=True)
        given["NextToken"] = told["NextToken"]


async def cancel_task(aws: Aws, task: str) -> str:
    """Cancel a task; returns its state in AWS' word. What it has done stays done.

    Raises:
        ConflictError: It has ended.
        NotFoundError: There is no such task.
        HyperpodError: See `aws.errors`.
    """
    try:
        told = await aws.call("fsx", "CancelDataRepositoryTask", TaskId=task)
    except HyperpodError as error:
        raise _refusal(error) from error
    return str(told.get("Lifecycle") or "")


def _refusal(error: HyperpodError) -> HyperpodError:
    """FSx' own refusals as errors of ours; all others as they are."""
    known = _REFUSALS.get(str(error.detail.get("aws_code")))
    if known is None:
        return error
    kind, code, hint = known
    message = str(error.detail.get("aws_message") or "") or error.message
    return kind(message, code=code, hint=hint, detail=error.detail)


def _task(told: Mapping[str, Any]) -> RepositoryTask:
    status = told.get("Status") or {}
    report = told.get("Report") or {}
    return RepositoryTask(
        task_id=str(told["TaskId"]),
        file_system=told.get("FileSystemId") or told.get("FileCacheId"),
        kind=kind_of(str(told.get("Type", ""))),
        state=str(told.get("Lifecycle", "")),
        paths=tuple(told.get("Paths") or ()),
        created=told.get("CreationTime"),
        started=told.get("StartTime"),
        ended=told.get("EndTime"),
        total=status.get("TotalCount"),
        succeeded=status.get("SucceededCount"),
        failed=status.get("FailedCount"),
        problem=(told.get("FailureDetails") or {}).get("Message"),
        report=report.get("Path") if report.get("Enabled") else None,
    )

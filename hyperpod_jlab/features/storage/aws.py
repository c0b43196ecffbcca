"""Data repository tasks of FSx for Lustre, from FSx' API.

Errors and their meanings are from botocore's model; not tested on an account.
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
"""Tasks per page: FSx' maximum."""

_REPORT = {"Format": "REPORT_CSV_20191124", "Scope": "FAILED_FILES_ONLY"}
"""The only supported format and scope of reports."""

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
"""FSx' error codes as our errors with a hint."""


async def create_task(
    aws: Aws,
    file_system: str,
    verb: TaskVerb,
    paths: Sequence[str],
    unused_days: int = 0,
    report: str | None = None,
) -> RepositoryTask:
    """Create a task for files of a file system; returns when AWS has accepted it.

    Args:
        aws: AWS in the file system's region.
        file_system: The file system's id.
        verb: The kind of task.
        paths: Relative to the file system's root, or S3 URLs for an import; the root itself is ``/``.
        unused_days: With ``release``: only files that were not read or changed for this many days.
        report: A linked S3 prefix for the report of failed files; None: no report.

    Raises:
        ConflictError: Another task is running on the file system.
        HyperpodError: See `aws.errors`.
    """
    parameters: dict[str, Any] = {
        "FileSystemId": file_system,
        "Type": KINDS[verb],
        "Report": {"Enabled": True, "Path": report, **_REPORT} if report else {"Enabled": False},
    }
    if verb == "release" or "/" not in paths:  # the others process everything if no path is given
        parameters["Paths"] = list(paths)
    if verb == "release":
        age = {"Unit": "DAYS", "Value": unused_days}
        parameters["ReleaseConfiguration"] = {"DurationSinceLastAccess": age}
    try:
        response = await aws.call("fsx", "CreateDataRepositoryTask", **parameters)
    except HyperpodError as error:
        raise _refusal(error) from error
    return _task(response["DataRepositoryTask"])


async def list_tasks(
    aws: Aws, file_systems: Sequence[str] = (), tasks: Sequence[str] = ()
) -> list[RepositoryTask]:
    """Tasks, newest first. AWS keeps them for some time after their end.

    Args:
        aws: AWS in their region.
        file_systems: Only those of these file systems, by id; empty: of all.
        tasks: Only these, by id.

    Raises:
        NotFoundError: A task does not exist.
        HyperpodError: See `aws.errors`.
    """
    parameters: dict[str, Any] = {}
    if tasks:
        parameters["TaskIds"] = list(tasks)
    else:
        parameters["MaxResults"] = _PAGE
    if file_systems:
        parameters["Filters"] = [{"Name": "file-system-id", "Values": list(file_systems)}]
    found_tasks: list[RepositoryTask] = []
    while True:  # botocore has no paginator for it
        try:
            response = await aws.call("fsx", "DescribeDataRepositoryTasks", **parameters)
        except HyperpodError as error:
            raise _refusal(error) from error
        found_tasks += map(_task, response.get("DataRepositoryTasks") or [])
        if not response.get("NextToken"):
            return sorted(
                found_tasks, key=lambda task: (str(task.created), task.task_id), reverse=True
            )
        parameters["NextToken"] = response["NextToken"]


async def cancel_task(aws: Aws, task: str) -> str:
    """Cancel a task; returns its state as AWS reports it. Completed work is not undone.

    Raises:
        ConflictError: It has ended.
        NotFoundError: The task does not exist.
        HyperpodError: See `aws.errors`.
    """
    try:
        response = await aws.call("fsx", "CancelDataRepositoryTask", TaskId=task)
    except HyperpodError as error:
        raise _refusal(error) from error
    return str(response.get("Lifecycle") or "")


def _refusal(error: HyperpodError) -> HyperpodError:
    """FSx' own errors as ours; all others unchanged."""
    refusal = _REFUSALS.get(str(error.detail.get("aws_code")))
    if refusal is None:
        return error
    kind, code, hint = refusal
    message = str(error.detail.get("aws_message") or "") or error.message
    return kind(message, code=code, hint=hint, detail=error.detail)


def _task(item: Mapping[str, Any]) -> RepositoryTask:
    status = item.get("Status") or {}
    report = item.get("Report") or {}
    return RepositoryTask(
        task_id=str(item["TaskId"]),
        file_system=item.get("FileSystemId") or item.get("FileCacheId"),
        kind=kind_of(str(item.get("Type", ""))),
        state=str(item.get("Lifecycle", "")),
        paths=tuple(item.get("Paths") or ()),
        created=item.get("CreationTime"),
        started=item.get("StartTime"),
        ended=item.get("EndTime"),
        total=status.get("TotalCount"),
        succeeded=status.get("SucceededCount"),
        failed=status.get("FailedCount"),
        problem=(item.get("FailureDetails") or {}).get("Message"),
        report=report.get("Path") if report.get("Enabled") else None,
    )

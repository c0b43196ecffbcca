"""FSx: data repository tasks. One is PENDING, then EXECUTING, and ends when all of its files are done; the account's clock moves it.

That a file system has one task at a time is what botocore's model says of ``DataRepositoryTaskExecuting``. How long a task waits and takes is made up.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from testbed.aws.operations import Request
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.state import DataRepositoryTask, LustreFileSystem
from testbed.aws.timeline import Timeline

WAITS, WORKS, CANCELS = timedelta(seconds=30), timedelta(minutes=5), timedelta(seconds=20)
_LIVE = frozenset({"PENDING", "EXECUTING", "CANCELING"})
_FILTERS = {"file-system-id": "file_system_id", "task-lifecycle": "lifecycle"}


def create_data_repository_task(request: Request) -> dict[str, Any]:
    given, account = request.given, request.account
    systems = account.file_systems.get(request.region, [])
    system = next((one for one in systems if one.file_system_id == given["FileSystemId"]), None)
    if system is None:
        raise ApiError(
            "FileSystemNotFound", f"File system '{given['FileSystemId']}' does not exist."
        )
    _check(system, given)
    known = account.tasks.setdefault(request.region, [])
    if any(one.file_system_id == system.file_system_id and one.lifecycle in _LIVE for one in known):
        raise ApiError(
            "DataRepositoryTaskExecuting",
            f"A data repository task is already executing on {system.file_system_id}.",
        )
    number = f"{request.region}/{sum(map(len, account.tasks.values()))}"
    task = DataRepositoryTask(
        task_id=f"task-{hashlib.sha256(number.encode()).hexdigest()[:17]}",
        file_system_id=system.file_system_id,
        kind=given["Type"],
        paths=list(given.get("Paths", [])),
        report=given["Report"],
        created=account.timeline.now(),
        release=given.get("ReleaseConfiguration"),
    )
    known.append(task)
    live(account.timeline, task)
    return {"DataRepositoryTask": _told(request, task)}


def describe_data_repository_tasks(request: Request) -> dict[str, Any]:
    given = request.given
    found = request.account.tasks.get(request.region, [])
    wanted = given.get("TaskIds")
    if wanted is not None:
        found = [_task(request, name) for name in wanted]
    for one in given.get("Filters", []):
        if one.get("Name") not in _FILTERS:
            raise ApiError("BadRequest", f"the filter {one.get('Name')} is not known here")
        found = [
            task for task in found if getattr(task, _FILTERS[one["Name"]]) in one.get("Values", [])
        ]
    shown, following = page(found, lambda task: [task.created.timestamp(), task.task_id], given)
    return {"DataRepositoryTasks": [_told(request, task) for task in shown], **following}


def cancel_data_repository_task(request: Request) -> dict[str, Any]:
    task = _task(request, request.given["TaskId"])
    if task.lifecycle not in _LIVE:
        raise ApiError("DataRepositoryTaskEnded", f"The task {task.task_id} has already ended.")
    task.lifecycle = "CANCELING"
    timeline = request.account.timeline

    def end() -> None:
        task.lifecycle, task.ended = "CANCELED", timeline.now()

    timeline.after(CANCELS, end)
    return {"Lifecycle": task.lifecycle, "TaskId": task.task_id}


def live(timeline: Timeline, task: DataRepositoryTask) -> None:
    """Let a task that is PENDING go on by itself."""

    def start() -> None:
        if task.lifecycle == "PENDING":
            task.lifecycle, task.started = "EXECUTING", timeline.now()
            task.succeeded = task.total // 2
            timeline.after(WORKS, end)

    def end() -> None:
        if task.lifecycle == "EXECUTING":
            task.succeeded, task.ended = task.total - task.failed, timeline.now()
            task.lifecycle = "FAILED" if task.failed else "SUCCEEDED"

    timeline.after(WAITS, start)


def _check(system: LustreFileSystem, given: dict[str, Any]) -> None:
    """What AWS would refuse at once. Paths that are not there it finds out later."""
    if not system.associations and "DataRepositoryConfiguration" not in system.lustre:
        raise ApiError(
            "BadRequest",
            f"File system {system.file_system_id} is not linked to a data repository.",
        )
    report = given["Report"]
    if report["Enabled"] and not {"Path", "Format", "Scope"} <= report.keys():
        raise ApiError("BadRequest", "Path, Format and Scope are required for an enabled report.")
    for path in given.get("Paths", []):
        is_place = path.startswith("s3://")
        if is_place != (given["Type"] == "IMPORT_METADATA_FROM_REPOSITORY"):
            raise ApiError("BadRequest", f"The path {path} is not valid for this type of task.")


def _task(request: Request, name: str) -> DataRepositoryTask:
    for task in request.account.tasks.get(request.region, []):
        if task.task_id == name:
            return task
    raise ApiError("DataRepositoryTaskNotFound", f"Data repository task '{name}' does not exist.")


def _told(request: Request, task: DataRepositoryTask) -> dict[str, Any]:
    account = request.account
    where = f"{account.partition}:fsx:{request.region}:{account.account_id}"
    told = {
        "TaskId": task.task_id,
        "Lifecycle": task.lifecycle,
        "Type": task.kind,
        "CreationTime": task.created,
        "StartTime": task.started,
        "EndTime": task.ended,
        "ResourceARN": f"arn:{where}:task/{task.task_id}",
        "FileSystemId": task.file_system_id,
        "Paths": task.paths,
        "Report": task.report,
        "ReleaseConfiguration": task.release,
        "FailureDetails": _failure(task),
        "Status": _status(task),
    }
    return {name: value for name, value in told.items() if value is not None}


def _failure(task: DataRepositoryTask) -> dict[str, Any] | None:
    if task.lifecycle != "FAILED":
        return None
    return {"Message": f"{task.failed} of {task.total} files could not be processed."}


def _status(task: DataRepositoryTask) -> dict[str, Any] | None:
    if task.started is None:
        return None
    return {
        "TotalCount": task.total,
        "SucceededCount": task.succeeded,
        "FailedCount": task.failed if task.ended else 0,
        "LastUpdatedTime": task.ended or task.started,
    }

"""``hpj admin validate``, ``create-cluster``, ``update-cluster`` and ``delete-cluster``: HyperPod clusters by their configuration."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.admin.cluster_config import clusters
from hyperpod_jlab.admin.cluster_config.changes import changes_of
from hyperpod_jlab.admin.cluster_config.clusters import ClusterWaiter
from hyperpod_jlab.admin.cluster_config.document import (
    ClusterConfigFiles,
    RuleResult,
    read_document,
)
from hyperpod_jlab.admin.cluster_config.rules import CHECKS, check, check_with_aws
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.failure import ChecksFailedError, RunEndedError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import InterruptionError, invocation, with_services
from hyperpod_jlab.cli.output import colour_state, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.cluster import JOB_ENDED
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.events import ClusterEvent
from hyperpod_jlab.core.wire import iso_time, to_plain

if TYPE_CHECKING:
    from hyperpod_jlab.admin.cluster_config.changes import ClusterChanges, ConfigChange
    from hyperpod_jlab.admin.cluster_config.clusters import Progress
    from hyperpod_jlab.admin.cluster_config.rules import Report
    from hyperpod_jlab.run.services import Hyperpod

_VALIDATE = """\
Check the configuration of a HyperPod cluster and report all problems at once. Change nothing.

CONFIG is the input of CreateCluster as JSON (cluster-config.json). PROVISIONING is the file provisioning_parameters.json, from which the lifecycle scripts
of AWS read the Slurm role of each instance group. Clusters on EKS, and clusters whose groups have a SlurmConfig, do not use it.

The result of a check is ok, warning, error or unknown (it could not be checked; the missing permission is named). The exit code is 2 if there is an error.
"""
_CREATE = """\
Create a HyperPod cluster from the input of CreateCluster, as JSON.

The configuration is validated first, as with 'hpj admin validate'. If there is an error, nothing is created. With --wait, progress is shown until the
cluster is in service or has failed; Ctrl-C stops only the waiting.
"""
_UPDATE = """\
Update a HyperPod cluster to match a file. The changes are shown first.

The file is the input of CreateCluster or UpdateCluster, as JSON. Only differences are sent to AWS. Instance groups that are not in the file do not change;
a group is deleted only if --delete-group or InstanceGroupsToDelete names it.
"""
_DELETE = """\
Delete a HyperPod cluster with all its instances. The command first shows running jobs and the resources that are kept.

File systems, buckets and the EKS cluster are kept. To confirm, type the name of the cluster, or repeat it with --yes.
"""
_LEVEL_WIDTH = 7
_COLOURS = {"ok": "ok", "warning": "warn", "error": "fail", "unknown": "unknown"}
"""The colours of ``hpj doctor``."""

MAX_JOBS = 10
"""Jobs that are listed one by one."""

_FILE = click.Path(dir_okay=True, path_type=Path)
"""A file; an unreadable one is reported with all other errors."""

REGION = click.option(
    "--region",
    metavar="REGION",
    callback=aws_name,
    help="AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio.",
)
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_WAIT = click.option("--wait", is_flag=True, help="Show progress until the operation ends.")
_CONFIG = click.option(
    "--file", "config", type=_FILE, required=True, help="Cluster configuration (JSON)."
)


# ---------------------------------------------------------------------------------- validate


@click.command(
    "validate",
    cls=HpjCommand,
    help=_VALIDATE,
    examples=(
        "hpj admin validate cluster-config.json provisioning_parameters.json",
        "hpj admin validate cluster-config.json --offline",
        "hpj admin validate cluster-config.json --json",
    ),
)
@click.argument("config", type=_FILE, metavar="CONFIG")
@click.argument("provisioning", type=_FILE, required=False, metavar="[PROVISIONING]")
@click.option("--offline", is_flag=True, help="Run only checks that do not need AWS.")
@click.option("--strict", is_flag=True, help="Treat warnings and unknown results as errors.")
@REGION
def validate(
    config: Path, provisioning: Path | None, offline: bool, strict: bool, region: str | None
) -> None:
    """Check a configuration."""
    documents = _read(config, provisioning)
    report = check(documents, region) if offline else _check_with_aws(documents, region)
    if invocation().as_json:
        print_json(report)
    else:
        _show_report(report)
    _refuse(report, strict=strict)


def _read(config: Path, provisioning: Path | None) -> ClusterConfigFiles:
    """Both files. An unreadable second one is a finding, so that it does not hide those of the first."""
    first = read_document(config)
    if provisioning is None:
        return ClusterConfigFiles(first)
    try:
        return ClusterConfigFiles(first, read_document(provisioning))
    except InvalidInputError as error:
        return ClusterConfigFiles(first, read_error=error.message)


def _check_with_aws(documents: ClusterConfigFiles, region: str | None) -> Report:
    async def work(_: object) -> Report:
        async with slow_steps("asking AWS"):
            return await check_with_aws(Aws(region), documents)

    return with_services(work)


def _show_report(report: Report, *, brief: bool = False) -> None:
    width = max(map(len, CHECKS))
    for rule_result in report.checks:
        if not (brief and rule_result.level == "ok"):
            _show_result(rule_result, width)
    counts = {level: len(report.with_level(level)) for level in ("error", "warning", "unknown")}
    parts = [
        f"{count} could not be checked"
        if level == "unknown"
        else f"{count} {level}{'s'[: count - 1]}"
        for level, count in counts.items()
        if count
    ]
    print(", ".join(parts) or "the configuration is valid")


def _show_result(rule_result: RuleResult, width: int = 0) -> None:
    level = colour_state(_COLOURS[rule_result.level], f"{rule_result.level:<{_LEVEL_WIDTH}}")
    location = f"{rule_result.path}: " if rule_result.path else ""
    print(f"{level}  {rule_result.check:<{width}}  {printable(location + rule_result.message)}")
    if rule_result.hint:
        print(f"{'':<{_LEVEL_WIDTH + width + 4}}hint: {printable(rule_result.hint)}")


def _refuse(report: Report, *, strict: bool = False) -> None:
    bad = report.with_level("error")
    if strict:
        bad += [*report.with_level("warning"), *report.with_level("unknown")]
    if bad:
        raise ChecksFailedError(
            f"the configuration is not valid: {len(bad)} {'finding' if len(bad) == 1 else 'findings'}",
            code="bad_configuration",
            detail={"checks": to_plain(bad, list[RuleResult])},
        )


# ---------------------------------------------------------------------------------- create


@click.command(
    "create-cluster",
    cls=HpjCommand,
    help=_CREATE,
    examples=(
        "hpj admin create-cluster --file cluster-config.json --provisioning provisioning_parameters.json --wait",
        "hpj admin create-cluster --file cluster-config.json --yes --json",
    ),
)
@_CONFIG
@click.option(
    "--provisioning", type=_FILE, help="For Slurm: the file provisioning_parameters.json."
)
@_WAIT
@_YES
@REGION
def create_cluster(
    config: Path, provisioning: Path | None, wait: bool, yes: bool, region: str | None
) -> None:
    """Make a cluster."""
    documents = _read(config, provisioning)
    report = _check_with_aws(documents, region)
    if not invocation().as_json:
        _show_report(report, brief=True)
    _refuse(report)
    count = sum(group.count or 0 for group in documents.groups)
    types = sorted({instance_type for group in documents.groups for instance_type in group.types})
    name = str(documents.name)
    _ask(f"create the cluster {name} with {count} instances ({', '.join(types)})", yes)
    begin = time.time()
    arn = with_services(lambda _: clusters.create(Aws(region), documents.cluster))
    _print_started(name, arn, "being created", wait)
    if wait:
        _follow(ClusterWaiter(Aws(region), name, arn, since=begin), name, "created")


# ---------------------------------------------------------------------------------- update


@click.command(
    "update-cluster",
    cls=HpjCommand,
    help=_UPDATE,
    examples=(
        "hpj admin update-cluster --file cluster-config.json --dry-run",
        "hpj admin update-cluster --file cluster-config.json --delete-group worker-group-2 --wait",
    ),
)
@_CONFIG
@click.option(
    "--delete-group",
    "delete",
    multiple=True,
    metavar="NAME",
    help="Delete this instance group. Repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes. Change nothing.")
@_WAIT
@_YES
@REGION
def update_cluster(
    config: Path,
    delete: tuple[str, ...],
    dry_run: bool,
    wait: bool,
    yes: bool,
    region: str | None,
) -> None:
    """Change a cluster."""
    desired = read_document(config)
    name = desired.get("ClusterName")
    if not isinstance(name, str):
        raise InvalidInputError(
            f"{config} has no ClusterName",
            code="bad_file",
            detail={"field": "ClusterName"},
        )
    begin = time.time()
    current = with_services(lambda _: clusters.describe(Aws(region), name))
    changes = changes_of(desired, current, delete)
    if not invocation().as_json:
        _show_changes(changes)
    elif dry_run:
        print_json(changes)
    _refuse_changes(changes.checks)
    if dry_run or not changes.changes:
        if not changes.changes and not invocation().as_json:
            print("there is nothing to change")
        elif not changes.changes and not dry_run:
            print_json({**to_plain(changes), "changed": False})
        return
    losses = "; ".join(
        f"{change.target} will be deleted"
        if change.kind == "gone"
        else f"{change.target} loses {change.before - change.after} instances"
        for change in changes.losses
    )
    _ask(f"update the cluster {name}" + (f" ({losses})" if losses else ""), yes)
    with_services(lambda _: clusters.update(Aws(region), changes.request))
    arn = str(current["ClusterArn"])
    _print_started(str(current["ClusterName"]), arn, "being updated", wait)
    if wait:
        _follow(ClusterWaiter(Aws(region), name, arn, since=begin), name, "updated")


def _show_changes(changes: ClusterChanges) -> None:
    for change in changes.changes:
        print(printable(_line(change)))
    for group_name in changes.left:
        delete_hint = (
            "" if group_name in changes.lasting else f" (--delete-group {group_name} deletes it)"
        )
        print(printable(f"= group {group_name}: unchanged{delete_hint}"))
    for rule_result in changes.checks:
        _show_result(rule_result)


def _line(change: ConfigChange) -> str:
    if change.kind == "new":
        return f"+ {change.target}: {change.after} instances"
    if change.kind == "gone":
        return f"- {change.target}: will be deleted, with its {change.before} instances"
    sign = "-" if change.kind == "smaller" else "~"
    return f"{sign} {change.target}: {change.member}: {_short(change.before)} -> {_short(change.after)}"


def _short(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _refuse_changes(rule_results: Sequence[RuleResult]) -> None:
    bad = [rule_result for rule_result in rule_results if rule_result.level == "error"]
    if bad:
        raise ChecksFailedError(
            f"the cluster cannot be updated: {bad[0].message}",
            code="bad_configuration",
            hint=bad[0].hint,
            detail={"field": bad[0].path, "checks": to_plain(bad, list[RuleResult])},
        )


# ---------------------------------------------------------------------------------- delete


@click.command(
    "delete-cluster",
    cls=HpjCommand,
    help=_DELETE,
    examples=(
        "hpj admin delete-cluster ml-cluster --wait",
        "hpj admin delete-cluster ml-cluster --yes ml-cluster",
    ),
)
@click.argument("name")
@click.option(
    "--yes",
    metavar="NAME",
    help="Do not ask for confirmation. NAME repeats the name of the cluster.",
)
@_WAIT
@REGION
def delete_cluster(name: str, yes: str | None, wait: bool, region: str | None) -> None:
    """Delete a cluster."""
    begin = time.time()
    description = with_services(lambda _: clusters.describe(Aws(region), name))
    name, arn = str(description["ClusterName"]), str(description["ClusterArn"])
    if yes is not None and yes != name:
        raise InvalidInputError(
            f"--yes names {yes[:60]}, but the cluster is {name}; nothing was deleted",
            code="not_confirmed",
            detail={"field": "yes"},
        )
    if not invocation().as_json:
        _show_deletion(description)
    if yes is None:
        _confirm_name(name)
    with_services(lambda _: clusters.delete(Aws(region), name))
    _print_started(name, arn, "being deleted", wait)
    if wait:
        _follow(ClusterWaiter(Aws(region), name, arn, deleted=True, since=begin), name, "deleted")


def _show_deletion(description: dict[str, Any]) -> None:
    groups = [
        *(description.get("InstanceGroups") or ()),
        *(description.get("RestrictedInstanceGroups") or ()),
    ]
    count = sum(int(group.get("CurrentCount", 0)) for group in groups)
    lines = [f"the cluster {description['ClusterName']} will be deleted, with {count} instances:"]
    for group in groups:
        kind = group.get("InstanceType") or "several types"
        lines.append(f"  {group['InstanceGroupName']}: {group.get('CurrentCount', 0)} of {kind}")
    lines += with_services(lambda services: _jobs(services, description))
    lines += [f"kept: {group}" for group in clusters.list_remaining_resources(description)]
    for line in lines:
        print(printable(line))


async def _jobs(services: Hyperpod, description: dict[str, Any]) -> list[str]:
    """The running and waiting jobs, if the cluster is configured on this machine."""
    names = {description["ClusterName"], description["ClusterArn"]}
    cluster_names = [
        label
        for label, cluster in services.settings.clusters.items()
        if getattr(cluster, "hyperpod", None) in names
    ]
    if not cluster_names:
        return ["running jobs are unknown: this cluster is not in the configuration"]
    lines = []
    for label in cluster_names:
        try:
            jobs = [job for job in await services.jobs(label) if job.state not in JOB_ENDED]
        except HyperpodError as error:
            lines.append(f"running jobs on {label} are unknown: {error.message}")
            continue
        lines.append(
            f"running or waiting jobs on {label}: {len(jobs)}"
            if jobs
            else f"no jobs run or wait on {label}"
        )
        lines += [
            f"  {job.run_id or job.scheduler_id} of {job.user}: {job.name} ({job.state})"
            for job in jobs[:MAX_JOBS]
        ]
        if len(jobs) > MAX_JOBS:
            lines.append(f"  and {len(jobs) - MAX_JOBS} more")
    return lines


# ---------------------------------------------------------------------------------- questions


def _confirm_name(name: str) -> None:
    """Raises `InvalidInputError` if there is no terminal, or the user types something else."""
    if not _can_ask():
        raise InvalidInputError(
            "deleting a cluster needs confirmation",
            code="not_confirmed",
            hint=f"confirm with --yes {name}",
        )
    question = "Type the cluster's name to delete it"
    typed = click.prompt(question, default="", show_default=False, err=True)
    if typed.strip() != name:
        raise InvalidInputError(
            "the name does not match; nothing was deleted", code="not_confirmed"
        )


def _ask(question: str, yes: bool) -> None:
    """Raises `InvalidInputError` if there is no terminal, or the user declines."""
    if yes:
        return
    if not _can_ask():
        raise InvalidInputError(
            f"this needs confirmation: {question}",
            code="not_confirmed",
            hint="confirm with --yes",
        )
    if not click.confirm(f"{question[0].upper()}{question[1:]}?", err=True):
        raise InvalidInputError("nothing was done", code="not_confirmed")


def _can_ask() -> bool:
    return not invocation().as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)


# ---------------------------------------------------------------------------------- progress


class ClusterEndedError(RunEndedError):
    """The awaited cluster did not reach the desired state."""

    default_code = "cluster_failed"


def _show_command(name: str) -> str:
    return f"check its state: hpj show {name}, hpj nodes {name}"


def _print_started(name: str, arn: str, action: str, wait: bool) -> None:
    """Report that AWS has started; with JSON only without --wait, which prints the end."""
    if invocation().as_json:
        if not wait:
            print_json({"name": name, "arn": arn, "ok": True})
        return
    print(printable(f"the cluster {name} is {action}: {arn}"), flush=True)
    if not wait:
        print(f"hint: {printable(_show_command(name))}", file=sys.stderr)


def _follow(follower: ClusterWaiter, name: str, desired: str) -> None:
    """Show a cluster's progress until it is created, changed or deleted, as `desired` says.

    Raises:
        ClusterEndedError: It ended otherwise.
        InterruptionError: Ctrl-C was pressed; AWS continues.
    """
    call = invocation()
    call.on_interrupt = lambda: InterruptionError(
        f"stopped waiting; AWS continues, and {name} will be {desired}",
        hint=_show_command(name),
        detail={"cluster": name},
    )
    failures: list[ClusterEvent] = []

    async def work(_: object) -> Progress:
        last = last_line = None
        async with slow_steps(f"waiting until {name} is {desired}") as steps:
            async for last in follower.follow():
                failures.extend(event for event in last.events if event.level == "error")
                steps.clear()
                if not call.as_json:
                    last_line = _show_progress(last, last_line)
        if last is None:
            raise AssertionError("a follower ends with a state")
        return last

    _conclude(with_services(work), failures, desired)


def _show_progress(now: Progress, last_line: str | None) -> str:
    """Print what is new; returns the last printed line."""
    groups = "  ".join(f"{group.name} {group.current}/{group.target}" for group in now.groups)
    line = f"{now.status:<12}  {groups}".rstrip()
    if line != last_line:
        print(printable(f"{_clock(time.time())}  {line}"), flush=True)
    for event in now.events:
        print(printable(f"{_clock(event.time)}    {_event_text(event)}"), flush=True)
    for note in now.notes:
        print(f"note: {printable(note)}", file=sys.stderr)
    return line


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _event_text(event: ClusterEvent) -> str:
    level = f"{event.level}: " if event.level not in {None, "info"} else ""
    group_prefix = f"{event.group}: " if event.group else ""
    reason = f" ({event.reason})" if event.reason else ""
    return f"{level}{group_prefix}{event.description or event.resource}{reason}"


def _conclude(last: Progress, failures: list[ClusterEvent], desired: str) -> None:
    as_json = invocation().as_json
    document = {**to_plain(last), "failures": to_plain(failures, list[ClusterEvent])}
    if as_json:
        print_json(document)
    elif last.ok:
        print(printable(f"the cluster {last.name} is {desired}"))
    if last.ok:
        return
    for event in () if as_json else failures:
        print(printable(f"{iso_time(event.time)}  {_event_text(event)}"), file=sys.stderr)
    failure_text = f": {last.failure}" if last.failure else ""
    first = next((f"{group.name}/" for group in last.groups if group.status == "Failed"), "")
    raise ClusterEndedError(
        f"the cluster {last.name} was not {desired}; it is {last.status}{failure_text}",
        hint=f"logs of lifecycle scripts: log group {last.logs}, streams LifecycleConfig/{first}...; "
        f"or: hpj node-logs --cluster {last.name}",
        detail=document,
    )

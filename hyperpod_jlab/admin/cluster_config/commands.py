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
from hyperpod_jlab.admin.cluster_config.clusters import Follower
from hyperpod_jlab.admin.cluster_config.document import Documents, Verdict, read_document
from hyperpod_jlab.admin.cluster_config.rules import CHECKS, ask_and_check, check
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
    from hyperpod_jlab.admin.cluster_config.changes import Change, ClusterChanges
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
    report = check(documents, region) if offline else _ask_and_check(documents, region)
    if invocation().as_json:
        print_json(report)
    else:
        _show_report(report)
    _refuse(report, strict=strict)


def _read(config: Path, provisioning: Path | None) -> Documents:
    """Both files. An unreadable second one is a finding, so that it does not hide those of the first."""
    first = read_document(config)
    if provisioning is None:
        return Documents(first)
    try:
        return Documents(first, read_document(provisioning))
    except InvalidInputError as error:
        return Documents(first, unread=error.message)


def _ask_and_check(documents: Documents, region: str | None) -> Report:
    async def work(_: object) -> Report:
        async with slow_steps("asking AWS"):
            return await ask_and_check(Aws(region), documents)

    return with_services(work)


def _show_report(report: Report, *, brief: bool = False) -> None:
    width = max(map(len, CHECKS))
    for one in report.checks:
        if not (brief and one.level == "ok"):
            _show_verdict(one, width)
    found = {word: len(report.of(word)) for word in ("error", "warning", "unknown")}
    words = [
        f"{count} could not be checked"
        if word == "unknown"
        else f"{count} {word}{'s'[: count - 1]}"
        for word, count in found.items()
        if count
    ]
    print(", ".join(words) or "the configuration is valid")


def _show_verdict(one: Verdict, width: int = 0) -> None:
    level = colour_state(_COLOURS[one.level], f"{one.level:<{_LEVEL_WIDTH}}")
    place = f"{one.path}: " if one.path else ""
    print(f"{level}  {one.check:<{width}}  {printable(place + one.message)}")
    if one.hint:
        print(f"{'':<{_LEVEL_WIDTH + width + 4}}hint: {printable(one.hint)}")


def _refuse(report: Report, *, strict: bool = False) -> None:
    bad = report.of("error")
    if strict:
        bad += [*report.of("warning"), *report.of("unknown")]
    if bad:
        raise ChecksFailedError(
            f"the configuration is not valid: {len(bad)} {'finding' if len(bad) == 1 else 'findings'}",
            code="bad_configuration",
            detail={"checks": to_plain(bad, list[Verdict])},
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
    report = _ask_and_check(documents, region)
    if not invocation().as_json:
        _show_report(report, brief=True)
    _refuse(report)
    count = sum(group.count or 0 for group in documents.groups)
    types = sorted({one for group in documents.groups for one in group.types})
    name = str(documents.name)
    _ask(f"create the cluster {name} with {count} instances ({', '.join(types)})", yes)
    begin = time.time()
    arn = with_services(lambda _: clusters.create(Aws(region), documents.cluster))
    _begun(name, arn, "being created", wait)
    if wait:
        _follow(Follower(Aws(region), name, arn, since=begin), name, "created")


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
    wanted = read_document(config)
    name = wanted.get("ClusterName")
    if not isinstance(name, str):
        raise InvalidInputError(
            f"{config} has no ClusterName",
            code="bad_file",
            detail={"field": "ClusterName"},
        )
    begin = time.time()
    there = with_services(lambda _: clusters.describe(Aws(region), name))
    found = changes_of(wanted, there, delete)
    if not invocation().as_json:
        _show_changes(found)
    elif dry_run:
        print_json(found)
    _refuse_changes(found.checks)
    if dry_run or not found.changes:
        if not found.changes and not invocation().as_json:
            print("there is nothing to change")
        elif not found.changes and not dry_run:
            print_json({**to_plain(found), "changed": False})
        return
    losses = "; ".join(
        f"{one.target} will be deleted"
        if one.kind == "gone"
        else f"{one.target} loses {one.before - one.after} instances"
        for one in found.losses
    )
    _ask(f"update the cluster {name}" + (f" ({losses})" if losses else ""), yes)
    with_services(lambda _: clusters.update(Aws(region), found.request))
    arn = str(there["ClusterArn"])
    _begun(str(there["ClusterName"]), arn, "being updated", wait)
    if wait:
        _follow(Follower(Aws(region), name, arn, since=begin), name, "updated")


def _show_changes(found: ClusterChanges) -> None:
    for one in found.changes:
        print(printable(_line(one)))
    for left in found.left:
        more = "" if left in found.lasting else f" (--delete-group {left} deletes it)"
        print(printable(f"= group {left}: unchanged{more}"))
    for verdict in found.checks:
        _show_verdict(verdict)


def _line(one: Change) -> str:
    if one.kind == "new":
        return f"+ {one.target}: {one.after} instances"
    if one.kind == "gone":
        return f"- {one.target}: will be deleted, with its {one.before} instances"
    sign = "-" if one.kind == "smaller" else "~"
    return f"{sign} {one.target}: {one.member}: {_short(one.before)} -> {_short(one.after)}"


def _short(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _refuse_changes(verdicts: Sequence[Verdict]) -> None:
    bad = [one for one in verdicts if one.level == "error"]
    if bad:
        raise ChecksFailedError(
            f"the cluster cannot be updated: {bad[0].message}",
            code="bad_configuration",
            hint=bad[0].hint,
            detail={"field": bad[0].path, "checks": to_plain(bad, list[Verdict])},
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
    there = with_services(lambda _: clusters.describe(Aws(region), name))
    name, arn = str(there["ClusterName"]), str(there["ClusterArn"])
    if yes is not None and yes != name:
        raise InvalidInputError(
            f"--yes names {yes[:60]}, but the cluster is {name}; nothing was deleted",
            code="not_confirmed",
            detail={"field": "yes"},
        )
    if not invocation().as_json:
        _show_deletion(there)
    if yes is None:
        _have_name_typed(name)
    with_services(lambda _: clusters.delete(Aws(region), name))
    _begun(name, arn, "being deleted", wait)
    if wait:
        _follow(Follower(Aws(region), name, arn, deleted=True, since=begin), name, "deleted")


def _show_deletion(there: dict[str, Any]) -> None:
    groups = [*(there.get("InstanceGroups") or ()), *(there.get("RestrictedInstanceGroups") or ())]
    count = sum(int(one.get("CurrentCount", 0)) for one in groups)
    lines = [f"the cluster {there['ClusterName']} will be deleted, with {count} instances:"]
    for one in groups:
        kind = one.get("InstanceType") or "several types"
        lines.append(f"  {one['InstanceGroupName']}: {one.get('CurrentCount', 0)} of {kind}")
    lines += with_services(lambda services: _jobs(services, there))
    lines += [f"kept: {one}" for one in clusters.what_stays(there)]
    for line in lines:
        print(printable(line))


async def _jobs(services: Hyperpod, there: dict[str, Any]) -> list[str]:
    """What runs and waits there, as far as this machine's configuration reaches it."""
    names = {there["ClusterName"], there["ClusterArn"]}
    known = [
        label
        for label, cluster in services.settings.clusters.items()
        if getattr(cluster, "hyperpod", None) in names
    ]
    if not known:
        return ["running jobs are unknown: this cluster is not in the configuration"]
    lines = []
    for label in known:
        try:
            jobs = [one for one in await services.jobs(label) if one.state not in JOB_ENDED]
        except HyperpodError as error:
            lines.append(f"running jobs on {label} are unknown: {error.message}")
            continue
        lines.append(
            f"running or waiting jobs on {label}: {len(jobs)}"
            if jobs
            else f"no jobs run or wait on {label}"
        )
        lines += [
            f"  {one.run_id or one.scheduler_id} of {one.user}: {one.name} ({one.state})"
            for one in jobs[:MAX_JOBS]
        ]
        if len(jobs) > MAX_JOBS:
            lines.append(f"  and {len(jobs) - MAX_JOBS} more")
    return lines


# ---------------------------------------------------------------------------------- questions


def _have_name_typed(name: str) -> None:
    """Raises `InvalidInputError` where the user cannot be asked, or types something else."""
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


def _ask(words: str, yes: bool) -> None:
    """Raises `InvalidInputError` where the user cannot be asked, or says no."""
    if yes:
        return
    if not _can_ask():
        raise InvalidInputError(
            f"this needs confirmation: {words}",
            code="not_confirmed",
            hint="confirm with --yes",
        )
    if not click.confirm(f"{words[0].upper()}{words[1:]}?", err=True):
        raise InvalidInputError("nothing was done", code="not_confirmed")


def _can_ask() -> bool:
    return not invocation().as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)


# ---------------------------------------------------------------------------------- progress


class ClusterEndedError(RunEndedError):
    """A cluster that was waited for did not become what was wanted."""

    default_code = "cluster_failed"


def _how_to_look(name: str) -> str:
    return f"check its state: hpj show {name}, hpj nodes {name}"


def _begun(name: str, arn: str, what: str, wait: bool) -> None:
    """Say that AWS has begun; with JSON only without --wait, which prints the end."""
    if invocation().as_json:
        if not wait:
            print_json({"name": name, "arn": arn, "ok": True})
        return
    print(printable(f"the cluster {name} is {what}: {arn}"), flush=True)
    if not wait:
        print(f"hint: {printable(_how_to_look(name))}", file=sys.stderr)


def _follow(follower: Follower, name: str, wanted: str) -> None:
    """Show a cluster until it is made, changed or deleted, as `wanted` says.

    Raises:
        ClusterEndedError: It ended otherwise.
        InterruptionError: Ctrl-C was pressed; AWS goes on.
    """
    call = invocation()
    call.on_interrupt = lambda: InterruptionError(
        f"stopped waiting; AWS continues, and {name} will be {wanted}",
        hint=_how_to_look(name),
        detail={"cluster": name},
    )
    failures: list[ClusterEvent] = []

    async def work(_: object) -> Progress:
        last = before = None
        async with slow_steps(f"waiting until {name} is {wanted}") as steps:
            async for last in follower.follow():
                failures.extend(one for one in last.events if one.level == "error")
                steps.clear()
                if not call.as_json:
                    before = _show_progress(last, before)
        if last is None:
            raise AssertionError("a follower ends with a state")
        return last

    _conclude(with_services(work), failures, wanted)


def _show_progress(now: Progress, before: str | None) -> str:
    """Print what is new; returns the line that was printed last."""
    groups = "  ".join(f"{one.name} {one.current}/{one.target}" for one in now.groups)
    line = f"{now.status:<12}  {groups}".rstrip()
    if line != before:
        print(printable(f"{_clock(time.time())}  {line}"), flush=True)
    for event in now.events:
        print(printable(f"{_clock(event.time)}    {_words(event)}"), flush=True)
    for note in now.notes:
        print(f"note: {printable(note)}", file=sys.stderr)
    return line


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _words(event: ClusterEvent) -> str:
    level = f"{event.level}: " if event.level not in {None, "info"} else ""
    where = f"{event.group}: " if event.group else ""
    reason = f" ({event.reason})" if event.reason else ""
    return f"{level}{where}{event.description or event.resource}{reason}"


def _conclude(last: Progress, failures: list[ClusterEvent], wanted: str) -> None:
    as_json = invocation().as_json
    told = {**to_plain(last), "failures": to_plain(failures, list[ClusterEvent])}
    if as_json:
        print_json(told)
    elif last.ok:
        print(printable(f"the cluster {last.name} is {wanted}"))
    if last.ok:
        return
    for event in () if as_json else failures:
        print(printable(f"{iso_time(event.time)}  {_words(event)}"), file=sys.stderr)
    why = f": {last.failure}" if last.failure else ""
    first = next((f"{one.name}/" for one in last.groups if one.status == "Failed"), "")
    raise ClusterEndedError(
        f"the cluster {last.name} was not {wanted}; it is {last.status}{why}",
        hint=f"logs of lifecycle scripts: log group {last.logs}, streams LifecycleConfig/{first}...; "
        f"or: hpj node-logs --cluster {last.name}",
        detail=told,
    )

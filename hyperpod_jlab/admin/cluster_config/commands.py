"""``hpj admin validate`` and ``create-cluster``: HyperPod clusters by their configuration."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.admin.cluster_config import clusters
from hyperpod_jlab.admin.cluster_config.checks import CHECKS, check, check_with_aws
from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles, read_document
from hyperpod_jlab.admin.cluster_config.results import RuleResult
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.failure import ChecksFailedError, RunEndedError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import InterruptionError, invocation, with_services
from hyperpod_jlab.cli.output import colour_state, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.wire import to_plain

if TYPE_CHECKING:
    from hyperpod_jlab.admin.cluster_config.clusters import ClusterStatus
    from hyperpod_jlab.admin.cluster_config.results import Report

_VALIDATE = """\
Check the configuration of a HyperPod cluster and report all problems at once. Change nothing.

CONFIG is the input of CreateCluster as JSON (cluster-config.json). PROVISIONING is the file provisioning_parameters.json, from which the lifecycle scripts
of AWS read the Slurm role of each instance group. Clusters on EKS, and clusters whose groups have a SlurmConfig, do not use it.

The result of a check is ok, warning, error or unknown (it could not be checked; the missing permission is named). The exit code is 2 if there is an error.
"""
_CREATE = """\
Create a HyperPod cluster from the input of CreateCluster, as JSON.

The configuration is validated first, as with 'hpj admin validate'. If there is an error, nothing is created. With --wait, each new state is shown
until the cluster is in service or has failed; Ctrl-C stops only the waiting.
"""
_LEVEL_WIDTH = 7
_COLOURS = {"ok": "ok", "warning": "warn", "error": "fail", "unknown": "unknown"}
"""The colours of ``hpj doctor``."""

_FILE = click.Path(path_type=Path)
_REGION = click.option(
    "--region",
    metavar="REGION",
    callback=aws_name,
    help="AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio.",
)


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
@_REGION
def validate(config: Path, provisioning: Path | None, offline: bool, strict: bool, region: str | None) -> None:
    """Check a configuration."""
    documents = _read(config, provisioning)
    report = check(documents) if offline else _check_with_aws(documents, region)
    if invocation().as_json:
        print_json(report)
    else:
        _show_report(report)
    _refuse(report, strict=strict)


def _read(config: Path, provisioning: Path | None) -> ClusterConfigFiles:
    return ClusterConfigFiles(read_document(config), read_document(provisioning) if provisioning else None)


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
    parts = []
    for level in ("error", "warning", "unknown"):
        if count := len(report.with_level(level)):
            words = f"{level}{'s' if count > 1 else ''}"
            parts.append(f"{count} {'could not be checked' if level == 'unknown' else words}")
    print(", ".join(parts) or "the configuration is valid")


def _show_result(rule_result: RuleResult, width: int) -> None:
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


@click.command(
    "create-cluster",
    cls=HpjCommand,
    help=_CREATE,
    examples=(
        "hpj admin create-cluster --file cluster-config.json --provisioning provisioning_parameters.json --wait",
        "hpj admin create-cluster --file cluster-config.json --yes --json",
    ),
)
@click.option("--file", "config", type=_FILE, required=True, help="Cluster configuration (JSON).")
@click.option("--provisioning", type=_FILE, help="For Slurm: the file provisioning_parameters.json.")
@click.option("--wait", is_flag=True, help="Wait until the cluster is in service or has failed.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_REGION
def create_cluster(config: Path, provisioning: Path | None, wait: bool, yes: bool, region: str | None) -> None:
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
    arn = with_services(lambda _: clusters.create(Aws(region), documents.cluster))
    if not invocation().as_json:
        print(printable(f"the cluster {name} is being created: {arn}"), flush=True)
    if wait:
        _follow(Aws(region), name, arn)
    elif invocation().as_json:
        print_json({"name": name, "arn": arn, "ok": True})
    else:
        print(f"hint: {printable(_show_command(name))}", file=sys.stderr)


def _ask(question: str, yes: bool) -> None:
    """Raises `InvalidInputError` if there is no terminal, or the user declines."""
    if yes:
        return
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(f"this needs confirmation: {question}", code="not_confirmed", hint="confirm with --yes")
    if not click.confirm(f"{question[0].upper()}{question[1:]}?", err=True):
        raise InvalidInputError("nothing was done", code="not_confirmed")


class ClusterFailedError(RunEndedError):
    """The awaited cluster failed."""

    default_code = "cluster_failed"


def _follow(aws: Aws, name: str, arn: str) -> None:
    """Show each new state of a cluster until it is created.

    Raises:
        ClusterFailedError: It failed.
        InterruptionError: Ctrl-C was pressed; AWS continues.
    """
    call = invocation()
    call.on_interrupt = lambda: InterruptionError(
        f"stopped waiting; AWS continues, and {name} will be created",
        hint=_show_command(name),
        detail={"cluster": name},
    )

    async def work(_: object) -> ClusterStatus:
        last = clusters.ClusterStatus(name, arn, "")
        async with slow_steps(f"waiting until {name} is created") as steps:
            async for now in clusters.follow(aws, name, arn):
                steps.clear()
                if now.status != last.status and not call.as_json:
                    print(f"{time.strftime('%H:%M:%S')}  {printable(now.status)}", flush=True)
                last = now
        return last

    last = with_services(work)
    if call.as_json:
        print_json(last)
    elif last.ok:
        print(printable(f"the cluster {name} is created"))
    if not last.ok:
        reason = f": {last.failure}" if last.failure else ""
        raise ClusterFailedError(
            f"the cluster {name} was not created; it is {last.status}{reason}",
            hint=f"logs of lifecycle scripts: log group {last.logs}, streams LifecycleConfig/...; "
            f"or: hpj node-logs --cluster {name}",
            detail=to_plain(last),
        )


def _show_command(name: str) -> str:
    return f"check its state: hpj show {name}, hpj nodes {name}, hpj events --cluster {name}"

"""``hpj admin validate``: what is wrong with a cluster's configuration, before it is made."""

from __future__ import annotations

from pathlib import Path

import click

from hyperpod_jlab.admin.cluster_config.files import read_document
from hyperpod_jlab.admin.cluster_config.validation import Documents, Report, ask_and_check, check
from hyperpod_jlab.admin.cluster_config.verdict import CHECKS, Verdict
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.failure import ChecksFailedError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import coloured, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.errors import InvalidInputError

_HELP = """\
Check the configuration of a HyperPod cluster, and change nothing: all that is wrong is said at once.

CONFIG is the input of CreateCluster as JSON (cluster-config.json), PROVISIONING the file provisioning_parameters.json from which AWS' life cycle scripts
learn what each group is to Slurm; a cluster on EKS, and one whose groups have a SlurmConfig, has none.

Each check is ok, warning, error or unknown: it could not be checked, and the right that is missing is named. The exit code is 2 when one is an error.
"""

_LEVEL = 7
_COLOURS = {"ok": "ok", "warning": "warn", "error": "fail", "unknown": "unknown"}
"""The colours that ``hpj doctor`` has for the same."""

FILE = click.Path(dir_okay=True, path_type=Path)
"""A file; whether it can be read is said with all other errors."""

REGION = click.option(
    "--region",
    metavar="REGION",
    callback=aws_name,
    help="AWS region. Default: $AWS_REGION, or that of the AWS configuration or of Studio.",
)


@click.command(
    "validate",
    cls=HpjCommand,
    help=_HELP,
    examples=(
        "hpj admin validate cluster-config.json provisioning_parameters.json",
        "hpj admin validate cluster-config.json --offline",
        "hpj admin validate cluster-config.json --json",
    ),
)
@click.argument("config", type=FILE, metavar="CONFIG")
@click.argument("provisioning", type=FILE, required=False, metavar="[PROVISIONING]")
@click.option("--offline", is_flag=True, help="Only what needs no AWS.")
@click.option(
    "--strict", is_flag=True, help="Take warnings, and what could not be checked, for errors."
)
@REGION
def validate(
    config: Path, provisioning: Path | None, offline: bool, strict: bool, region: str | None
) -> None:
    """Check a configuration."""
    report = examined(read_documents(config, provisioning), region, offline=offline)
    if invocation().as_json:
        print_json(report.to_dict())
    else:
        show_report(report)
    refuse_bad(report, strict=strict)


def read_documents(config: Path, provisioning: Path | None) -> Documents:
    """Both files. A second one that cannot be read is a finding, for it is not to hide those of the first.

    Raises:
        InvalidInputError: The first one cannot be read, or is no JSON.
    """
    first = read_document(config)
    if provisioning is None:
        return Documents(first)
    try:
        return Documents(first, read_document(provisioning))
    except InvalidInputError as error:
        return Documents(first, unread=error.message)


def examined(documents: Documents, region: str | None, *, offline: bool = False) -> Report:
    """What all checks say."""
    if offline:
        return check(documents, None, region)

    async def work(_: object) -> Report:
        async with slow_steps("asking AWS"):
            return await ask_and_check(Aws(region), documents)

    return with_services(work)


def show_report(report: Report, *, brief: bool = False) -> None:
    """Print it.

    Args:
        report: What the checks say.
        brief: Whether what is well is left out.
    """
    width = max(map(len, CHECKS))
    for one in report.verdicts:
        if not (brief and one.level == "ok"):
            show_verdict(one, width)
    counts = {word: len(report.of(word)) for word in ("error", "warning", "unknown")}
    words = ", ".join(f"{count} {_counted(word, count)}" for word, count in counts.items() if count)
    print(words or "the configuration is good")


def _counted(word: str, count: int) -> str:
    if word == "unknown":
        return "could not be checked"
    return word if count == 1 else f"{word}s"


def show_verdict(one: Verdict, width: int = 0) -> None:
    """Print what a check says; its name takes so many columns."""
    level = coloured(_COLOURS[one.level], f"{one.level:<{_LEVEL}}")
    place = f"{one.path}: " if one.path else ""
    print(f"{level}  {one.check:<{width}}  {printable(place + one.message)}")
    if one.hint:
        print(f"{'':<{_LEVEL + width + 4}}hint: {printable(one.hint)}")


def refuse_bad(report: Report, *, strict: bool = False) -> None:
    """Raise where something is wrong.

    Raises:
        ChecksFailedError: There is an error; with `strict` also a warning, or something that could not be checked.
    """
    bad = report.of("error")
    if strict:
        bad += [*report.of("warning"), *report.of("unknown")]
    if bad:
        raise ChecksFailedError(
            f"the configuration is not good: {len(bad)} {'finding' if len(bad) == 1 else 'findings'}",
            code="bad_configuration",
            detail={"checks": [one.to_dict() for one in bad]},
        )

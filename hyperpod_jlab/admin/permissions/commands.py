"""``hpj admin policy``: the IAM policy that the features need."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.aws.permissions import FEATURES, choose
from hyperpod_jlab.aws.permissions import policy as policy_of
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import Table, print_json, print_table
from hyperpod_jlab.core.errors import InvalidInputError

if TYPE_CHECKING:
    from hyperpod_jlab.aws.permissions import Feature

_HELP = """\
Print the smallest IAM policy that the features need, for the role of Studio spaces or of users.

Without FEATURE, the policy covers all read-only features except those of administrators and those for which AWS charges. With
--actions, list the actions of each feature and what does not work without them.
"""

_PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
_REGION = re.compile(r"\*|[a-z]{2}(-[a-z]+)+-\d+")
_ACCOUNT = re.compile(r"\*|\d{12}")


@click.command(
    cls=HpjCommand,
    help=_HELP,
    examples=(
        "hpj admin policy > policy.json",
        "hpj admin policy nodes --region us-west-2 --account 111122223333",
        "hpj admin policy --actions",
    ),
)
@click.argument("features", nargs=-1, metavar="[FEATURE]...")
@click.option(
    "--partition",
    type=click.Choice(_PARTITIONS),
    help="AWS partition of the ARNs. Default: the partition of Studio's role, or aws.",
)
@click.option("--region", default="*", metavar="REGION", help="Allow only this region. Default: all.")
@click.option("--account", default="*", metavar="NUMBER", help="Allow only this account. Default: any.")
@click.option("--actions", is_flag=True, help="List the actions of each feature instead.")
def policy(features: tuple[str, ...], partition: str | None, region: str, account: str, actions: bool) -> None:
    """Print a policy, or what it is made from."""
    if actions:
        _list(choose(features) if features else list(FEATURES))
        return
    _check("region", region, _REGION, "us-west-2")
    _check("account", account, _ACCOUNT, "111122223333")
    if partition is None:
        studio = find_studio()
        partition = (studio.partition if studio else None) or "aws"
    document = policy_of(choose(features), partition, region, account)
    if invocation().as_json:
        print_json(document)
    else:
        print(json.dumps(document, indent=2))
    if not features:
        _print_excluded()


def _print_excluded() -> None:
    """Say which features are granted by name only, and why."""
    changing = [feature.name for feature in FEATURES if feature.changes and not feature.for_admins]
    admins = [feature.name for feature in FEATURES if feature.for_admins]
    for names, reason in ((changing, "they change something"), (admins, "they are for administrators")):
        print(f"note: not included, because {reason}: {', '.join(names)}", file=sys.stderr)


def _check(field: str, value: str, output_format: re.Pattern[str], example: str) -> None:
    if not output_format.fullmatch(value):
        raise InvalidInputError(
            f"--{field}: '{value[:60]}' is not valid", hint=f"example: {example}", detail={"field": field}
        )


def _list(features: list[Feature]) -> None:
    if invocation().as_json:
        rows = [
            {"feature": feature.name, "changes": feature.changes, **vars(permission)}
            for feature in features
            for permission in feature.permissions
        ]
        print_json({"actions": rows})
        return
    lines = [
        (feature.name, permission.action, f"without it: {permission.without}")
        for feature in features
        for permission in feature.permissions
    ]
    print_table(Table(("FEATURE", "ACTION", "REASON"), lines))

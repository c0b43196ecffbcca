"""``hpj mlflow``: servers of SageMaker, and links to runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_json, print_notes, print_table
from hyperpod_jlab.cli.parameters import RUN, region_option

if TYPE_CHECKING:
    from hyperpod_jlab.features.mlflow.models import MlflowLink, MlflowServers
    from hyperpod_jlab.run.services import Hyperpod

_MODULE = "features.mlflow.commands"

_HELP = """\
List the MLflow servers of SageMaker, and open a run in MLflow.

Set the server of your runs in the configuration, or for one run with hpj submit --mlflow URI. Then the code of the run finds it, and its MLflow runs have the run's
id as the tag hyperpod.run_id. hpj show RUN shows the MLflow run.
"""


@click.group(
    "mlflow",
    cls=LazyGroup,
    sections=(
        Section(
            "Commands",
            (
                Entry("servers", _MODULE, "List the MLflow servers of SageMaker."),
                Entry("link", _MODULE, "Print a link to a run in MLflow."),
            ),
        ),
    ),
    help=_HELP,
    examples=("hpj mlflow servers", "hpj mlflow link last"),
)
def mlflow() -> None:
    """MLflow."""


@click.command(
    cls=HpjCommand,
    help="List the MLflow tracking servers and MLflow Apps of SageMaker, with the ARNs for the configuration and for hpj submit --mlflow.",
    examples=("hpj mlflow servers", "hpj mlflow servers --region us-west-2 --json"),
)
@region_option
def servers(region: str | None) -> None:
    """List servers."""

    async def read(_: Hyperpod) -> MlflowServers:
        from hyperpod_jlab.aws.session import Aws
        from hyperpod_jlab.features.mlflow.aws import list_servers

        return await list_servers(Aws(region))

    found = with_services(read, asking=True)
    if invocation().as_json:
        print_json(found)
        return
    rows = [(one.name, one.kind, one.status, one.version or "-", one.arn) for one in found.servers]
    titles = ("NAME", "KIND", "STATUS", "VERSION", "ARN")
    print_table(Table(titles, rows, empty="no MLflow servers"))
    print_notes(found.notes)


@click.command(
    cls=HpjCommand,
    help="Print a link to the page of a run in MLflow. On SageMaker the link can be used once, within five minutes.",
    examples=("hpj mlflow link last",),
)
@click.argument("run", type=RUN)
def link(run: str) -> None:
    """Print a link."""

    async def make(hyperpod: Hyperpod) -> MlflowLink:
        from hyperpod_jlab.cli.naming import find_run
        from hyperpod_jlab.features.mlflow.service import link_to

        return await link_to(hyperpod, await find_run(hyperpod, run))

    made = with_services(make, asking=True)
    if invocation().as_json:
        print_json(made)
    else:
        print(made.url)

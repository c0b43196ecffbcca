"""``hpj adopt``: take a job that was sent elsewhere into the list of runs."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.services.hyperpod import Hyperpod


@click.command(
    cls=HpjCommand,
    help="Take a job that was sent elsewhere, such as with sbatch or kubectl, into the list of runs and its log view. Prints the run's id. "
    "JOB is what the table of jobs calls it: a number on Slurm, a name or kind/name on Kubernetes.",
    examples=(
        "hpj jobs --cluster ml-slurm",
        "hpj adopt 1234 --cluster ml-slurm",
        "hpj adopt pytorchjob/train --cluster ml-eks",
    ),
)
@click.argument("job", metavar="JOB")
@click.option("--cluster", type=CLUSTER, help="The job's cluster. Default: the configured one.")
@click.option("--name", metavar="NAME", help="A name for the run. Default: the job's own.")
def adopt(job: str, cluster: str | None, name: str | None) -> None:
    """Adopt a job."""
    with_services(lambda hyperpod: _adopt(hyperpod, job, cluster, name), asking=True)


async def _adopt(hyperpod: Hyperpod, job: str, cluster: str | None, name: str | None) -> None:
    run_id = await hyperpod.adopt(job, cluster, name)
    if invocation().as_json:
        print_json((await hyperpod.runs.get(run_id)).to_dict())
    else:
        print(run_id)

"""``hpj adopt``: take a job that was sent elsewhere into the list of runs."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import with_services
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.model.errors import UnsupportedError
from hyperpod_jlab.services.hyperpod import Hyperpod


@click.command(
    cls=HpjCommand,
    help="Take a job that was sent elsewhere, such as with sbatch or kubectl, into the list of runs and its log view.",
    examples=("hpj jobs --cluster ml-slurm", "hpj adopt 1234 --cluster ml-slurm"),
)
@click.argument("job", metavar="JOBID")
@click.option("--cluster", type=CLUSTER, help="The job's cluster. Default: the configured one.")
def adopt(job: str, cluster: str | None) -> None:
    """Adopt a job."""
    with_services(lambda hyperpod: _adopt(hyperpod, job, cluster))


async def _adopt(hyperpod: Hyperpod, job: str, cluster: str | None) -> None:
    engine = hyperpod.engines.get(cluster)
    detail = {"cluster": engine.name, "job": job[:60]}
    if not engine.capabilities.adopt:
        raise UnsupportedError(
            f"{engine.kind} clusters have no jobs from elsewhere to adopt",
            hint="choose a Slurm or Kubernetes cluster with --cluster"
            if engine.kind == "local"
            else None,
            detail=detail,
        )
    raise UnsupportedError("this version cannot adopt jobs yet", detail=detail)

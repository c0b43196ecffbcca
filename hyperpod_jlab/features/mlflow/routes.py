"""Requests about MLflow."""

from __future__ import annotations

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.routes import Region, require_cluster
from hyperpod_jlab.features.mlflow.aws import list_servers
from hyperpod_jlab.features.mlflow.models import MlflowLink, MlflowServers, RunMlflow
from hyperpod_jlab.features.mlflow.service import link_to, read_mlflow, suggest_servers
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class ServersQuery(RequestModel):
    """Which servers."""

    region: Region = None
    """Default: the default region for AWS."""


async def show_mlflow(call: Call, run_id: str) -> RunMlflow:
    """Get what MLflow has of a run: its run there, with parameters and last metrics. It waits at most 2 s for MLflow."""
    hyperpod = await call.hyperpod()
    return await read_mlflow(hyperpod, await hyperpod.runs.get(run_id))


async def make_link(call: Call, run_id: str) -> MlflowLink:
    """Make a link to a run in MLflow; on SageMaker it can be used once, within five minutes."""
    return await link_to(await call.hyperpod(), run_id)


async def list_mlflow_servers(call: Call, query: ServersQuery) -> MlflowServers:
    """List the MLflow tracking servers and MLflow Apps of SageMaker in a region."""
    del call
    return await list_servers(Aws(query.region))


async def suggest_mlflow_servers(call: Call, cluster: str) -> MlflowServers:
    """List the MLflow servers of SageMaker that runs on a cluster can use, for a form: empty if the cluster is not in AWS, or AWS does not answer within a second."""
    return await suggest_servers(await require_cluster(call, cluster), cluster)

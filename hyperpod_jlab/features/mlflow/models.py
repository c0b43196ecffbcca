"""Runs and servers of MLflow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.run.metrics import MetricValue


@dataclass(frozen=True)
class MlflowRun:
    """A run in MLflow.

    Attributes:
        run_id: Its id in MLflow.
        url: Its page; null on SageMaker, where a link has to be made first.
        status: ``RUNNING``, ``FINISHED``, ``FAILED``, ``KILLED`` or ``SCHEDULED``.
        attempt: The attempt of our run that it belongs to.
        metrics: The last value of each metric.
    """

    run_id: str
    url: str | None
    name: str
    experiment_id: str
    status: str
    attempt: int | None
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, MetricValue] = field(default_factory=dict)


@dataclass(frozen=True)
class RunMlflow:
    """What MLflow has of one of our runs.

    Attributes:
        tracking_uri: The tracking server; null if the run has none.
        mlflow: The run in MLflow; null if it was not found.
        problem: Why MLflow could not be asked; null if it could.
    """

    run_id: str
    tracking_uri: str | None = None
    mlflow: MlflowRun | None = None
    problem: str | None = None


@dataclass(frozen=True)
class MlflowLink:
    """A page of MLflow. On SageMaker the link can be used once, within five minutes."""

    url: str


@dataclass(frozen=True)
class MlflowServer:
    """An MLflow server of SageMaker.

    Attributes:
        arn: What `mlflow.tracking_uri` of a spec and of the configuration can be.
        status: Its state as AWS reports it.
        version: The version of MLflow.
    """

    name: str
    kind: Literal["app", "tracking-server"]
    arn: str
    status: str
    version: str | None
    created_at: Time | None


@dataclass(frozen=True)
class MlflowServers:
    """The MLflow servers of an account in a region; the notes say what is missing."""

    servers: list[MlflowServer]
    notes: list[str] = field(default_factory=list)

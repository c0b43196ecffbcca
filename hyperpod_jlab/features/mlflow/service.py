"""What MLflow has of a run: found by the tag with the run's id, with a limit of time, and never an error of the run."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError, UnreachableError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.features.mlflow.api import MlflowApi, MlflowFault, attempt_of, pick_mlflow_run, tags_of
from hyperpod_jlab.features.mlflow.aws import list_servers, presigned_link
from hyperpod_jlab.features.mlflow.models import MlflowLink, MlflowRun, MlflowServers, RunMlflow
from hyperpod_jlab.run.metrics import MetricValue
from hyperpod_jlab.run.services import Hyperpod

T = TypeVar("T")

TIMEOUT_S = 1.5
"""Seconds for all requests about one run."""

_SERVERS_TTL_S = 60.0
_SUGGEST_S = 1.0
_UNTRUSTED = "another user's run with an MLflow server that is not in your configuration: it is not asked, because it would get your password"
_MAX_ITEMS = 200
_MAX_EXPERIMENTS = 1000
_MAX_TEXT = 500
_MAX_NUMBER = 1 << 53

_ODD = (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError)
"""What a value of an unexpected type raises, whatever is done with it."""

_asking = threading.BoundedSemaphore(8)
"""Threads that wait for an MLflow server. One that does not answer can hold a thread longer than anyone waits for it."""


async def read_mlflow(hyperpod: Hyperpod, run: Run) -> RunMlflow:
    """What MLflow has of a run. A server that does not answer in time, or denies access, is the `problem` of the answer."""
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run.run_id)
    spec = await asyncio.to_thread(bundle.spec)
    uri = spec.mlflow.server
    if uri is None or run.status.started_at is None:
        return RunMlflow(run.run_id, uri)
    if not await _is_trusted(hyperpod, run, uri):
        return RunMlflow(run.run_id, uri, problem=_UNTRUSTED)
    experiment = spec.mlflow.experiment

    def work() -> MlflowRun | None:
        api = MlflowApi(uri, os.environ, timeout=TIMEOUT_S, seconds=TIMEOUT_S)
        try:
            found = _find(api, run.run_id, experiment)
            return _view(found, uri) if found else None
        except _ODD as error:
            raise MlflowFault(f"MLflow's answer has another form than expected: {error!r:.200}") from error

    try:
        found = await _within(TIMEOUT_S, work)
    except MlflowFault as fault:
        return RunMlflow(run.run_id, uri, problem=fault.message)
    except TimeoutError:
        return RunMlflow(run.run_id, uri, problem="MLflow did not answer in time")
    return RunMlflow(run.run_id, uri, mlflow=found)


async def link_to(hyperpod: Hyperpod, run_id: str) -> MlflowLink:
    """The page of a run in MLflow; on SageMaker a new link.

    Raises:
        NotFoundError: The run does not exist, has no MLflow server, or is not there.
        UnreachableError: MLflow does not say whether it is there.
        DeniedError: It is another user's, with a server that is not in this user's configuration.
        HyperpodError: AWS does not make the link (see `aws.errors`).
    """
    known = await read_mlflow(hyperpod, await hyperpod.runs.get(run_id))
    uri, found = known.tracking_uri, known.mlflow
    if uri is None:
        raise NotFoundError(
            f"{run_id} has no MLflow server",
            code="no_mlflow",
            hint="set tracking_uri below [mlflow] in the configuration, or submit with --mlflow URI",
            detail={"run_id": run_id},
        )
    if known.problem == _UNTRUSTED:
        raise DeniedError(_UNTRUSTED, code="foreign_run", detail={"run_id": run_id})
    if known.problem is not None:
        raise UnreachableError(
            f"the run was not found in MLflow: {known.problem}",
            code="no_mlflow",
            detail={"run_id": run_id, "tracking_uri": uri},
        )
    if found is None:
        raise NotFoundError(
            f"MLflow has no run of {run_id}",
            code="no_mlflow",
            hint="call mlflow in your code",
            detail={"run_id": run_id, "tracking_uri": uri},
        )
    # A browser keeps the part after # when the server redirects it.
    page = _page(found.experiment_id, found.run_id)
    if uri.startswith("arn:"):
        return MlflowLink(await presigned_link(uri) + page)
    return MlflowLink(f"{uri.rstrip('/')}/{page}")


async def suggest_servers(hyperpod: Hyperpod, cluster: str) -> MlflowServers:
    """The servers of SageMaker that runs on a cluster could use: none unless it is in AWS. What AWS does not list at once is there the next time."""
    if not hyperpod.settings.clusters[cluster].at_aws:
        return MlflowServers([])
    cache: Cache[str, MlflowServers] = hyperpod.get_or_make(Cache, "mlflow", lambda: Cache(_SERVERS_TTL_S))
    try:
        async with asyncio.timeout(_SUGGEST_S):
            return await cache.get("servers", lambda: list_servers(Aws(fail_fast=True)))
    except (HyperpodError, TimeoutError):
        return MlflowServers([])


async def _is_trusted(hyperpod: Hyperpod, run: Run, uri: str) -> bool:
    """Whether a server may get this user's password and be opened: another user may have named it to get that."""
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run.run_id)
    settings = hyperpod.settings
    configured = {settings.mlflow.tracking_uri}
    if run.cluster in settings.clusters:
        configured.add(settings.clusters[run.cluster].mlflow.tracking_uri)
    return uri in configured or await asyncio.to_thread(lambda: bundle.is_own)


async def _within(seconds: float, work: Callable[[], T]) -> T:
    """Run something that may hang; its thread does not keep the process from ending.

    Raises:
        TimeoutError: It takes too long, or too many others do.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(lambda: None if result.done() else settle())

    def run() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - passed on to the callers that wait
            tell(functools.partial(result.set_exception, error))
        else:
            tell(functools.partial(result.set_result, value))
        finally:
            _asking.release()

    if not _asking.acquire(blocking=False):
        raise TimeoutError
    threading.Thread(target=run, name="mlflow", daemon=True).start()
    return await asyncio.wait_for(result, seconds)


def _find(api: MlflowApi, run_id: str, experiment: str | None) -> dict[str, Any] | None:
    """In the run's experiment, or in any other one if its code has chosen that."""
    expected = api.find_experiment(experiment) if experiment else "0"
    runs = api.search([expected], run_id) if expected else []
    if not runs:
        answer = api.post("experiments/search", {"max_results": _MAX_EXPERIMENTS})
        ids = [str(one["experiment_id"]) for one in answer.get("experiments") or ()]
        runs = api.search(ids, run_id) if ids else []
    return pick_mlflow_run(runs)


def _view(run: Mapping[str, Any], uri: str) -> MlflowRun:
    info, data = run.get("info") or {}, run.get("data") or {}
    run_id, experiment = _text(info["run_id"]), _text(info["experiment_id"])
    return MlflowRun(
        run_id=run_id,
        url=None if uri.startswith("arn:") else f"{uri.rstrip('/')}/{_page(experiment, run_id)}",
        name=_text(info.get("run_name") or run_id),
        experiment_id=experiment,
        status=_text(info.get("status")),
        attempt=attempt_of(tags_of(run)),
        params={_text(one.get("key")): _text(one.get("value")) for one in (data.get("params") or ())[:_MAX_ITEMS]},
        metrics={_text(one.get("key")): _metric(one) for one in (data.get("metrics") or ())[:_MAX_ITEMS]},
    )


def _text(value: object) -> str:
    if isinstance(value, dict | list):
        raise TypeError(f"{value!r:.60} is not a text")
    return str(value)[:_MAX_TEXT]


def _page(experiment: str, run: str) -> str:
    return f"#/experiments/{experiment}/runs/{run}"


def _metric(metric: Mapping[str, Any]) -> MetricValue:
    value = float(metric.get("value", math.nan))
    moment = float(metric.get("timestamp") or 0) / 1000
    step = int(metric.get("step") or 0)
    if not (abs(moment) <= _MAX_NUMBER and abs(step) <= _MAX_NUMBER):
        raise ValueError("a step or a time is too large")
    return MetricValue(value if math.isfinite(value) else None, step, moment)

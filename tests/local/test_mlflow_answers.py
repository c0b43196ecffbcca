"""A server in place of MLflow whose answers have any type: what is shown of a run says so, and is never an error."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.wire import to_json
from hyperpod_jlab.features.mlflow.models import RunMlflow
from hyperpod_jlab.features.mlflow.service import link_to, read_mlflow
from testbed.loopback import Handler, Loopback
from tests.aws.conftest import patient_mlflow
from tests.local.conftest import LocalCluster

__all__ = ["patient_mlflow"]

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("patient_mlflow")]

EXPERIMENT: dict[str, Any] = {"experiment": {"experiment_id": "1"}}
EXPERIMENTS: dict[str, Any] = {"experiments": [{"experiment_id": "1"}]}
TAGS = [{"key": "hyperpod.attempt", "value": "1"}]
RUN: dict[str, Any] = {
    "info": {"run_id": "r", "run_name": "n", "experiment_id": "1", "status": "FINISHED", "start_time": 1},
    "data": {
        "params": [{"key": "lr", "value": "0.1"}],
        "metrics": [{"key": "loss", "value": 0.5, "timestamp": 1000, "step": 3}],
        "tags": TAGS,
    },
}
RUNS: dict[str, Any] = {"runs": [RUN, copy.deepcopy(RUN)]}
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**400, "", "text", "NaN", "-Infinity", "9" * 5000, "\ud800", "\x1b[2J"),
    *([], {}, [None], ["text"], [[]], [1], {"key": None}, {"a": {"b": []}}, [{}], [{"experiment_id": []}]),
    json.loads("[" * 500 + "]" * 500),
)
HUGE = ("NaN", "Infinity", "1e999", "9" * 5000)
"""Numbers that JSON of Python can have."""


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a document, the document itself first."""
    yield place
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from places(value, (*place, key))


def changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The document with something else at a place."""
    if not place:
        return value
    made = copy.deepcopy(document)
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return made


class Odd(Handler):
    """Answers with what the test has put there."""

    answers: ClassVar[dict[str, bytes]] = {}

    def take(self) -> None:
        self.body()
        path = self.path.partition("?")[0].rpartition("/mlflow/")[2]
        self.answer(200, type(self).answers.get(path, b"{}"))


async def test_no_answer_of_a_server_is_an_error_of_ours(local: LocalCluster) -> None:
    usual = {"experiments/get-by-name": EXPERIMENT, "experiments/search": EXPERIMENTS, "runs/search": RUNS}
    with Loopback(Odd) as server:
        mlflow = {"tracking_uri": server.url, "experiment": "toy"}
        run_id = await local.submit("true", mlflow=mlflow)
        await local.ended(run_id)
        run = await local.hyperpod.runs.get(run_id)

        async def ask(path: str, body: bytes, *, found: bool = True) -> RunMlflow:
            answers = {name: json.dumps(answer).encode() for name, answer in usual.items()}
            if not found:
                answers["runs/search"] = b"{}"
            Odd.answers = {**answers, path: body}
            answer = await read_mlflow(local.hyperpod, run)
            json.loads(to_json(answer, RunMlflow))
            with contextlib.suppress(HyperpodError):
                await link_to(local.hyperpod, run_id)
            return answer

        answer = await ask("", b"")
        assert answer.problem is None
        assert answer.mlflow is not None
        assert (answer.mlflow.params, answer.mlflow.attempt) == ({"lr": "0.1"}, 1)
        assert answer.mlflow.metrics["loss"].value == 0.5

        for path, document in usual.items():
            for place in places(document):
                for value in ODD:
                    body = json.dumps(changed(document, place, value)).encode()
                    await ask(path, body, found=path != "experiments/search")
                for text in HUGE:
                    body = json.dumps(changed(document, place, "HERE")).encode()
                    await ask(path, body.replace(b'"HERE"', text.encode()))

        answer = await ask("runs/search", json.dumps({"runs": [{**RUN, "info": []}]}).encode())
        assert answer.problem is not None
        assert "MLflow's answer has another form than expected" in answer.problem

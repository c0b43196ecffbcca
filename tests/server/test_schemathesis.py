"""Requests that hypothesis makes from the OpenAPI document: none is a fault, and every answer looks as described."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.checks import CHECKS

from hyperpod_jlab.server.openapi import document

pytestmark = pytest.mark.local

TOKEN = "for-tests"
RUN_ID = "seen-by-schemathesis"
NEEDED = ("not_a_server_error", "response_schema_conformance", "content_type_conformance")

#: All that hypothesis thinks up for it is made in the test, not by every worker that collects tests: it takes a quarter of a minute.
schema = schemathesis.pytest.from_fixture("described").exclude(operation_id="log_socket")


@pytest.fixture
def described(request):
    """What this server says that it does."""
    request.node._nodeid = request.node.nodeid  # schemathesis 4.32 wants it; pytest 9.2 no longer has it
    return schemathesis.openapi.from_dict(document())


def wait_for(url, process):
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{url}/version?token={TOKEN}", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, "the server has died"
            assert time.monotonic() < deadline, "the server does not come up"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def server(tmp_path_factory, unused_port):
    """A Jupyter server of its own process, with one run that has ended."""
    home = tmp_path_factory.mktemp("schemathesis")
    places = {f"XDG_{name}_HOME": str(home / name) for name in ("DATA", "STATE", "CACHE", "CONFIG")}
    jupyter = {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **places, **jupyter, "HOME": str(home)}
    environment.pop("HYPERPOD_CONFIG", None)
    hpj = [sys.executable, "-m", "hyperpod_jlab.cli.main"]
    subprocess.run(
        [*hpj, "submit", "-c", "echo hello", "--run-id", RUN_ID, "--wait"],
        env=environment,
        cwd=home,
        check=True,
        capture_output=True,
    )
    options = {
        "ServerApp.port": unused_port,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": home,
        "IdentityProvider.token": TOKEN,
        "ServerApp.jpserver_extensions": "{'hyperpod_jlab': True}",
    }
    command = [sys.executable, "-m", "jupyter_server"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with (
        (home / "server.log").open("wb") as log,
        subprocess.Popen(command, env=environment, cwd=home, stderr=log) as process,
    ):
        url = f"http://127.0.0.1:{unused_port}/hyperpod/api/v1"
        try:
            wait_for(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.fixture(scope="module")
def unused_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def examples(number):
    """So many requests for each operation, the same in every run."""
    return settings(
        max_examples=number, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )


@pytest.mark.timeout(900)
@schema.parametrize()
@examples(2)
def test_requests_made_from_the_document(case, server):
    answer_is_as_described(case, server)


@pytest.mark.full
@pytest.mark.timeout(3600)  # all operations, thousands of requests
@schema.parametrize()
@examples(50)
def test_many_requests_made_from_the_document(case, server):
    answer_is_as_described(case, server)


def answer_is_as_described(case, server):
    """Send a request and look at what comes back."""
    # Tornado closes a connection whose first line and headers are longer than 64 KiB.
    assume(len(urlencode(case.query or {}, doseq=True)) < 60_000)
    if "run_id" in case.path_parameters:
        case.path_parameters["run_id"] = RUN_ID
    if "cluster" in case.path_parameters:
        case.path_parameters["cluster"] = "local"
    if case.operation.method == "post" and isinstance(case.body, dict) and "spec" in case.body:
        # What hypothesis thinks up is looked at, never run.
        case.body.pop("clone_of", None)
        if isinstance(case.body["spec"], dict):
            case.body["spec"]["source"] = {"kind": "script", "path": "gone.py"}
    checks = [CHECKS.get_one(name) for name in NEEDED]
    case.call_and_validate(base_url=server, headers={"Authorization": f"token {TOKEN}"}, checks=checks)

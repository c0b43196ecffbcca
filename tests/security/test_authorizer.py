"""A person whom Jupyter's authorizer limits: a real server with four persons, asked for all of our routes, the log socket, ports and notebook jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import nbformat
import pytest
from jupyter_scheduler.models import Status

from hyperpod_jlab.server.routes import ROUTES

pytestmark = pytest.mark.timeout(600)

DEADLINE = 240.0
LOCAL = "HyperPod: local"
RIGHTS = {"ann": ["read", "execute"], "rita": ["read"], "xena": ["execute"], "dan": []}
"""What each may do with our resource; the authorizer refuses nothing else. A person's token is the name."""

READS = [route for route in ROUTES if route.action == "read"]
ACTS = [route for route in ROUTES if route.action != "read"]

CONFIG = """
import json
from pathlib import Path
from jupyter_server.auth import Authorizer, IdentityProvider, User

RIGHTS = {rights!r}

class ByToken(IdentityProvider):
    def get_user(self, handler):
        name = handler.request.headers.get("Authorization", "").removeprefix("token ")
        if name not in RIGHTS:
            return None
        handler._token_authenticated = True
        return User(name)

class ByPerson(Authorizer):
    async def is_authorized(self, handler, user, action, resource):
        return resource != "hyperpod" or action in RIGHTS[user.username]

c.ServerApp.identity_provider_class = ByToken
c.ServerApp.authorizer_class = ByPerson
c.ServerApp.jpserver_extensions = {{"hyperpod_jlab": True, "jupyter_scheduler": True}}
c.SchedulerApp.update({scheduler!r})
c.BaseTaskRunner.poll_interval = 1
"""


class Server:
    """A running server."""

    def __init__(self, port: int, root: Path) -> None:
        self.port = port
        self.root = root

    def ask(
        self, person: str, verb: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status and the JSON of an answer to a person."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        data = None if body is None else json.dumps(body)
        try:
            connection.request(verb, path, data, {"Authorization": f"token {person}", **(headers or {})})
            response = connection.getresponse()
            if response.status == 101:
                return 101, None
            text = response.read().decode()
        finally:
            connection.close()
        try:
            return response.status, json.loads(text) if text else None
        except ValueError:
            return response.status, text

    def get(self, person: str, path: str) -> Any:
        """The answer to a request that has to work."""
        status, answer = self.ask(person, "GET", path)
        assert status == 200, (path, answer)
        return answer

    def runs(self) -> list[str]:
        """The names of all runs."""
        return [run["name"] for run in self.get("ann", "/hyperpod/api/v1/runs")["runs"]]

    def make(self, person: str, kind: str, **fields: object) -> tuple[int, Any]:
        """Create a job or a job definition."""
        body = {"input_uri": "nb.ipynb", "runtime_environment_name": LOCAL, **fields}
        return self.ask(person, "POST", f"/scheduler/{kind}", {"output_formats": ["ipynb"], **body})

    def made(self, person: str, kind: str, **fields: object) -> str:
        """The id of one that has to be created."""
        status, answer = self.make(person, kind, **fields)
        assert status == 200, answer
        return str(next(iter(answer.values())))

    def own_environment(self) -> str:
        """An environment of jupyter-scheduler's own."""
        return str(self.get("dan", "/scheduler/runtime_environments")[0]["name"])


def until(ask: Any) -> Any:
    """Wait until it answers with something."""
    deadline = time.monotonic() + DEADLINE
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"never so in {DEADLINE} s"
        time.sleep(0.2)
    return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server, with a local cluster a notebook that waits, and an empty one."""
    home = tmp_path_factory.mktemp("home")
    root = home / "root"
    root.mkdir()
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell("import time\ntime.sleep(600)")]
    nbformat.write(notebook, root / "nb.ipynb")
    notebook.cells = []
    nbformat.write(notebook, root / "empty.ipynb")
    (home / "config.toml").write_text("[clusters.local]\nslots = 8\n")
    installed = Path(__file__).parents[2] / "jupyter-config/scheduler"
    scheduler = json.loads((installed / "jupyter_jupyter_scheduler_config.json").read_text())
    (home / "server.py").write_text(CONFIG.format(rights=RIGHTS, scheduler=scheduler["SchedulerApp"]))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    jupyter = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("AWS_")},
        **{name: str(home / name.lower()) for name in (*names, *jupyter)},
        "HOME": str(home),
        "HYPERPOD_CONFIG": str(home / "config.toml"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    words = ["--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command = [sys.executable, "-m", "jupyter_server", f"--config={home}/server.py", *words]
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={root}"],
            env=environment,
            cwd=root,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    made = Server(port, root)

    def answers() -> bool:
        assert process.poll() is None, (home / "server.log").read_text()
        try:
            return made.ask("ann", "GET", "/hyperpod/api/v1/version")[0] == 200
        except OSError:
            return False

    try:
        until(answers)
        yield made
        for run in made.get("ann", "/hyperpod/api/v1/runs")["runs"]:
            made.ask("ann", "POST", f"/hyperpod/api/v1/runs/{run['run_id']}/cancel", {})
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # and jobs that are just being submitted
        process.wait()


def is_denied(answer: tuple[int, Any]) -> bool:
    """Whether an answer is the error of a missing permission, in our shape."""
    status, error = answer
    return status == 403 and error["code"] == "denied" and error.keys() == {"code", "message", "hint", "detail"}


def send(server: Server, person: str, route: Any) -> tuple[int, Any]:
    path = re.sub(r"\{[^}]+\}", "some-run", route.path)
    body: object = {} if route.verb == "post" else None
    return server.ask(person, route.verb.upper(), f"/hyperpod/api/v1/{path}", body)


def test_every_route_is_one_of_the_two_kinds() -> None:
    assert {(route.verb, route.action) for route in ROUTES} == {("get", "read"), ("post", "execute")}
    assert len(READS) > 60
    assert len(ACTS) > 20


def test_who_may_only_read_reads_everything_and_changes_nothing(server: Server) -> None:
    assert [route.path for route in ACTS if not is_denied(send(server, "rita", route))] == []
    assert [route.path for route in READS if send(server, "rita", route)[0] in {403, 500}] == []


def test_who_may_only_execute_reads_nothing(server: Server) -> None:
    assert [route.path for route in READS if not is_denied(send(server, "xena", route))] == []
    assert [route.path for route in ACTS if send(server, "xena", route)[0] in {403, 500}] == []


def test_who_may_do_nothing_gets_nothing(server: Server) -> None:
    assert [route.path for route in ROUTES if not is_denied(send(server, "dan", route))] == []


def test_the_log_socket_opens_for_those_who_may_read(server: Server) -> None:
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }
    statuses = {
        person: server.ask(person, "GET", "/hyperpod/api/v1/logs", headers=upgrade)[0]
        for person in (*RIGHTS, "a stranger")
    }
    assert statuses == {"ann": 101, "rita": 101, "xena": 403, "dan": 403, "a stranger": 403}


def test_only_those_who_may_execute_are_offered_our_clusters(server: Server) -> None:
    offered = {
        person: [one["name"] for one in server.get(person, "/scheduler/runtime_environments")] for person in RIGHTS
    }
    has_ours = {person: LOCAL in names for person, names in offered.items()}
    assert has_ours == {"ann": True, "rita": False, "xena": True, "dan": False}
    assert all(names and names[0] != LOCAL for names in offered.values())


def test_jobs_on_our_clusters_need_execute(server: Server) -> None:
    job = server.made("ann", "jobs", name="anns job")
    until(lambda: "anns job" in server.runs())
    plan = server.made("ann", "job_definitions", name="anns plan")
    server.ask("ann", "PATCH", f"/scheduler/job_definitions/{plan}", {"active": False})
    own = server.made("dan", "job_definitions", name="own", runtime_environment_name=server.own_environment())
    mixed = server.made("ann", "job_definitions", name="mixed", schedule="0 0 1 1 *")
    part = server.made("ann", "jobs", name="its job", job_definition_id=mixed)
    to_own = {"runtime_environment_name": server.own_environment(), "schedule": "0 0 2 1 *"}
    assert server.ask("ann", "PATCH", f"/scheduler/job_definitions/{mixed}", to_own)[0] == 204
    jobs = server.get("ann", "/scheduler/jobs")["total_count"]
    plans = server.get("ann", "/scheduler/job_definitions")

    a_job = {"input_uri": "nb.ipynb", "runtime_environment_name": LOCAL, "name": "a try"}
    tries = [
        ("POST", "jobs", a_job),
        ("POST", "jobs", {**a_job, "job_definition_id": own}),
        ("POST", "jobs", {**a_job, "runtime_environment_name": "HyperPod: nowhere"}),
        ("PATCH", f"jobs/{job}", {"status": "STOPPED"}),
        ("PATCH", f"jobs/{job}", {"name": "renamed"}),
        ("DELETE", f"jobs/{job}", None),
        ("DELETE", f"batch/jobs?{urlencode({'job_id': [job, part]}, doseq=True)}", None),
        ("POST", "job_definitions", {**a_job, "schedule": "* * * * *"}),
        ("POST", f"job_definitions/{plan}/jobs", {}),
        ("POST", f"job_definitions/{plan}/jobs", {"parameters": {"--nodes": "2"}}),
        ("PATCH", f"job_definitions/{plan}", {"active": True}),
        ("PATCH", f"job_definitions/{plan}", {"schedule": "* * * * *"}),
        ("PATCH", f"job_definitions/{plan}", {"input_uri": "nb.ipynb"}),
        # Away from our clusters, or to one of them.
        ("PATCH", f"job_definitions/{plan}", to_own),
        ("PATCH", f"job_definitions/{own}", {**to_own, "runtime_environment_name": LOCAL}),
        ("DELETE", f"job_definitions/{plan}", None),
        ("DELETE", f"job_definitions/{mixed}", None),
    ]
    for person in ("rita", "dan"):
        for verb, path, body in tries:
            answer = server.ask(person, verb, f"/scheduler/{path}", body)
            assert is_denied(answer), (person, verb, path, answer)
    assert "a try" not in server.runs()
    assert server.get("ann", "/scheduler/jobs")["total_count"] == jobs
    assert server.get("ann", "/scheduler/job_definitions") == plans
    assert server.get("ann", f"/scheduler/jobs/{job}")["status"] in {"QUEUED", "IN_PROGRESS"}
    # What is not on our clusters asks for nothing, and who may execute may end it all.
    assert server.ask("dan", "DELETE", f"/scheduler/job_definitions/{own}")[0] == 204
    for path in (f"jobs/{job}", f"job_definitions/{plan}", f"job_definitions/{mixed}"):
        assert server.ask("xena", "DELETE", f"/scheduler/{path}")[0] == 204


def test_jobs_on_our_clusters_are_seen_by_those_who_may_read(server: Server) -> None:
    ours = server.made("ann", "jobs", name="ours")
    plan = server.made("ann", "job_definitions", name="our plan")
    elsewhere = server.own_environment()
    own = [
        server.made("dan", "jobs", name=f"own {i}", input_uri="empty.ipynb", runtime_environment_name=elsewhere)
        for i in range(2)
    ]
    own_plan = server.made("dan", "job_definitions", name="own plan", runtime_environment_name=elsewhere)
    for person in ("ann", "rita"):
        assert server.get(person, f"/scheduler/jobs/{ours}")["name"] == "ours"
        assert server.get(person, f"/scheduler/job_definitions/{plan}")["name"] == "our plan"
        assert server.get(person, "/scheduler/jobs")["total_count"] == 3
        assert len(server.get(person, "/scheduler/job_definitions")["job_definitions"]) == 2
    for person in ("dan", "xena"):
        for path in (f"jobs/{ours}", f"jobs/{ours}/download_files", f"job_definitions/{plan}"):
            assert is_denied(server.ask(person, "GET", f"/scheduler/{path}")), path
        answer = server.get(person, "/scheduler/jobs")
        assert {one["job_id"] for one in answer["jobs"]} == set(own)
        assert answer["total_count"] == 2
        first = server.get(person, "/scheduler/jobs?max_items=1")
        second = server.get(person, f"/scheduler/jobs?max_items=1&next_token={first['next_token']}")
        assert {page["jobs"][0]["job_id"] for page in (first, second)} == set(own)
        assert second.get("next_token") is None
        plans = server.get(person, "/scheduler/job_definitions")
        assert [one["job_definition_id"] for one in plans["job_definitions"]] == [own_plan]
        statuses = [status.value for status in Status]
        until(
            lambda person=person, statuses=statuses: (
                sum(server.get(person, f"/scheduler/jobs/count?status={status}")["count"] for status in statuses)
                == len(own)
            )
        )
    for job in own:
        assert server.ask("dan", "DELETE", f"/scheduler/jobs/{job}")[0] == 204


def test_a_schedule_runs_with_the_permission_of_who_made_it(server: Server) -> None:
    plan = server.made("ann", "job_definitions", name="each second", schedule="* * * * * *")
    try:
        until(lambda: server.get("ann", f"/scheduler/jobs?job_definition_id={plan}")["jobs"])
    finally:  # or there would be one more each second
        status, _ = server.ask("ann", "PATCH", f"/scheduler/job_definitions/{plan}", {"active": False})
    assert status == 204
    resume = "PATCH", f"/scheduler/job_definitions/{plan}", {"active": True}
    for person in ("rita", "dan"):
        assert is_denied(server.ask(person, *resume))
    assert server.get("ann", f"/scheduler/job_definitions/{plan}")["active"] is False
    assert server.ask("xena", "DELETE", f"/scheduler/job_definitions/{plan}")[0] == 204

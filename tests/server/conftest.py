"""pytest-jupyter's fixtures, for this folder only.

Loaded as a plugin they would take over the event loop and the async tests of the whole suite, so
they are imported here by name, without the plugin's hooks, and run on pytest-asyncio's loop.
"""

import asyncio
import json
import time
from urllib.parse import urlsplit

import pytest
from jupyter_server.auth import Authorizer
from pytest_jupyter.jupyter_server import *  # noqa: F403
from traitlets.config import Config

from hyperpod_jlab.engines.local.attempt import end_processes
from hyperpod_jlab.run.services import Hyperpod
from tests.aws.conftest import no_aws  # noqa: F401 - a fixture

DEADLINE = 60.0

# The hooks came with the star; a conftest that holds them would install them.
del pytest_pyfunc_call, pytest_pycollect_makeitem  # noqa: F821


@pytest.fixture
async def jp_asyncio_loop():
    """The loop that pytest-asyncio runs this test on."""
    return asyncio.get_running_loop()


class RecordingAuthorizer(Authorizer):
    """Writes down what it is asked, and says what it is told to say."""

    asked: list[tuple[str, str]]
    answer = True

    def is_authorized(self, handler, user, action, resource):
        type(self).asked.append((action, resource))
        return type(self).answer


@pytest.fixture
def authorizer():
    """The authorizer of the server under test."""
    RecordingAuthorizer.asked = []
    RecordingAuthorizer.answer = True
    return RecordingAuthorizer


@pytest.fixture(autouse=True)
def without_aws(no_aws):  # noqa: F811
    """No test here asks a real AWS."""


@pytest.fixture
async def cluster(home, monkeypatch):
    """A local cluster of eight slots in folders of the test's own; what is left running is ended."""
    config = home / "config.toml"
    config.write_text("[clusters.local]\nslots = 8\n")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    yield home
    hyperpod = Hyperpod()
    for run in (await hyperpod.runs.list()).runs:
        if not run.status.ended and run.state != "unknown":
            await hyperpod.runs.act(run.run_id, "cancel")
            end_processes(hyperpod.partition.bundle(run.run_id), 2)
    await hyperpod.close()


@pytest.fixture
def jp_server_config(authorizer, cluster):
    """A server that loads this extension and lets nobody in without a token."""
    return Config(
        {
            "ServerApp": {
                # The terminals would come by default, and warn about handlers that are not ours.
                "jpserver_extensions": {"hyperpod_jlab": True, "jupyter_server_terminals": False},
                "allow_unauthenticated_access": False,
                "authorizer_class": authorizer,
                "reraise_server_extension_failures": True,
            }
        }
    )


class Api:
    """The REST API as a client sees it."""

    def __init__(self, fetch):
        self._fetch = fetch

    async def request(self, verb, path, body=None, *, query=None, headers=None):
        """The status and the JSON of an answer."""
        response = await self.raw(verb, path, body, query=query, headers=headers)
        return response.code, json.loads(response.body)

    async def raw(self, verb, path, body=None, *, query=None, headers=None, timeout=60):
        """The response as it came; a path of parts may have slashes in them."""
        if body is not None and not isinstance(body, str | bytes):
            body = json.dumps(body)
        options = {"headers": headers} if headers is not None else {}
        return await self._fetch(
            "hyperpod",
            "api",
            "v1",
            *(path.split("/") if isinstance(path, str) else path),
            method=verb,
            body=body,
            params=query or {},
            raise_error=False,
            request_timeout=timeout,
            **options,
        )

    async def get(self, path, **query):
        """What is there."""
        status, answer = await self.request("GET", path, query=query)
        assert status == 200, answer
        return answer

    async def browser(self):
        """The headers of a browser that has logged in: cookies instead of a token."""
        response = await self.raw("GET", "version")
        page = await self._fetch("login", headers={"Authorization": ""}, raise_error=False)
        cookies = [cookie.split(";")[0] for each in (response, page) for cookie in each.headers.get_list("Set-Cookie")]
        host = urlsplit(response.effective_url).netloc
        return {"Authorization": "", "Cookie": "; ".join(cookies), "Host": host}

    async def submit(self, command="true", **spec):
        """Send a shell command; returns the run."""
        data = {"source": {"kind": "command", "command": command}, "stop_grace": 2, **spec}
        status, answer = await self.request("POST", "runs", {"spec": data})
        assert status == 201, answer
        return answer

    async def until(self, run_id, there):
        """Wait until a run looks as wanted."""
        deadline = time.monotonic() + DEADLINE
        while True:
            run = await self.get(f"runs/{run_id}")
            if there(run):
                return run
            assert time.monotonic() < deadline, f"never so in {DEADLINE} s; last: {run}"
            await asyncio.sleep(0.05)

    async def ended(self, run_id):
        """Wait for a run's end."""
        return await self.until(run_id, lambda run: run["state"] in {"succeeded", "failed", "cancelled"})


@pytest.fixture
def api(jp_fetch):
    """The REST API."""
    return Api(jp_fetch)


@pytest.fixture
def process(jp_serverapp):
    """What all requests to the server share."""
    (app,) = jp_serverapp.extension_manager.extension_apps["hyperpod_jlab"]
    return app.process


class LogPage:
    """A page that follows logs over one socket, and keeps what it is told."""

    def __init__(self, socket):
        self.socket = socket

    async def send(self, **message):
        """Send a message."""
        await self.socket.write_message(json.dumps(message))

    async def next(self, timeout=20):
        """The next message; None when the socket is closed."""
        async with asyncio.timeout(timeout):
            message = await self.socket.read_message()
        return None if message is None else json.loads(message)

    async def read(self, number=1, *, until="end", acknowledge=True, frames=None):
        """All frames of one subscription up to its end, or so many frames."""
        found = []
        while True:
            message = await self.next()
            assert message is not None, "the socket was closed"
            if message.get("id") != number:
                continue
            if message["type"] == "frame":
                found.append(message)
                if acknowledge:
                    await self.send(type="ack", id=number, seq=message["seq"])
                if frames is not None and len(found) == frames:
                    return found
            if message["type"] == until:
                return found
            assert message["type"] != "error", message


def lines_of(frames):
    """The lines of frames, in order."""
    return [
        line
        for frame in frames
        for block in frame["blocks"]
        if block["lines"] is not None
        for line in block["lines"].split("\n")
    ]


@pytest.fixture
async def log_page(jp_ws_fetch):
    """Opens log sockets."""
    opened = []

    async def open_page(**options):
        page = LogPage(await jp_ws_fetch("hyperpod", "api", "v1", "logs", **options))
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        page.socket.close()

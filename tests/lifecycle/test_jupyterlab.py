"""The extension in the JupyterLab of a space, whichever of the two comes first: the server, held by supervisord as in SageMaker's images, or the package."""

from __future__ import annotations

import json
import time

import pytest

from tests.lifecycle.test_in_space import message, returned, steps

pytestmark = pytest.mark.timeout(600)
"""They install and start things, on machines that have other work too."""

BASE = "/jupyterlab/default"
_CONF = """\
[supervisord]
nodaemon=true
pidfile=/run/supervisord/supervisord.pid
logfile=/run/supervisord/supervisord.log
[unix_http_server]
file=/run/supervisord/supervisor.sock
chmod=0700
[supervisorctl]
serverurl=unix:///run/supervisord/supervisor.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[program:jupyterlabserver]
command=/usr/local/bin/start-jupyter-server
stopasgroup=true
"""
_START = f"""\
#!/bin/bash
echo start >>/run/supervisord/starts
exec jupyter lab --ip 127.0.0.1 --port 8888 --no-browser --ServerApp.base_url={BASE} --IdentityProvider.token='' \\
  --ServerApp.allow_origin='*' --ServerApp.disable_check_xsrf=True
"""
_RESTART = "#!/bin/bash\nsupervisorctl -c /run/supervisord/supervisord.conf restart jupyterlabserver\n"
_ASK = """\
import sys, urllib.request, urllib.error
try:
    answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1], method=sys.argv[2]), timeout=10)
    print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print(0)
"""


class Server:
    """JupyterLab in a space."""

    def __init__(self, space):
        self.space = space

    def start(self):
        self.space.run("install", "-d", "-o", "1000", "-g", "100", "/run/supervisord", root=True)
        self.space.run("tee", "/run/supervisord/supervisord.conf", input=_CONF)
        command = "supervisord -c /run/supervisord/supervisord.conf"
        self.space.run("bash", "-c", f"setsid {command} </dev/null >/dev/null 2>&1 &")

    def ask(self, path, method="GET"):
        words = ("python3", "-c", _ASK, f"http://127.0.0.1:8888{BASE}{path}", method)
        code, _, body = self.space.run(*words).stdout.partition(" ")
        return int(code), body

    def until(self, path, code, timeout=60):
        end = time.monotonic() + timeout
        while (found := self.ask(path))[0] != code:
            assert time.monotonic() < end, found
            time.sleep(0.2)
        return found[1]

    @property
    def starts(self):
        return self.space.inside("/run/supervisord/starts").read_text().count("start")

    def has_the_extension(self):
        """Both sides: REST answers, and the page loads the front end."""
        clusters = json.loads(self.until("/hyperpod/api/v1/clusters", 200))
        assert {one["name"] for one in clusters["clusters"]} >= {"ml-cluster"}
        assert '"name": "hyperpod_jlab"' in self.until("/lab", 200)


@pytest.fixture
def server(space):
    made = space(network=False)
    made.program("start-jupyter-server", _START)
    made.program("restart-jupyter-server", _RESTART)
    with made as started:
        yield Server(started)


def test_server_that_starts_after_the_package_has_it_at_once(server, script):
    returned(*server.space.lifecycle(script("jupyterlab")))
    assert message(server.space.ended(), "package").endswith(" is installed")
    server.start()
    server.has_the_extension()
    assert server.starts == 1


@pytest.mark.full
def test_server_that_was_there_before_is_started_anew_once(server, script):
    server.start()
    server.until("/api", 200)
    assert server.ask("/hyperpod/api/v1/clusters")[0] == 404
    returned(*server.space.lifecycle(script("jupyterlab")))
    status = server.space.ended()
    assert steps(status)["package"] == "done"
    assert message(status, "package").endswith("the server was started anew")
    server.has_the_extension()
    assert server.starts == 2

    returned(*server.space.lifecycle(script("jupyterlab")))
    server.space.ended()
    assert server.starts == 2


@pytest.mark.full
def test_server_in_which_somebody_works_is_left_alone(server, script):
    server.start()
    server.until("/api", 200)
    assert server.ask("/api/kernels", "POST")[0] == 201
    server.space.lifecycle(script("jupyterlab"))
    status = server.space.ended()
    assert "run restart-jupyter-server when it suits you" in message(status, "package")
    assert server.starts == 1
    assert len(json.loads(server.until("/api/kernels", 200))) == 1

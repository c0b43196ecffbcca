"""One Jupyter server for all tests of a module, for modules whose tests change nothing on it.

A module imports these fixtures in place of those of the same names in conftest.py, and runs its tests on the server's loop:
``pytestmark = pytest.mark.asyncio(loop_scope="module")``.
"""

import urllib.parse

import jupyter_core.paths
import pytest
import pytest_asyncio
import tornado.httpserver
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado.escape import url_escape
from tornado.httpclient import AsyncHTTPClient
from tornado.testing import bind_unused_port
from traitlets.config import Config

from tests.server.conftest import Api, RecordingAuthorizer

BASE_URL = "/a%40b/"
TOKEN = "of-the-tests"


@pytest.fixture(autouse=True)
def jp_server_cleanup():
    """The server stays until the module's end."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_server(tmp_path_factory):
    """The server and its port: it has this extension, a local cluster without runs, and lets nobody in without a token."""
    home = tmp_path_factory.mktemp("server")
    (home / "config.toml").write_text("[clusters.local]\nslots = 8\n")
    names = ("DATA", "STATE", "CACHE", "CONFIG")
    variables = {f"XDG_{name}_HOME": str(home / name.lower()) for name in names}
    variables |= {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    variables |= {"HYPERPOD_CONFIG": str(home / "config.toml"), "HOME": str(home)}
    settings = {
        "ServerApp": {
            "jpserver_extensions": {"hyperpod_jlab": True, "jupyter_server_terminals": False},
            "allow_unauthenticated_access": False,
            "authorizer_class": RecordingAuthorizer,
            "reraise_server_extension_failures": True,
        },
        "IdentityProvider": {"token": TOKEN},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        for name in ("ENV_CONFIG_PATH", "SYSTEM_CONFIG_PATH"):
            patch.setattr(jupyter_core.paths, name, [])
        ServerApp.clear_instance()
        app = ServerApp.instance(
            base_url=BASE_URL, root_dir=str(home), open_browser=False, allow_root=True, config=Config(settings)
        )
        app.init_signal = lambda: None
        app.initialize(argv=[], new_httpserver=False)
        app.start_app()
        socket, port = bind_unused_port()
        http = tornado.httpserver.HTTPServer(app.web_app)
        http.add_socket(socket)
        yield app, port
        http.stop()
        await app._cleanup()
        ServerApp.clear_instance()


@pytest.fixture
def jp_serverapp(module_server):
    """The server itself."""
    return module_server[0]


@pytest.fixture
def jp_fetch(module_server):
    """Sends a request, as pytest-jupyter's fixture of this name does."""
    _, port = module_server
    client = AsyncHTTPClient()

    async def fetch(*parts, headers=None, params=None, **options):
        path = url_path_join(BASE_URL, url_escape(url_path_join(*parts), plus=False))
        query = urllib.parse.urlencode(params or {})
        headers = {"Authorization": f"token {TOKEN}", **(headers or {})}
        url = f"http://127.0.0.1:{port}{path}?{query}"
        return await client.fetch(url, headers=headers, **options)

    return fetch


@pytest.fixture
def api(jp_fetch):
    """The REST API."""
    return Api(jp_fetch)

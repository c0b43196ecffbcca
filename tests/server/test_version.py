"""The version route, and the one shape of errors."""

import json
from importlib.metadata import version

import pytest
import tornado.web
from jupyter_server.utils import url_path_join
from tornado.httpclient import HTTPClientError

from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.server.base import HyperPodHandler


async def fails(fetch, *parts, **options):
    """The status and the JSON body of a request that has to fail."""
    with pytest.raises(HTTPClientError) as caught:
        await fetch(*parts, **options)
    return caught.value.code, json.loads(caught.value.response.body)


async def test_version_answers(jp_fetch):
    response = await jp_fetch("hyperpod", "api", "v1", "version")
    assert json.loads(response.body) == {"version": version("hyperpod_jlab"), "api": 1}


async def test_without_token_is_denied(jp_fetch):
    status, body = await fails(jp_fetch, "hyperpod", "api", "v1", "version", headers={"Authorization": ""})
    assert (status, body["code"]) == (403, "denied")


async def test_authorizer_may_deny(jp_fetch, authorizer):
    authorizer.answer = False
    status, body = await fails(jp_fetch, "hyperpod", "api", "v1", "version")
    assert (status, body["code"]) == (403, "denied")
    assert set(body) == {"code", "message", "hint", "detail"}


@pytest.fixture
def fail_with(jp_serverapp):
    """Add a route that raises what it is given."""

    def add(error):
        class Failing(HyperPodHandler):
            @tornado.web.authenticated
            async def get(self):
                raise error

        base_url = jp_serverapp.web_app.settings["base_url"]
        path = url_path_join(base_url, "hyperpod", "fail")
        jp_serverapp.web_app.add_handlers(".*$", [(path, Failing, {"name": "hyperpod_jlab"})])

    return add


async def test_our_errors_keep_status_and_shape(jp_fetch, fail_with):
    fail_with(NotFoundError("run x is gone", hint="see `hpj runs`", detail={"run_id": "x"}))
    status, body = await fails(jp_fetch, "hyperpod", "fail")
    assert status == 404
    assert body == {
        "code": "not_found",
        "message": "run x is gone",
        "hint": "see `hpj runs`",
        "detail": {"run_id": "x"},
    }


async def test_a_fault_of_ours_tells_no_secrets(jp_fetch, fail_with):
    fail_with(RuntimeError("/secret/path"))
    status, body = await fails(jp_fetch, "hyperpod", "fail")
    assert (status, body["code"]) == (500, "internal")
    assert "/secret/path" not in json.dumps(body)

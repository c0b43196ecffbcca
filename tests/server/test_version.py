"""The version route, and what every route has to keep: a token, an authorizer, one error shape."""

import json
from importlib.metadata import version

import pytest
import tornado.web
from jupyter_server.utils import url_path_join
from tornado.httpclient import HTTPClientError

from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.server.app import ROUTES
from hyperpod_jlab.server.base import API_PREFIX, HyperPodHandler

VERBS = {
    "get": "read",
    "head": "read",
    "post": "write",
    "put": "write",
    "patch": "write",
    "delete": "write",
}


async def fails(fetch, *parts, **options):
    """The status and the JSON body of a request that has to fail."""
    with pytest.raises(HTTPClientError) as caught:
        await fetch(*parts, **options)
    return caught.value.code, json.loads(caught.value.response.body)


async def test_version_answers(jp_fetch):
    response = await jp_fetch("hyperpod", "api", "v1", "version")
    assert json.loads(response.body) == {"version": version("hyperpod_jlab"), "api": 1}


async def test_without_token_is_denied(jp_fetch):
    status, body = await fails(
        jp_fetch, "hyperpod", "api", "v1", "version", headers={"Authorization": ""}
    )
    assert (status, body["code"]) == (403, "denied")


async def test_authorizer_may_deny(jp_fetch, authorizer):
    authorizer.answer = False
    status, body = await fails(jp_fetch, "hyperpod", "api", "v1", "version")
    assert (status, body["code"]) == (403, "denied")
    assert set(body) == {"code", "message", "hint", "detail"}


def verbs_of(handler):
    """The verbs a handler serves, by name."""
    return [verb for verb in VERBS if getattr(handler, verb).__name__ != "_unimplemented_method"]


@pytest.mark.parametrize(
    ("path", "verb"),
    [(path, verb) for path, handler in ROUTES for verb in verbs_of(handler)],
)
async def test_every_route_asks_the_authorizer(jp_fetch, authorizer, path, verb):
    """A deny-all authorizer is asked once, about our resource, and its answer holds."""
    authorizer.answer = False
    body = "{}" if verb in ("post", "put", "patch") else None
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(*path.strip("/").split("/"), method=verb.upper(), body=body)
    assert caught.value.code == 403
    assert [resource for _, resource in authorizer.asked] == ["hyperpod"]
    assert authorizer.asked[0][0] in {VERBS[verb], "execute"}


@pytest.fixture
def fail_with(jp_serverapp):
    """Add a route that raises what it is given."""

    def add(error):
        class Failing(HyperPodHandler):
            @tornado.web.authenticated
            async def get(self):
                raise error

        base_url = jp_serverapp.web_app.settings["base_url"]
        path = url_path_join(base_url, API_PREFIX, "fail")
        jp_serverapp.web_app.add_handlers(".*$", [(path, Failing, {"name": "hyperpod_jlab"})])

    return add


async def test_our_errors_keep_status_and_shape(jp_fetch, fail_with):
    fail_with(NotFoundError("run x is gone", hint="see `hpj runs`", detail={"run_id": "x"}))
    status, body = await fails(jp_fetch, "hyperpod", "api", "v1", "fail")
    assert status == 404
    assert body == {
        "code": "not_found",
        "message": "run x is gone",
        "hint": "see `hpj runs`",
        "detail": {"run_id": "x"},
    }


async def test_a_fault_of_ours_tells_no_secrets(jp_fetch, fail_with):
    fail_with(RuntimeError("/secret/path"))
    status, body = await fails(jp_fetch, "hyperpod", "api", "v1", "fail")
    assert (status, body["code"]) == (500, "internal")
    assert "/secret/path" not in json.dumps(body)

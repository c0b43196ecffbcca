"""What every route has to keep: a user, the authorizer's yes, XSRF, and no fault whatever is sent."""

import json

import pytest

from hyperpod_jlab.server.routes import ROUTES
from tests.server.one_server import api, jp_fetch, jp_server_cleanup, jp_serverapp, module_server

__all__ = ["api", "jp_fetch", "jp_server_cleanup", "jp_serverapp", "module_server"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS = [pytest.param(route, id=f"{route.verb} {route.path}") for route in ROUTES]
RUBBISH = ["\x00", "a" * 300, "..%2f..%2fetc", "%ff", "{}", "é", "x.999999999", "-1", "null"]


def path_of(route, part="some-run"):
    """A path that the route matches."""
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", part)
    return path


def body_of(route, body="{}"):
    return body if route.verb == "post" else None


@pytest.mark.parametrize("route", REQUESTS)
async def test_a_deny_all_authorizer_is_asked_once_and_obeyed(api, authorizer, route):
    authorizer.answer = False
    status, error = await api.request(route.verb.upper(), path_of(route), body_of(route))
    assert (status, error["code"]) == (403, "denied")
    assert authorizer.asked == [(route.action, "hyperpod")]


@pytest.mark.parametrize("route", REQUESTS)
async def test_without_a_token_nobody_comes_in(api, authorizer, route):
    answer = await api.request(route.verb.upper(), path_of(route), body_of(route), headers={"Authorization": ""})
    assert (answer[0], answer[1]["code"]) == (403, "denied")
    assert authorizer.asked == []


@pytest.mark.parametrize("route", [p for p in REQUESTS if p.values[0].verb == "post"])
async def test_a_browser_needs_the_xsrf_cookie(api, route):
    headers = await api.browser()
    status, error = await api.request("POST", path_of(route), "{}", headers=headers)
    assert status == 403
    assert "_xsrf" in error["message"]
    cookies = dict(cookie.split("=", 1) for cookie in headers["Cookie"].split("; "))
    headers["X-XSRFToken"] = cookies["_xsrf"]
    status, _ = await api.request("POST", path_of(route), "{}", headers=headers)
    assert status in {200, 400, 404}


@pytest.mark.parametrize("route", REQUESTS)
async def test_rubbish_is_no_fault(api, route):
    """Whatever stands in the path, the query or the body: an answer in the one shape."""
    for rubbish in RUBBISH:
        quoted = rubbish.replace("\x00", "%00").replace("é", "%C3%A9")
        tries = [
            (path_of(route, quoted), {}, body_of(route)),
            (path_of(route), {"limit": rubbish, "cursor": rubbish}, body_of(route)),
            (path_of(route), {rubbish: "1"}, body_of(route)),
            (path_of(route), {}, body_of(route, rubbish)),
        ]
        for path, query, body in tries if route.parameters else tries[1:]:
            response = await api.raw(route.verb.upper(), path, body, query=query)
            assert response.code < 500, (path, query, body, response.body)
            if response.code >= 400:
                assert set(json.loads(response.body)) >= {"message"}


@pytest.mark.parametrize("route", REQUESTS)
async def test_other_verbs_are_told_as_such(api, route):
    served = {other.verb for other in ROUTES if other.path == route.path}
    for verb in {"get", "post"} - served | {"put", "delete"}:
        body = "{}" if verb in {"post", "put"} else None
        status, error = await api.request(verb.upper(), path_of(route), body)
        assert (status, error["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("path", ["", "nope", "clusters/local/x", "runs/some-run/nope/further"])
@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE"])
async def test_a_path_that_means_nothing_is_told_in_the_one_shape(api, verb, path):
    status, error = await api.request(verb, path, "{}" if verb == "POST" else None)
    assert (status, error["code"]) == (404, "no_such_path")
    assert error.keys() == {"code", "message", "hint", "detail"}

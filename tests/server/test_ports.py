"""Ports of runs: who may ask for them, and what is answered where a cluster has none to give."""

import pytest


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "DELETE", "PATCH"])
async def test_a_port_asks_the_authorizer_for_execute(api, authorizer, verb):
    run = await api.submit("sleep 60")
    authorizer.asked = []
    authorizer.answer = False
    body = "x" if verb not in {"GET", "DELETE"} else None
    response = await api.raw(verb, f"runs/{run['run_id']}/ports/80/", body)
    assert response.code == 403
    assert set(authorizer.asked) == {("execute", "hyperpod")}


async def test_nobody_without_a_token_reaches_a_port(api):
    response = await api.raw("POST", "runs/x/ports/80/", "x", headers={"Authorization": ""})
    assert response.code == 403


async def test_the_local_cluster_says_that_it_has_no_ports(api):
    run = await api.submit("sleep 60")
    run_id = run["run_id"]
    await api.until(run_id, lambda run: run["state"] == "running")
    access = await api.get(f"runs/{run_id}/access")
    assert (access["ports"], access["shells"]) == (False, [])
    assert "cannot be reached" in access["reason"]
    status, error = await api.request("GET", f"runs/{run_id}/ports/80/index")
    assert (status, error["code"]) == (422, "unsupported")
    status, error = await api.request("GET", f"runs/{run_id}/ports/eighty/index")
    assert (status, error["code"]) == (400, "invalid_input")
    status, error = await api.request("GET", "runs/20260101-000000-aaaaaa/ports/80/index")
    assert (status, error["code"]) == (404, "no_such_run")


async def test_other_sites_do_not_use_a_port_in_a_users_name(api):
    browser = await api.browser()
    foreign = {**browser, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    for verb, body in (("GET", None), ("POST", "x")):
        response = await api.raw(verb, "runs/x/ports/80/", body, headers=foreign)
        assert response.code == 403
        evil = {**browser, "Origin": "http://evil.example"}
        response = await api.raw(verb, "runs/x/ports/80/", body, headers=evil)
        assert response.code == 403


async def test_a_port_without_a_slash_leads_to_the_one_with_it(api, jp_fetch, jp_serverapp):
    run = await api.submit()
    words = ("hyperpod", "api", "v1", "runs", run["run_id"], "ports", "80")
    response = await jp_fetch(*words, params={"a": "1"}, raise_error=False, follow_redirects=False)
    assert response.code == 302
    base = jp_serverapp.web_app.settings["base_url"]
    assert response.headers["Location"] == f"{base}{'/'.join(words)}/?a=1"

"""Adopting jobs by REST, on the local cluster, which has none from elsewhere."""

import pytest

PATH = "clusters/local/jobs/12/adopt"


async def test_a_cluster_without_jobs_from_elsewhere_says_so(api):
    status, error = await api.request("POST", PATH, {})
    assert (status, error["code"]) == (422, "unsupported")
    assert "cannot be adopted" in error["message"]


async def test_a_cluster_that_is_not_there(api):
    status, error = await api.request("POST", "clusters/nowhere/jobs/12/adopt", {})
    assert (status, error["code"]) == (404, "unknown_cluster")


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "\n"}, {"name": 1}, {"nam": "x"}])
async def test_a_wrong_body_names_the_field(api, body):
    status, error = await api.request("POST", PATH, body)
    assert (status, error["detail"]["field"]) == (400, next(iter(body)))

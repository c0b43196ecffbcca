"""Objects that a job owns and that are there already: those of another run or user stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hyperpod_jlab.core.errors import ConflictError, RefusedError
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.create import replace_foreign


class OneObject(KubeClient):
    """An API server that has one object where another is to be made."""

    def __init__(self, there: dict[str, Any]) -> None:
        super().__init__(ApiAccess("http://nowhere", False, dict))
        self.there: Mapping[str, Any] | None = there

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        assert path == "/services/part"
        assert self.there is not None
        return dict(self.there)

    async def delete(self, path: str, body: Mapping[str, Any] | None = None, **_: str) -> dict[str, Any]:
        assert path == "/services/part"
        self.there = None
        return {}

    async def post(self, path: str, body: Mapping[str, Any], **_: str) -> dict[str, Any]:
        assert path == "/services"
        if self.there is not None:
            raise ConflictError("it is there")
        self.there = body
        return dict(body)


@pytest.mark.parametrize(
    ("label", "owner", "left"), [("mine", "now", "old"), ("mine", "before", "new"), ("others", "before", None)]
)
async def test_only_what_an_earlier_job_of_the_run_left_is_replaced(label: str, owner: str, left: str | None) -> None:
    owned = {"labels": {RUN_LABEL: label}, "ownerReferences": [{"uid": owner}]}
    server = OneObject({"metadata": {"name": "part", **owned}, "data": "old"})
    wanted = {"name": "part", "labels": {RUN_LABEL: "mine"}}
    made = {"kind": "Service", "metadata": wanted, "data": "new"}
    job = {"metadata": {"namespace": "team", "uid": "now"}}
    replacing = replace_foreign(server, "/services", made, job)
    if left is None:
        with pytest.raises(RefusedError, match="the namespace team already has a Service"):
            await replacing
        left = "old"
    else:
        await replacing
    assert server.there is not None
    assert server.there["data"] == left

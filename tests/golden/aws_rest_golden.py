"""How an answer of the REST API becomes a document of a golden file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.aws.endpoint import Endpoint
from tests.golden.aws_golden import ids_of
from tests.golden.frozen import Golden
from tests.server.conftest import Api

TIMEOUT = 60


@dataclass(frozen=True)
class FrozenRest:
    """Sends requests and compares the answers with golden files."""

    api: Api
    golden: Golden
    endpoint: Endpoint

    async def get(self, name: str, path: str, /, **more: Any) -> Any:
        """Compare an answer once it is complete."""
        return await self._compare(name, "GET", path, None, **more)

    async def post(self, name: str, path: str, body: Any = "", /, **more: Any) -> Any:
        """Compare what is answered."""
        return await self._compare(name, "POST", path, body, **more)

    async def _compare(
        self,
        name: str,
        verb: str,
        path: str,
        body: Any,
        /,
        *,
        varying: Iterable[str] = (),
        also: Mapping[str, str] | None = None,
        change: Callable[[Any], Any] = lambda told: told,
        **query: str,
    ) -> Any:
        fixed = ids_of(self.endpoint.account)
        status, answer = await self._answer(verb, path, body, query)
        document = {
            "request": {"verb": verb, "path": path, "query": query, "body": body},
            "status": status,
            "answer": change(answer),
        }
        self.golden.check(f"aws-rest/{name}", document, varying=varying, also=also, fixed=fixed)
        return answer

    async def _answer(self, verb: str, path: str, body: Any, query: dict[str, str]) -> tuple[int, Any]:
        async with asyncio.timeout(TIMEOUT):
            while True:
                status, answer = await self.api.request(verb, path, body, query=query)
                if not (status == 200 and isinstance(answer, dict) and answer.get("loading")):
                    return status, answer
                query = {key: one for key, one in query.items() if key != "refresh"}
                await asyncio.sleep(0.05)


@pytest.fixture
def rest(api: Api, golden: Golden, endpoint: Endpoint, no_aws: pytest.MonkeyPatch) -> FrozenRest:
    """Compares what is answered with golden files; ``PATH`` is empty, so no Slurm client is found."""
    no_aws.setenv("PATH", os.devnull)
    return FrozenRest(api, golden, endpoint)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.service import LogService
from tests.logs.client import Client
from tests.logs.writing import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.fixture
async def logs(run: RunFolder) -> AsyncIterator[LogService]:
    """The service without inotify: what works so works on Lustre and NFS."""
    service = LogService(run, Hub(notifications=False))
    yield service
    await service.close()


@pytest.fixture
async def follow(run: RunFolder, logs: LogService) -> AsyncIterator[Callable[..., Client]]:
    run.ended = False
    clients: list[Client] = []

    def start(**wanted: object) -> Client:
        clients.append(Client(logs, **wanted))
        return clients[-1]

    yield start
    for client in clients:
        client.task.cancel()
    await asyncio.gather(*(client.task for client in clients), return_exceptions=True)

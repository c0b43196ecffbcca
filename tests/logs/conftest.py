from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperpod_jlab.logs.hub import Hub
from hyperpod_jlab.services.logs import LogService
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

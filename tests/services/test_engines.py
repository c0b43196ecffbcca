"""The engines of a process: made when first needed, and all closed at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.storage.partition import Partition


async def test_an_engine_that_fails_to_close_leaves_no_other_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = {name: {"orchestrator": "kubernetes", "image": "i"} for name in ("a", "b", "c")}
    engines = Engines(parse(Settings, {"clusters": clusters}), Partition(tmp_path))
    closed = []
    for name in clusters:

        async def close(name: str = name) -> None:
            closed.append(name)
            if name == "a":
                raise OSError("the connection is broken")

        monkeypatch.setattr(engines.get(name), "close", close)
    with pytest.raises(OSError, match="the connection is broken"):
        await engines.close()
    assert closed == ["a", "b", "c"]

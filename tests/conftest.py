"""What all tests share: folders of their own, so that none touches the user's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own data, state, cache and configuration folders, and no configuration from elsewhere."""
    for name in ("DATA", "STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("HYPERPOD_CONFIG", raising=False)
    return tmp_path

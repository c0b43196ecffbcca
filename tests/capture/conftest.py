from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.bundles import Laboratory


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    base = tmp_path / "base"
    base.mkdir()
    return Laboratory(base, tmp_path / "partition")

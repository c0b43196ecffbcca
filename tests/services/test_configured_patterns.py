"""Metric patterns of the configuration, in the runs that are submitted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.run.services import Hyperpod
from tests.services.conftest import Place


@pytest.fixture
def config(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration file with two patterns."""
    path = home / "patterns.toml"
    path.write_text("[metric_patterns]\npsnr = 'PSNR ([0-9.]+)'\nssim = 'SSIM ([0-9.]+)'\n")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(path))


@pytest.fixture
async def with_patterns(config: None, home: Path) -> AsyncIterator[Place]:
    """The services with that configuration."""
    made = Place(home)
    yield made
    await made.hyperpod.close()


async def test_each_run_has_them_and_the_spec_wins(with_patterns: Place) -> None:
    hyperpod = with_patterns.hyperpod
    plain = await hyperpod.submitter.preview(with_patterns.request())
    assert plain.plan["metric_patterns"] == {"psnr": "PSNR ([0-9.]+)", "ssim": "SSIM ([0-9.]+)"}
    own = {"psnr": "psnr is ([0-9.]+)", "fid": "FID ([0-9.]+)"}
    preview = await hyperpod.submitter.preview(with_patterns.request(metric_patterns=own))
    expected = {"ssim": "SSIM ([0-9.]+)", **own}
    assert preview.plan["metric_patterns"] == preview.spec.metric_patterns == expected


async def test_too_many_together_are_refused(with_patterns: Place) -> None:
    own = {f"m{number}": "([0-9]+)" for number in range(49)}
    with pytest.raises(InvalidInputError, match="at most 50 patterns"):
        await with_patterns.hyperpod.submitter.preview(with_patterns.request(metric_patterns=own))


async def test_the_same_submit_after_a_change_of_the_configuration_is_the_same_run(with_patterns: Place) -> None:
    hyperpod = with_patterns.hyperpod
    first = await hyperpod.submitter.submit(with_patterns.request(run_id="once"))
    plan = with_patterns.partition.bundle(first) / "launch.json"
    assert set(json.loads(plan.read_text())["metric_patterns"]) == {"psnr", "ssim"}
    changed = {"metric_patterns": {"fid": "FID ([0-9.]+)"}}
    later = Hyperpod(hyperpod.settings.model_copy(update=changed))
    try:
        assert await later.submitter.submit(with_patterns.request(run_id="once")) == first
    finally:
        await later.close()

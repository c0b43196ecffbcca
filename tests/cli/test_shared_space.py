"""Runs of a shared space of Studio say that they act as it."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def space(hpj, home, monkeypatch):
    metadata = home.root / "metadata.json"
    metadata.write_text(json.dumps({"DomainId": "d-example", "SpaceName": "vision"}))
    monkeypatch.setenv("RESOURCE_METADATA_FILE", str(metadata))
    monkeypatch.setenv("SAGEMAKER_SPACE_TYPE_LOWERCASE", "shared")


def test_it_is_said_before_and_after(hpj, space):
    findings = hpj("submit", "-c", "true", "--dry-run", "--json").ok().json["findings"]
    (said,) = [one for one in findings if one["code"] == "shared_space"]
    assert said["level"] == "info"
    assert said["message"].startswith("the run acts as the shared space vision: all its users can see")
    run = hpj("submit", "-c", "true", "--wait", "--json").ok().json
    assert run["space"] == "vision"
    assert hpj("runs", "--json").ok().json["runs"][0]["space"] == "vision"
    assert "for the shared space vision" in hpj("show", run["run_id"]).ok().out


@pytest.mark.parametrize("kind", ["private", None])
def test_elsewhere_nothing_is_said(hpj, space, monkeypatch, kind):
    if kind is None:
        monkeypatch.delenv("SAGEMAKER_SPACE_TYPE_LOWERCASE")
    else:
        monkeypatch.setenv("SAGEMAKER_SPACE_TYPE_LOWERCASE", kind)
    findings = hpj("submit", "-c", "true", "--dry-run", "--json").ok().json["findings"]
    assert not [one for one in findings if one["code"] == "shared_space"]
    run = hpj("submit", "-c", "true", "--wait", "--json").ok().json
    assert run["space"] is None
    assert "shared space" not in hpj("show", run["run_id"]).ok().out

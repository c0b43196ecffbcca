"""The key by which a run's pods know each other: in the job's object, and in no file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.submit.render import add_run_key
from tests.kubernetes.manifest_cases import text

KEY = "HYPERPOD_MEETING_KEY"


def manifest(kind: str, nodes: int) -> dict[str, Any]:
    found = yaml.safe_load(text({"kind": kind, "spec": {"resources": {"nodes": nodes}}}))
    assert isinstance(found, dict)
    return found


def keys(found: Any) -> list[str]:
    """The key's values in an object, wherever they stand."""
    if isinstance(found, dict):
        own = [str(found["value"])] if found.get("name") == KEY else []
        return own + [key for value in found.values() for key in keys(value)]
    return [key for value in found for key in keys(value)] if isinstance(found, list) else []


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_each_job_that_is_sent_has_a_key_of_its_own_and_all_its_pods_have_the_same(kind: str):
    rendered = manifest(kind, 2)
    assert keys(rendered)
    first, second = keys(add_run_key(rendered)), keys(add_run_key(rendered))
    assert len(set(first)) == len(set(second)) == 1
    assert first != second
    assert len(first) == len(keys(rendered))
    assert all(len(key) == 32 and set(key) <= set("0123456789abcdef") for key in first)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_what_is_written_into_the_bundle_has_no_key(kind: str):
    assert set(keys(manifest(kind, 2))) == {"(created at submit)"}
    rendered = manifest(kind, 2)
    add_run_key(rendered)
    assert rendered == manifest(kind, 2)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_single_pod_has_none(kind: str):
    assert keys(manifest(kind, 1)) == []

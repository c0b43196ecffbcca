"""Why a run waits for its next attempt: the queue's word stands beside our own verdict on the last one, by one and the same look."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.repair import with_repair_reason
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.engines.slurm import SCHEDULER
from hyperpod_jlab.engines.slurm.observe import _observe_job, _ObservedRun
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.model.recording import attempt, node, records, word
from tests.slurm.job_fixtures import job

LOOKED = 100.0
VERDICT = word(100.5, "waiting", observer="slurm", attempt=1, verdict="NODE_FAIL")
"""Ours, written down half a second after the look at the queue by which the run waits."""


def said(tmp_path: Path, *observations: Observation) -> tuple[str, str | None, str | None]:
    known = records(attempt(node(start=10.0)), observations=observations)
    asked = _ObservedRun(BundleReader(Partition(tmp_path), "20260101-000000-abcdef"), known, False, 20.0)
    its = _observe_job(asked, job("17", state="PENDING", reason="None"), LOOKED)
    its = with_repair_reason(its, ["n0"], {"n0": "replace"}, SCHEDULER)
    status = derive(replace(known, observations=(*observations, its)), StateContext(101.0))
    return status.state, status.reason_code, status.reason


def test_our_verdict_does_not_hide_why_it_waits(tmp_path: Path) -> None:
    state, code, reason = said(tmp_path, VERDICT)
    assert (state, code) == ("waiting", "recovering")
    assert (reason or "").startswith("HyperPod replaces n0, on which it ran")


def test_an_end_that_was_seen_later_stands(tmp_path: Path) -> None:
    later = word(100.7, "ended", observer="other", verdict="CANCELLED")
    assert said(tmp_path, VERDICT, later)[0] in {"cancelled", "failed"}

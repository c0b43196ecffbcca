"""A run's state as a pure function of its records: every row of the table."""

from __future__ import annotations

import copy

import pytest

from hyperpod_jlab.core.run import STATES
from hyperpod_jlab.core.state import derive
from tests.model.state_table import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_state(case: Case):
    status = derive(case.given, case.moment)
    found = {name: getattr(status, name) for name in case.want}
    assert found == case.want, status
    if case.attempts is not None:
        told = [(one.state, one.reason_code, one.exit_code) for one in status.attempts]
        assert told == list(case.attempts)
    assert case.says in (status.reason or "")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_same_records_same_state_and_nothing_touched(case: Case):
    before = copy.deepcopy(case.given)
    assert derive(case.given, case.moment) == derive(case.given, case.moment)
    assert case.given == before


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_said_hangs_together(case: Case):
    status = derive(case.given, case.moment)
    assert status.state in STATES
    assert [one.number for one in status.attempts] == [one.number for one in case.given.attempts]
    assert status.ended == (status.ended_at is not None)
    if status.state == "succeeded":
        assert status.exit_code == 0
        assert status.reason is None
    if status.state == "failed":
        assert status.reason
        assert status.reason_code
        assert status.exit_code != 0
    if not status.ended:
        assert status.exit_code is None


def test_every_state_and_code_of_the_contract_has_a_case():
    told = {(status.state, status.reason_code) for status in (derive(case.given, case.moment) for case in CASES)}
    assert {state for state, _ in told} == set(STATES)
    assert {
        ("waiting", "held"),
        ("waiting", "suspended"),
        ("waiting", "recovering"),
        ("running", "cancelling"),
        ("failed", "lost"),
        ("failed", "submit_interrupted"),
        ("unknown", "damaged"),
        ("unknown", "unreachable"),
    } <= told


def test_names_of_the_cases_are_their_own():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 45

"""An executor that is killed with SIGKILL at each of its changes: the next one comes to the same end, and `destroy` to the beginning."""

from __future__ import annotations

import itertools

import pytest

from tests.admin.conftest import mounted
from tests.admin.executor_kills import Killer, account_of_others, partitions, seen, words_of

SERIES = [
    # what was applied before, what is killed; how many of its changes are looked at in each run, and when the kill comes
    pytest.param(("shared",), "per-user", 3, "after", id="switch"),
    pytest.param((), "per-user", 5, "after", id="per-user"),
    pytest.param(("per-user",), "nothing", 5, "after", id="destroy"),
    *(
        pytest.param(before, last, 1, when, id=f"{name}-{when}-each", marks=pytest.mark.full)
        for name, before, last in (
            ("shared", (), "shared"),
            ("per-user", (), "per-user"),
            ("switch", ("shared",), "per-user"),
            ("back", ("per-user",), "shared"),
            ("destroy-shared", ("shared",), "nothing"),
            ("destroy", ("per-user",), "nothing"),
        )
        for when in ("before", "after")
    ),
]


@pytest.mark.parametrize(("before", "last", "step", "when"), SERIES)
def test_killed_at_each_change_and_run_again(endpoint, home, hpj, monkeypatch, tmp_path, before, last, step, when):
    killer = Killer(endpoint, home)

    def begin(name):
        """A new account in the state that is interrupted, and what it was before all."""
        disk = mounted(monkeypatch, tmp_path / name)
        endpoint.account = account_of_others()
        endpoint.account.add_caller("AKIATESTBEDEXAMPLE01")
        untouched = seen(endpoint.account, disk)
        for wanted in before:
            hpj(*words_of(wanted, disk)).ok()
        return disk, untouched

    disk, _ = begin("reference")
    hpj(*words_of(last, disk)).ok()
    reference = seen(endpoint.account, disk)
    for number in itertools.count(1, step):
        disk, untouched = begin(f"killed-{number}")
        if not killer.run(words_of(last, disk), number, when):
            break
        if before and last != "nothing":
            assert None not in partitions(endpoint.account).values(), number
        hpj(*words_of(last, disk)).ok()
        assert seen(endpoint.account, disk) == reference, number
        hpj(*words_of("nothing", disk)).ok()
        assert seen(endpoint.account, disk)[:-1] == untouched[:-1], number
    assert number > 8

"""Two admins who apply at the same time, each with a process of their own."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.admin.conftest import DOMAIN
from tests.admin.executor_kills import EFS, WHERE, account_of_others, seen, words_of

SLOW = ("AddTags", "DescribeUserProfile", "UpdateUserProfile", "UpdateDomain", "DescribeDomain")
LATER = [0.0, 0.3, 1.0]


@pytest.fixture
def domain(endpoint):
    """A domain in which each call takes a while."""
    endpoint.account = account_of_others()
    endpoint.account.add_caller("AKIATESTBEDEXAMPLE01")
    for name in SLOW:
        endpoint.faults.slow[f"sagemaker:{name}"] = 0.05
    return endpoint


def both(home, disk, first, second, later):
    """Two applies, the second one so much later (s); their exit codes and what they said."""
    started = []
    for wanted, wait in ((first, later), (second, 0)):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        started.append(home.start(*words_of(wanted, disk), **pipes))
        time.sleep(wait)
    said = [one.communicate(timeout=100)[0].decode() for one in started]
    return [one.returncode for one in started], said


def is_settled(hpj, mode, disk):
    words = ("--partition-mode", mode, "--mounted-at", str(disk))
    done = hpj("admin", "status", *WHERE, *words)
    assert done.code in {0, 1}, done.err
    return done.code == 0


@pytest.mark.parametrize("later", LATER)
def test_opposite_modes_end_in_one_of_the_two(domain, home, hpj, disk, later):
    untouched = seen(domain.account, disk)
    codes, said = both(home, disk, "shared", "per-user", later)
    settled = [mode for mode in ("shared", "per-user") if is_settled(hpj, mode, disk)]
    assert len(settled) == 1, (settled, said)
    # Who did not get his way was told so, unless he had come to his end before the other began.
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or "another apply to this domain is in progress" in text, text
    assert EFS in domain.account.profiles[DOMAIN, "carol"].file_systems
    hpj(*words_of("nothing", disk)).ok()
    assert seen(domain.account, disk)[:-1] == untouched[:-1]


def test_the_same_mode_is_no_quarrel(domain, home, hpj, disk):
    untouched = seen(domain.account, disk)
    codes, said = both(home, disk, "per-user", "per-user", 0.1)
    assert codes == [0, 0], said
    assert is_settled(hpj, "per-user", disk)
    hpj(*words_of("nothing", disk)).ok()
    assert seen(domain.account, disk)[:-1] == untouched[:-1]

"""``hpj admin verify-aws --write`` that is killed or interrupted at any of its steps: what it made is deleted, by itself or later."""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import timedelta

import pytest

from testbed.aws.faults import ConnectionCutError
from tests.admin.verify_account import ROLE, believed, labels, studio

__all__ = ["believed", "labels"]

MAKING = {
    f"sagemaker:{verb}{noun}"
    for verb in ("Create", "Delete")
    for noun in ("StudioLifecycleConfig", "Domain", "UserProfile", "Space")
} | {
    "ec2:RevokeSecurityGroupIngress",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:DeleteSecurityGroup",
    "sagemaker:UpdateUserProfile",
}
WORDS = ("admin", "verify-aws", "--write", "--yes", "--as-role", ROLE)
ONLY = ("--only", "none-takes-script-out", "--only", "create-space-event")


def end_at(endpoint, home, number, number_of_signal):
    """Run it and send a signal when its change of that number is done; its exit code, and how many it had."""
    count = 0
    started: subprocess.Popen[bytes] | None = None

    def interrupt(action, when):
        nonlocal count
        if action not in MAKING or when != "after":
            return
        count += 1
        if count == number:
            assert started is not None
            started.send_signal(number_of_signal)
            if number_of_signal == signal.SIGKILL:
                raise ConnectionCutError

    endpoint.faults.interrupt = interrupt
    try:
        quiet = subprocess.DEVNULL
        started = home.start(*WORDS, *ONLY, stdin=quiet, stdout=quiet, stderr=quiet)
        code = started.wait(60)
    finally:
        endpoint.faults.interrupt = None
    return code, count


MANY = range(1, 20)
"""More changes than there are."""


@pytest.mark.parametrize(
    "numbers",
    [
        # The domain is being made; the profile is changed; the domain is being deleted; a security group is.
        pytest.param((2, 5, 9, 13), id="some"),
        pytest.param(MANY, id="each", marks=[pytest.mark.full, pytest.mark.timeout(600)]),
    ],
)
def test_killed_at_a_change_it_is_deleted_later(believed, endpoint, home, hpj, numbers):
    believed.update_time = timedelta(seconds=0.02)
    before = studio(believed)
    for number in numbers:
        code, count = end_at(endpoint, home, number, signal.SIGKILL)
        if code == 0:
            assert (numbers, count) == (MANY, number - 1)
            break
        assert code == -signal.SIGKILL
        done = hpj("admin", "verify-aws", "--clean-up", "--yes").ok()
        assert done.out == "1 deleted\n", number
        assert studio(believed) == before, number


def test_the_next_run_deletes_what_a_killed_one_has_left(believed, endpoint, home, hpj):
    before = studio(believed)
    end_at(endpoint, home, 3, signal.SIGKILL)
    assert studio(believed) != before
    done = hpj(*WORDS, *ONLY).ok()
    assert "This will be deleted, because an earlier run left it: hyperpod-jlab-verify-" in done.err
    assert studio(believed) == before


def test_ctrl_c_deletes_what_was_made(believed, endpoint, home):
    believed.update_time = timedelta(seconds=0.02)
    before = studio(believed)
    for number in (2, 4):
        code, _ = end_at(endpoint, home, number, signal.SIGINT)
        assert code == 130
        assert studio(believed) == before, number
    left = [
        name for _, _, names in os.walk(home.root / "state" / "hyperpod-jlab") for name in names
    ]
    assert left == []

"""The chain of checks: one by one, each within its time, and none that stands on a failed one."""

from __future__ import annotations

import asyncio
import time

from hyperpod_jlab.core.check import CheckStep, fail, ok, warn
from hyperpod_jlab.core.errors import DeniedError, UnreachableError
from hyperpod_jlab.features.doctor.models import CheckChain


def step(key, look, *needs, **more):
    return CheckStep(key, key, "installation", look, needs=needs, **more)


def saying(told):
    async def look():
        return told

    return look


def raising(error):
    async def look():
        raise error

    return look


async def never():
    await asyncio.Event().wait()


async def walk(*steps, chain=None):
    return {check.key: check async for check in (chain or CheckChain()).run_steps(steps)}


async def test_checks_come_as_they_are_made():
    begun = []
    chain = CheckChain(lambda one: begun.append(one.key))
    steps = [step("a", saying(ok("1"))), step("b", saying(ok("2")))]
    seen = [(check.key, list(begun)) async for check in chain.run_steps(steps)]
    assert seen == [("a", ["a"]), ("b", ["a", "b"])]


async def test_what_needs_a_failed_step_is_not_looked_at_and_names_the_first():
    found = await walk(
        step("a", saying(fail("broken", "mend it"))),
        step("b", saying(ok("well")), "a"),
        step("c", saying(ok("well")), "b"),
        step("d", saying(ok("well"))),
    )
    assert [found[key].level for key in "abcd"] == ["fail", "unknown", "unknown", "ok"]
    assert found["c"].evidence == "not checked: a failed"
    assert found["c"].fix is None


async def test_a_warning_and_a_step_with_nothing_to_say_hold_nobody_up():
    found = await walk(
        step("a", saying(warn("little room"))), step("b", saying(None)), step("c", saying(ok("well")), "a", "b")
    )
    assert [(key, check.level) for key, check in found.items()] == [("a", "warn"), ("c", "ok")]


async def test_a_dead_step_ends_in_time_and_the_others_go_on():
    begin = time.monotonic()
    found = await walk(step("a", never, seconds=0.2), step("b", saying(ok("well"))))
    assert time.monotonic() - begin < 2
    assert found["a"].level == "unknown"
    assert "no answer" in found["a"].evidence
    assert found["b"].level == "ok"


async def test_all_steps_together_are_bounded():
    begin = time.monotonic()
    found = await walk(
        *(step(key, never) for key in "abc"), step("d", saying(ok("well"))), chain=CheckChain(seconds=0.3)
    )
    assert time.monotonic() - begin < 2
    assert {check.level for check in found.values()} == {"unknown"}
    assert "the time limit of all checks (0.3 s)" in found["d"].evidence


async def test_a_right_that_is_missing_is_unknown_and_an_admins():
    denied = DeniedError("you do not have the permission ec2:X", code="missing_right", hint="grant ec2:X", detail={})
    found = await walk(step("a", raising(denied)), step("b", raising(UnreachableError("gone", hint="wait"))))
    assert (found["a"].level, found["a"].fix, found["a"].who) == ("unknown", "grant ec2:X", "admin")
    assert (found["b"].level, found["b"].fix, found["b"].who) == ("fail", "wait", "you")


async def test_a_look_that_breaks_takes_no_other_with_it():
    found = await walk(step("a", raising(ZeroDivisionError("x"))), step("b", saying(ok("well"))))
    assert found["a"].level == "unknown"
    assert "ZeroDivisionError" in found["a"].evidence
    assert found["b"].level == "ok"

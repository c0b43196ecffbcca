"""Whatever moment an application starts at, and whatever moment an apply ends at: nobody is left without a folder, or has somebody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperpod_jlab.admin.fsx.folders import LocalFolderProvisioner
from hyperpod_jlab.admin.fsx.models import NOT_MOUNTED, DesiredState, EntryStep, Folder, mounted_path
from hyperpod_jlab.admin.fsx.planning import plan, stages
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.aws.session import Aws
from testbed.aws.replies import ApiError
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.executor_kills import CHANGING, account_of_others, partitions
from tests.admin.test_planning import PER_USER, SHARED, domain, fsx, profile, step, there

ELSEWHERE = DesiredState("shared", "/all")
ALICE, BOB = profile(), profile("bob")
OURS = domain(fsx("/shared"), mark="/shared")
HERS = profile("alice", fsx("/alice"), mark="/alice")
TAKEN = {"/bob": Folder(4711, 4711, 0o700)}


def failed(status):
    return replace(BOB, status=status)


PLANS = [
    # what, who there is, folders, what is wanted, the target, its state, words of its reason
    ("the default goes after all have theirs", (OURS, ALICE, BOB), {}, PER_USER, OURS, "to do", None),
    ("not while one cannot", (OURS, ALICE, BOB), TAKEN, PER_USER, OURS, "waits", "that mount this: bob"),
    ("nor while nobody looks at folders", (OURS, ALICE), None, PER_USER, OURS, "waits", "alice"),
    ("one whose update failed", (OURS, failed("Update_Failed")), {}, PER_USER, OURS, "waits", "bob"),
    ("one that SageMaker is at work on", (OURS, failed("Updating")), {}, PER_USER, OURS, "to do", None),
    ("one that never came to be", (OURS, failed("Failed")), {}, PER_USER, OURS, "to do", None),
    ("one with a list of others", (OURS, profile("bob", fsx("/x", "fs-2"))), None, PER_USER, OURS, "to do", None),
    ("hers goes after the default is there", (domain(), HERS), {}, SHARED, HERS, "to do", None),
    ("and is there already", (OURS, HERS), {}, SHARED, HERS, "to do", None),
    ("not while it cannot", (replace(domain(), status="Failed"), HERS), {}, SHARED, HERS, "waits", "/shared is not"),
    ("not for somebody else's", (domain(fsx("/x")), HERS), {}, SHARED, HERS, "waits", "/shared is not"),
    ("not where nobody knows the default", (HERS,), {}, SHARED, HERS, "waits", "/shared is not"),
    ("all of it is taken back", (domain(), HERS), {}, DesiredState(None), HERS, "to do", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("holders", "folders", "wanted", "target", "state", "words"),
    [pytest.param(*case[1:], id=case[0]) for case in PLANS],
)
def test_what_waits_for_others(holders, folders, wanted, target, state, words):
    made = plan(there(*holders, folders=folders), wanted)
    found = step(made, target.words)
    assert (found.state, found.after) == (state, NOT_MOUNTED)
    assert found in made.drift
    assert (words or "") in (found.reason or "")
    assert (found.reason is None) == (words is None)


ORDERS = [
    (OURS, profile(), PER_USER, ["profile", "space defaults", "domain"]),
    (domain(), HERS, SHARED, ["domain", "space defaults", "profile"]),
    (OURS, profile(), ELSEWHERE, ["domain", "space defaults", "profile"]),
    (OURS, HERS, DesiredState(None), ["profile", "space defaults", "domain"]),
]


@pytest.mark.parametrize(("of_domain", "of_alice", "wanted", "kinds"), ORDERS)
def test_what_gives_comes_before_what_takes_away(of_domain, of_alice, wanted, kinds):
    of_spaces = replace(of_domain, kind="space defaults")
    made = plan(there(of_domain, of_spaces, of_alice), wanted)
    found = [one.holder.kind for stage in stages(made) for one in stage if isinstance(one, EntryStep)]
    assert found == kinds


def test_a_default_of_somebody_else_is_left_and_named():
    made = plan(there(domain(fsx("/theirs")), HERS), PER_USER)
    (found,) = made.findings
    assert (found.level, found.code) == ("warning", "set_by_somebody_else")
    assert "/theirs" in found.message
    assert "New profiles mount /theirs, the domain's default," in words_of(made)
    taken = plan(there(domain(fsx("/theirs")), HERS), replace(PER_USER, take_over=True))
    assert (taken.findings, step(taken, OURS.words).state) == ((), "to do")


def words_of(made):
    return " ".join(one.text for one in made.statements)


def test_what_profiles_to_come_mount_is_said_as_it_will_be():
    assert "New profiles mount nothing until" in words_of(plan(there(OURS, ALICE), PER_USER))
    kept = plan(there(OURS, ALICE, BOB, folders=TAKEN), PER_USER)
    assert "New profiles mount /shared, the domain's default, until" in words_of(kept)


class Watch:
    """What each profile mounts after each change, beside what it may.

    Args:
        account: Where.
        obstacle: Called with the action before each call.
    """

    def __init__(self, account, obstacle=None):
        self._account, self._obstacle = account, obstacle
        self.seen = [partitions(account)]

    def __call__(self, action, when):
        if when == "after" and action in CHANGING:
            self.seen.append(partitions(self._account))
        elif when == "before" and self._obstacle is not None:
            self._obstacle(action)

    def check(self):
        """That nobody was without a folder or had another one than the first or the last."""
        first, last = self.seen[0], self.seen[-1]
        for number, now in enumerate(self.seen):
            for name, path in now.items():
                assert path is not None, (number, name)
                assert path in {first[name], last[name]}, (number, name, path)


async def apply(wanted, disk):
    reconciler = Reconciler(
        Aws(), StorageRequest(DOMAIN, wanted, file_system=FILE_SYSTEM), provisioner=LocalFolderProvisioner(disk)
    )
    found, made = await reconciler.plan()
    last = {}
    async for result in reconciler.apply(found, made):
        last[result.step.target] = result
    return last


@pytest.fixture
def domain_of_others(endpoint):
    endpoint.account = account_of_others()
    endpoint.account.add_caller("AKIATESTBEDEXAMPLE01")
    return endpoint.account


WAYS = [(SHARED, PER_USER), (PER_USER, SHARED), (SHARED, ELSEWHERE), (PER_USER, ELSEWHERE)]


@pytest.mark.parametrize(("before", "after"), WAYS)
async def test_at_no_moment_is_anybody_without(domain_of_others, endpoint, disk, before, after):
    await apply(before, disk)
    endpoint.faults.interrupt = watch = Watch(domain_of_others)
    results = await apply(after, disk)
    assert all(one.error is None for one in results.values())
    watch.check()
    assert watch.seen[-1] != watch.seen[0]
    wanted = {name: f"/{name}" if after.mode == "per-user" else after.shared_path for name in watch.seen[0]}
    assert watch.seen[-1] == wanted


@pytest.mark.parametrize(
    ("before", "after", "action", "who"),
    [(SHARED, PER_USER, "sagemaker:UpdateUserProfile", "bob"), (PER_USER, SHARED, "sagemaker:UpdateDomain", DOMAIN)],
)
async def test_what_cannot_be_given_keeps_what_is_there(domain_of_others, endpoint, disk, before, after, action, who):
    await apply(before, disk)
    endpoint.faults.interrupt = watch = Watch(domain_of_others)
    endpoint.faults.deny(action, who)
    results = await apply(after, disk)
    watch.check()
    waits = [name for name, one in results.items() if one.step.state == "waits"]
    assert waits == ([f"domain {DOMAIN}"] if who == "bob" else ["profile alice", "profile bob", "profile dave"])
    calls = len(endpoint.calls)
    endpoint.faults.denied.clear()
    # Once it can be, all is brought to its end.
    assert all(one.error is None for one in (await apply(after, disk)).values())
    watch.check()
    assert len(endpoint.calls) > calls
    ends = {f"/{name}" for name in watch.seen[-1]} if who == "bob" else {"/shared"}
    assert set(watch.seen[-1].values()) == ends


async def test_what_has_waited_is_done_in_the_same_apply(domain_of_others, endpoint, disk):
    await apply(SHARED, disk)
    failures = 30  # more than one round's tries of one profile

    def busy(action):
        nonlocal failures
        if action == "sagemaker:UpdateUserProfile" and failures:
            failures -= 1
            raise ApiError("ResourceInUse", "somebody else is at work on it")

    endpoint.faults.interrupt = watch = Watch(domain_of_others, busy)
    results = await apply(PER_USER, disk)
    assert failures == 0
    assert results[f"domain {DOMAIN}"].done
    watch.check()
    assert mounted_path(domain_of_others.domains[DOMAIN].file_systems, FILE_SYSTEM) is None

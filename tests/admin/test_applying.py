"""Reading and applying against the testbed's AWS: there and back, again, with faults, by two at once."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace

import pytest

from hyperpod_jlab.admin.fsx.apply import Executor
from hyperpod_jlab.admin.fsx.aws import MARK, StateQuery, StateReader
from hyperpod_jlab.admin.fsx.models import COMMON_GID, COMMON_UID, DesiredState, Folder
from hyperpod_jlab.admin.fsx.planning import plan
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import NotFoundError, RefusedError
from testbed.aws.replies import ApiError
from testbed.aws.state import Profile, attached, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, OTHER, STUDIO
from tests.aws.conftest import REGION

CHANGING = {
    "AddTags",
    "CreateTags",
    "DeleteTags",
    "ModifyNetworkInterfaceAttribute",
    "UpdateDomain",
    "UpdateSpace",
    "UpdateUserProfile",
}
SHARED, PER_USER, NOTHING = (DesiredState("shared"), DesiredState("per-user"), DesiredState(None))


async def read():
    """What is there; the folders of all profiles are (they are another test's)."""
    there = await StateReader(Aws(), StateQuery(DOMAIN, FILE_SYSTEM)).read()
    return replace(there, file_system=replace(there.file_system, folders=_folders(there)))


def _folders(there):
    private = {f"/{one.name}": Folder(COMMON_UID, COMMON_GID, 0o700) for one in there.holders if one.kind == "profile"}
    return {**private, "/shared": Folder(COMMON_UID, COMMON_GID, 0o3775)}


async def apply(wanted, there=None):
    """Read, plan and apply; the results by what was done."""
    there = there or await read()
    made = plan(there, wanted)
    executor = Executor(Aws(), there, interval_s=0.02)
    return {result.step.target: result async for result in executor.apply(made)}


def seen(account):
    """All that applying may change."""
    return copy.deepcopy((account.domains, account.profiles, account.spaces, account.networks[REGION].interfaces))


def paths(account):
    """What each profile mounts by its own list."""
    return {
        name: [
            one["FSxLustreFileSystemConfig"]["FileSystemPath"]
            for one in profile.file_systems
            if "FSxLustreFileSystemConfig" in one
        ]
        for (_, name), profile in account.profiles.items()
    }


async def settled(wanted):
    """Whether nothing is left to do."""
    return not plan(await read(), wanted).drift


async def test_shared_per_user_and_back_and_all_taken_away(account):
    efs = {"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}
    account.profiles[DOMAIN, "carol"].file_systems = [efs]
    account.domains[DOMAIN].tags["team"] = "vision"
    before = seen(account)

    results = await apply(SHARED)
    assert all(result.error is None for result in results.values())
    assert account.domains[DOMAIN].file_systems == [lustre_at(FILE_SYSTEM, "/shared")]
    assert account.domains[DOMAIN].shared_file_systems == [lustre_at(FILE_SYSTEM, "/shared")]
    # Who has a list of their own does not see the domain's.
    assert paths(account) == {"alice": [], "bob": [], "carol": ["/shared"]}
    assert account.profiles[DOMAIN, "carol"].file_systems[0] == efs
    assert account.spaces[DOMAIN, "work"].file_systems == [attached(FILE_SYSTEM)]
    for interface in account.networks[REGION].interfaces.values():
        assert interface.groups == [OTHER, STUDIO]
    assert await settled(SHARED)

    await apply(PER_USER)
    assert account.domains[DOMAIN].file_systems == []
    assert paths(account) == {"alice": ["/alice"], "bob": ["/bob"], "carol": ["/carol"]}
    assert account.spaces[DOMAIN, "team"].file_systems == []
    assert await settled(PER_USER)

    await apply(SHARED)
    assert paths(account) == {"alice": [], "bob": [], "carol": ["/shared"]}
    await apply(NOTHING)
    assert seen(account) == before


async def test_what_is_there_already_costs_no_change(account, endpoint):
    await apply(PER_USER)
    endpoint.calls.clear()
    results = await apply(PER_USER)
    assert not [name for name, one in results.items() if one.done]
    assert not [one.action for one in endpoint.calls if one.action.partition(":")[2] in CHANGING]


async def test_each_failure_is_its_own_and_the_next_time_goes_on(account, endpoint):
    endpoint.faults.deny("sagemaker:UpdateUserProfile", "bob")
    results = await apply(PER_USER)
    error = results["profile bob"].error
    assert error is not None
    assert error.code == "missing_right"
    assert "sagemaker:UpdateUserProfile" in error.message
    assert paths(account) == {"alice": ["/alice"], "bob": [], "carol": ["/carol"]}
    endpoint.faults.denied.clear()
    await apply(PER_USER)
    assert await settled(PER_USER)


async def test_a_profile_that_is_deleted_in_between_is_an_error_of_its_own(account):
    there = await read()
    del account.profiles[DOMAIN, "bob"]
    results = await apply(PER_USER, there)
    assert isinstance(results["profile bob"].error, NotFoundError)
    assert paths(account) == {"alice": ["/alice"], "carol": ["/carol"]}


async def test_what_others_change_in_between_is_not_lost(account):
    there = await read()
    efs = {"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}
    account.profiles[DOMAIN, "bob"].file_systems = [efs]
    await apply(PER_USER, there)
    assert account.profiles[DOMAIN, "bob"].file_systems == [efs, lustre_at(FILE_SYSTEM, "/bob")]


async def test_one_that_is_being_updated_is_waited_for(account):
    there = await read()
    account.profiles[DOMAIN, "bob"].status = "Updating"

    async def end():
        await asyncio.sleep(0.2)
        account.profiles[DOMAIN, "bob"].status = "InService"

    ending = asyncio.create_task(end())
    results = await apply(PER_USER, there)
    await ending
    assert results["profile bob"].done


@pytest.mark.parametrize("action", ["UpdateDomain", "UpdateUserProfile", "UpdateSpace"])
async def test_an_update_that_somebody_else_has_begun_is_waited_for(account, endpoint, action):
    left = [1, 1, 1]

    def busy(called, when):
        if called == f"sagemaker:{action}" and when == "before" and left:
            left.pop()
            raise ApiError("ResourceInUse", "Cannot update while another update is in progress")

    endpoint.faults.interrupt = busy
    for wanted in (SHARED, PER_USER):
        results = await apply(wanted)
        assert [one.error for one in results.values() if one.error] == []
    assert left == []
    assert paths(account)["alice"] == ["/alice"]


async def test_one_that_fails_meanwhile_says_so(account):
    there = await read()
    account.profiles[DOMAIN, "bob"].status = "Update_Failed"
    results = await apply(PER_USER, there)
    assert results["profile bob"].error.code == "not_in_service"
    assert results["profile alice"].done


async def test_two_at_once_come_to_the_same(account):
    await asyncio.gather(apply(PER_USER), apply(PER_USER))
    await apply(PER_USER)  # whoever lost a race goes on
    assert await settled(PER_USER)
    assert paths(account) == {"alice": ["/alice"], "bob": ["/bob"], "carol": ["/carol"]}


async def test_a_running_space_waits_until_it_is_stopped(account):
    account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    results = await apply(SHARED)
    assert not results["space work"].done
    assert "JupyterLab" in results["space work"].step.reason
    account.spaces[DOMAIN, "work"].apps = []
    assert (await apply(SHARED))["space work"].done


async def test_a_plan_that_cannot_be_is_refused_whole(account):
    account.file_systems[REGION][0].vpc = "vpc-0fedcba9876543210"
    before = seen(account)
    with pytest.raises(RefusedError) as caught:
        await apply(SHARED)
    assert caught.value.code == "other_vpc"
    assert seen(account) == before


async def test_all_pages_are_read(account):
    for number in range(130):
        account.profiles[DOMAIN, f"user{number:03d}"] = Profile()
    there = await read()
    assert len([one for one in there.holders if one.kind == "profile"]) == 133


async def test_nothing_of_others_is_ever_marked(account):
    account.profiles[DOMAIN, "bob"].file_systems = [lustre_at(FILE_SYSTEM, "/bob")]
    await apply(PER_USER)
    assert account.profiles[DOMAIN, "bob"].tags == {}
    assert account.profiles[DOMAIN, "alice"].tags == {f"{MARK}:{FILE_SYSTEM}": "/alice"}
    await apply(NOTHING)
    assert paths(account)["bob"] == ["/bob"]


async def test_what_is_not_there(account):
    with pytest.raises(NotFoundError):
        await StateReader(Aws(), StateQuery("d-nope", FILE_SYSTEM)).read()
    with pytest.raises(NotFoundError):
        await StateReader(Aws(), StateQuery(DOMAIN, "fs-0fedcba9876543210")).read()

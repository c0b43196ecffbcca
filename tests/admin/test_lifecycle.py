"""Lifecycle configurations: planned, made, attached, changed and taken away, against the testbed's AWS."""

from __future__ import annotations

import asyncio
import base64
import copy
from dataclasses import replace

import pytest

from hyperpod_jlab.admin.fsx.apply import Executor
from hyperpod_jlab.admin.fsx.aws import StateQuery, StateReader
from hyperpod_jlab.admin.fsx.models import DesiredState, StoragePlan
from hyperpod_jlab.admin.lifecycle.models import LifecycleWanted, Script
from hyperpod_jlab.admin.lifecycle.planning import lifecycle_findings, lifecycle_steps
from hyperpod_jlab.admin.lifecycle.scripts import App
from hyperpod_jlab.admin.lifecycle.service import DOMAIN_TAG_PREFIX, read_configs
from hyperpod_jlab.aws.session import Aws
from testbed.aws.replies import ApiError
from testbed.aws.state import Account, StudioLifecycleConfig
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.aws.conftest import REGION

WHERE = f"arn:aws:sagemaker:{REGION}:111122223333:studio-lifecycle-config"
LAB, EDITOR = f"{WHERE}/hyperpod-jlab-lab-1", f"{WHERE}/hyperpod-jlab-editor-1"
SCRIPTS: dict[App, Script] = {
    "jupyterlab": Script("hyperpod-jlab-lab-1", "#!/bin/bash\necho lab\n"),
    "code-editor": Script("hyperpod-jlab-editor-1", "#!/bin/bash\necho editor\n"),
}
NEWER: dict[App, Script] = {**SCRIPTS, "jupyterlab": Script("hyperpod-jlab-lab-2", "#!/bin/bash\necho other\n")}
WANTED, NOTHING = LifecycleWanted(SCRIPTS), LifecycleWanted()
OWN = "its-own"


async def planned(wanted):
    aws = Aws()
    there = await StateReader(aws, StateQuery(DOMAIN, FILE_SYSTEM)).read()
    names = [script.name for script in wanted.scripts.values()]
    configs = await read_configs(aws, names)
    findings = tuple(lifecycle_findings(there, configs, wanted))
    asked = DesiredState("shared") if wanted.scripts else DesiredState(None)
    return there, StoragePlan(asked, lifecycle_steps(there, configs, wanted), findings)


async def apply(wanted, made=None):
    there, plan = made or await planned(wanted)
    executor = Executor(Aws(), there, interval_s=0.02)
    return {result.step.target: result async for result in executor.apply(plan)}


async def states(wanted):
    return {step.target: step.state for step in (await planned(wanted))[1].steps}


def lab(**more):
    return {"JupyterLab": more}


def seen(account: Account):
    """All that applying may change."""
    return copy.deepcopy((account.domains, account.profiles, account.spaces, account.lifecycle_configs))


def others(account, name=OWN, app_type="JupyterLab"):
    """A lifecycle configuration that somebody else has made; its ARN."""
    text = base64.b64encode(b"#!/bin/bash\n").decode()
    account.lifecycle_configs[REGION, name] = StudioLifecycleConfig(text, app_type)
    return f"{WHERE}/{name}"


async def test_made_attached_and_all_taken_away_again(account):
    domain = account.domains[DOMAIN]
    own = others(account)
    image = f"arn:aws:sagemaker:{REGION}:111122223333:image/ours"
    domain.idle = {"LifecycleManagement": "ENABLED", "IdleTimeoutInMinutes": 90}
    domain.app_settings = lab(
        LifecycleConfigArns=[own], DefaultResourceSpec={"LifecycleConfigArn": own, "SageMakerImageArn": image}
    )
    before = seen(account)

    results = await apply(WANTED)
    assert all(result.done for result in results.values()), results
    assert account.lifecycle_configs[REGION, "hyperpod-jlab-lab-1"].app_type == "JupyterLab"
    made = account.lifecycle_configs[REGION, "hyperpod-jlab-editor-1"]
    assert base64.b64decode(made.content).decode() == SCRIPTS["code-editor"].text
    # What the admin has of her own stays: SageMaker would have replaced the whole structure.
    assert domain.app_settings == {
        "JupyterLab": {
            "LifecycleConfigArns": [own],
            "DefaultResourceSpec": {"LifecycleConfigArn": own, "SageMakerImageArn": image},
            "BuiltInLifecycleConfigArn": LAB,
        },
        "CodeEditor": {"BuiltInLifecycleConfigArn": EDITOR},
    }
    assert domain.idle["IdleTimeoutInMinutes"] == 90
    assert domain.shared_app_settings == lab(BuiltInLifecycleConfigArn=LAB)
    assert set((await states(WANTED)).values()) == {"done"}

    await apply(NOTHING)
    domain.app_settings = {kind: told for kind, told in domain.app_settings.items() if told}
    domain.shared_app_settings = {}
    assert seen(account) == before


async def test_a_changed_script_is_a_new_one_and_the_old_one_goes(account):
    await apply(WANTED)
    before = (await planned(LifecycleWanted(NEWER)))[1]
    words = {step.target: f"{step.before} -> {step.after}" for step in before.steps}
    assert words[f"domain {DOMAIN}, JupyterLab"] == ("hyperpod-jlab-lab-1 built in -> hyperpod-jlab-lab-2 built in")
    assert words["lifecycle configuration hyperpod-jlab-lab-1"] == "exists -> missing"
    await apply(LifecycleWanted(NEWER))
    names = {name for _, name in account.lifecycle_configs}
    assert names == {"hyperpod-jlab-lab-2", "hyperpod-jlab-editor-1"}
    settings = account.domains[DOMAIN].app_settings["JupyterLab"]
    assert settings["BuiltInLifecycleConfigArn"] == f"{WHERE}/hyperpod-jlab-lab-2"


async def test_as_default_it_is_in_the_list_too_and_what_spaces_chose_is_not_deleted(account):
    default = replace(WANTED, start="default")
    own = others(account)
    account.domains[DOMAIN].app_settings = lab(LifecycleConfigArns=[own])
    await apply(default)
    assert account.domains[DOMAIN].app_settings["JupyterLab"] == {
        "LifecycleConfigArns": [own, LAB],
        "DefaultResourceSpec": {"LifecycleConfigArn": LAB},
    }
    account.spaces[DOMAIN, "work"].app_settings = lab(DefaultResourceSpec={"LifecycleConfigArn": LAB})
    results = await apply(NOTHING)
    removal = results["lifecycle configuration hyperpod-jlab-lab-1"]
    assert not removal.done
    assert "space work, JupyterLab" in removal.step.reason
    assert (REGION, "hyperpod-jlab-lab-1") in account.lifecycle_configs
    assert (REGION, "hyperpod-jlab-editor-1") not in account.lifecycle_configs
    account.spaces[DOMAIN, "work"].app_settings = {}
    assert (await apply(NOTHING))["lifecycle configuration hyperpod-jlab-lab-1"].done
    assert account.lifecycle_configs.keys() == {(REGION, OWN)}
    # From the one way to the other, nothing of the first is left.
    await apply(default)
    await apply(WANTED)
    assert account.domains[DOMAIN].app_settings["JupyterLab"] == {
        "LifecycleConfigArns": [own],
        "DefaultResourceSpec": {},
        "BuiltInLifecycleConfigArn": LAB,
    }


async def test_what_an_admin_has_set_stays_unless_it_is_taken_over(account):
    own = others(account)
    account.domains[DOMAIN].app_settings = lab(BuiltInLifecycleConfigArn=own)
    results = await apply(WANTED)
    step = results[f"domain {DOMAIN}, JupyterLab"].step
    assert (step.state, OWN in step.reason, "--take-over" in step.reason) == ("blocked", True, True)
    assert account.domains[DOMAIN].app_settings["JupyterLab"] == {"BuiltInLifecycleConfigArn": own}
    assert results[f"domain {DOMAIN}, Code Editor"].done
    assert (await apply(replace(WANTED, take_over=True)))[f"domain {DOMAIN}, JupyterLab"].done
    settings = account.domains[DOMAIN].app_settings["JupyterLab"]
    assert settings["BuiltInLifecycleConfigArn"] == LAB


async def test_what_an_admin_sets_in_between_stays_too(account):
    made = await planned(WANTED)
    own = others(account)
    account.domains[DOMAIN].app_settings = lab(BuiltInLifecycleConfigArn=own)
    results = await apply(WANTED, made)
    assert results[f"domain {DOMAIN}, JupyterLab"].error.code == "set_by_somebody_else"
    assert account.domains[DOMAIN].app_settings["JupyterLab"] == {"BuiltInLifecycleConfigArn": own}


async def test_one_profile_alone_and_then_all(account):
    alone = replace(WANTED, profiles=frozenset({"alice"}))
    await apply(alone)
    assert account.domains[DOMAIN].app_settings == {}
    assert account.profiles[DOMAIN, "alice"].app_settings == {
        "JupyterLab": {"BuiltInLifecycleConfigArn": LAB},
        "CodeEditor": {"BuiltInLifecycleConfigArn": EDITOR},
    }
    assert account.profiles[DOMAIN, "bob"].app_settings == {}
    await apply(WANTED)
    assert account.profiles[DOMAIN, "alice"].app_settings == {"JupyterLab": {}, "CodeEditor": {}}
    assert set((await states(WANTED)).values()) == {"done"}
    # Nothing is hers alone any more, so what all have stays.
    await apply(replace(NOTHING, profiles=frozenset({"alice"})))
    settings = account.domains[DOMAIN].app_settings
    assert settings["JupyterLab"]["BuiltInLifecycleConfigArn"] == LAB


async def test_a_profile_that_has_its_own_is_told(account):
    own = others(account)
    account.profiles[DOMAIN, "carol"].app_settings = lab(BuiltInLifecycleConfigArn=own)
    _, plan = await planned(WANTED)
    assert [(one.code, "profile carol" in one.message) for one in plan.findings] == [("own_lifecycle_config", True)]
    await apply(WANTED)
    assert account.profiles[DOMAIN, "carol"].app_settings == lab(BuiltInLifecycleConfigArn=own)


async def test_a_name_that_is_somebody_elses_is_left_alone(account):
    others(account, "hyperpod-jlab-lab-1")
    results = await apply(WANTED)
    assert results["lifecycle configuration hyperpod-jlab-lab-1"].step.state == "blocked"
    assert results[f"domain {DOMAIN}, JupyterLab"].step.state == "blocked"
    assert results[f"domain {DOMAIN}, Code Editor"].done
    await apply(NOTHING)
    assert (REGION, "hyperpod-jlab-lab-1") in account.lifecycle_configs


async def test_one_that_was_changed_under_our_name_is_told(account):
    await apply(WANTED)
    text = base64.b64encode(b"#!/bin/bash\ncurl evil\n").decode()
    account.lifecycle_configs[REGION, "hyperpod-jlab-lab-1"].content = text
    _, plan = await planned(WANTED)
    step = plan.steps[0]
    assert (step.state, step.reason) == ("blocked", "someone changed its script: delete it")


async def test_another_domain_keeps_what_it_uses(account):
    await apply(WANTED)
    account.lifecycle_configs[REGION, "hyperpod-jlab-lab-1"].tags["hyperpod-jlab-domain-d-other"] = ""
    results = await apply(NOTHING)
    assert results["lifecycle configuration hyperpod-jlab-lab-1"].step.after == "left to d-other"
    tags = account.lifecycle_configs[REGION, "hyperpod-jlab-lab-1"].tags
    assert "hyperpod-jlab-domain-d-other" in tags
    assert f"hyperpod-jlab-domain-{DOMAIN}" not in tags
    assert (REGION, "hyperpod-jlab-editor-1") not in account.lifecycle_configs
    # And what is there for others is noted, not made.
    results = await apply(WANTED)
    assert results["lifecycle configuration hyperpod-jlab-lab-1"].step.before == "there, for other domains"
    assert f"hyperpod-jlab-domain-{DOMAIN}" in tags


async def test_what_a_running_application_was_started_with_waits(account):
    await apply(WANTED)
    account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    account.spaces[DOMAIN, "work"].started_with = [LAB]
    results = await apply(LifecycleWanted(NEWER))
    removal = results["lifecycle configuration hyperpod-jlab-lab-1"]
    assert (removal.done, removal.error, removal.step.state) == (False, None, "waits")
    restarts = results[f"domain {DOMAIN}, JupyterLab"].step.restarts
    assert restarts == ("JupyterLab in space work",)
    account.spaces[DOMAIN, "work"].apps = []
    assert (await apply(LifecycleWanted(NEWER)))["lifecycle configuration hyperpod-jlab-lab-1"].done


async def test_nothing_is_deleted_while_settings_could_not_be_changed(account, endpoint):
    await apply(WANTED)
    endpoint.faults.deny("sagemaker:UpdateDomain")
    endpoint.calls.clear()
    results = await apply(NOTHING)
    assert results[f"domain {DOMAIN}, JupyterLab"].error.code == "missing_right"
    assert not [one for one in endpoint.calls if "Delete" in one.action]
    assert len(account.lifecycle_configs) == 2
    endpoint.faults.denied.clear()
    await apply(NOTHING)
    assert account.lifecycle_configs == {}


async def test_two_at_once_come_to_the_same(account):
    await asyncio.gather(apply(WANTED), apply(WANTED))
    await apply(WANTED)
    assert set((await states(WANTED)).values()) == {"done"}


@pytest.mark.parametrize(
    "action",
    [
        *("ListStudioLifecycleConfigs", "DescribeStudioLifecycleConfig", "ListTags", "AddTags"),
        *("CreateStudioLifecycleConfig", "DeleteStudioLifecycleConfig", "DeleteTags"),
    ],
)
async def test_too_many_calls_are_made_later(account, endpoint, action):
    """More than botocore itself tries again."""
    endpoint.faults.throttled[f"sagemaker:{action}"] = 5
    results = await apply(WANTED)
    # As if another domain had made it, so that ours is noted, and only the note is taken away.
    tags = account.lifecycle_configs[REGION, "hyperpod-jlab-lab-1"].tags
    tags["hyperpod-jlab-domain-d-other"] = tags.pop(f"hyperpod-jlab-domain-{DOMAIN}")
    results |= await apply(WANTED)
    assert [one.error for one in results.values() if one.error] == []
    results = await apply(NOTHING)
    assert [one.error for one in results.values() if one.error] == []
    assert endpoint.faults.throttled[f"sagemaker:{action}"] == 0
    assert set((await states(NOTHING)).values()) <= {"done"}


async def test_an_update_of_somebody_else_is_waited_for(account, endpoint):
    left = [1, 1, 1]

    def busy(action, when):
        if action == "sagemaker:UpdateDomain" and when == "before" and left:
            left.pop()
            raise ApiError("ResourceInUse", "Cannot update while another update is in progress")

    endpoint.faults.interrupt = busy
    results = await apply(WANTED)
    assert [one.error for one in results.values() if one.error] == []
    assert left == []
    assert account.domains[DOMAIN].app_settings == {
        **lab(BuiltInLifecycleConfigArn=LAB),
        "CodeEditor": {"BuiltInLifecycleConfigArn": EDITOR},
    }


@pytest.mark.parametrize("denied", ["CreateStudioLifecycleConfig", "ListTags"])
async def test_a_missing_right_is_named(account, endpoint, denied):
    made = await planned(WANTED)
    endpoint.faults.deny(f"sagemaker:{denied}")
    if denied == "ListTags":
        others(account, "hyperpod-jlab-lab-1")
        with pytest.raises(Exception, match=f"sagemaker:{denied}"):
            await planned(WANTED)
        return
    results = await apply(WANTED, made)
    error = results["lifecycle configuration hyperpod-jlab-lab-1"].error
    assert f"sagemaker:{denied}" in error.message


@pytest.mark.parametrize("action", ["ListStudioLifecycleConfigs", "DescribeDomain"])
async def test_one_that_is_deleted_meanwhile_is_no_fault(account, endpoint, action):
    """Between list and tags; and between plan and the taking away of its mark."""
    await apply(WANTED)
    config = account.lifecycle_configs[REGION, "hyperpod-jlab-lab-1"]
    config.tags[f"{DOMAIN_TAG_PREFIX}d-other"] = ""  # so that it is kept for others

    def delete(name, when):
        if name == f"sagemaker:{action}" and when == "after":
            account.lifecycle_configs.pop((REGION, "hyperpod-jlab-lab-1"), None)

    if action == "ListStudioLifecycleConfigs":
        endpoint.faults.interrupt = delete
        _, made = await planned(NOTHING)
        assert "lifecycle configuration hyperpod-jlab-lab-1" not in {one.target for one in made.steps}
        return
    made = await planned(NOTHING)
    endpoint.faults.interrupt = delete
    results = await apply(NOTHING, made)
    assert [one.error for one in results.values() if one.error] == []

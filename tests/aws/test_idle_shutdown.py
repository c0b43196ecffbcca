"""Studio's idle shutdown: what holds of what space, profile and domain say, and how it is told to who runs on the local cluster."""

from __future__ import annotations

import json

import pytest

from hyperpod_jlab.core.studio import IdleSettings, IdleShutdown, resolve_idle_shutdown
from testbed.aws.state import Profile
from tests.aws.test_doctor import checks, space, studio

__all__ = ["checks", "space", "studio"]

ON, OFF = {"LifecycleManagement": "ENABLED"}, {"LifecycleManagement": "DISABLED"}
STEP = "idle shutdown"


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ([], IdleShutdown(False)),
        ([None, None, None], IdleShutdown(False)),
        ([None, None, IdleSettings(True, 120)], IdleShutdown(True, 120)),
        ([IdleSettings(None, 90), None, IdleSettings(True, 120)], IdleShutdown(True, 90)),
        ([IdleSettings(None, 90), None, IdleSettings(False, 120)], IdleShutdown(False)),
        ([IdleSettings(None, 90), None, None], IdleShutdown(False)),
        ([None, IdleSettings(False), IdleSettings(True, 120)], IdleShutdown(False)),
        ([None, IdleSettings(True), IdleSettings(False, 120)], IdleShutdown(True, 120)),
        ([None, IdleSettings(True, 60), IdleSettings(True, 120)], IdleShutdown(True, 60)),
        ([None, None, IdleSettings(True)], IdleShutdown(True, None)),
    ],
)
def test_the_space_goes_before_the_profile_and_that_before_the_domain(said, holds):
    assert resolve_idle_shutdown(said) == holds


def test_the_doctor_says_after_how_long_this_space_is_stopped(studio, checks):
    assert checks()[STEP] == [("ok", "Studio does not stop JupyterLab when it is idle")]
    account = studio.account
    account.domains["d-example"].idle = {**ON, "IdleTimeoutInMinutes": 120}
    ((level, words),) = checks()[STEP]
    assert level == "warn"
    assert "after 120 minutes without activity" in words
    account.spaces["d-example", "work"].idle = {"IdleTimeoutInMinutes": 90}
    assert "after 90 minutes" in checks()[STEP][0][1]
    account.profiles["d-example", "alice"] = Profile(idle=OFF)
    assert checks()[STEP][0][0] == "ok"
    # A shared space is nobody's profile's.
    account.spaces["d-example", "work"].sharing = "Shared"
    account.domains["d-example"].shared_idle = ON
    assert "after 90 minutes" in checks()[STEP][0][1]


def test_without_the_right_it_is_not_known(studio, checks):
    studio.faults.deny("sagemaker:DescribeDomain")
    ((level, words),) = checks()[STEP]
    assert level == "unknown"
    assert "sagemaker:DescribeDomain" in words


def findings(hpj, *options):
    told = hpj("submit", "--dry-run", "--json", "--cluster", "local", *options, "-c", "true").json
    return {one["code"]: one for one in told["findings"]}


def test_a_local_run_in_studio_is_told_of_it_and_aws_is_not_asked(studio, hpj):
    found = findings(hpj)["studio_idle_shutdown"]
    assert found["level"] == "info"
    assert "hpj doctor" in found["hint"]
    assert "studio_idle_shutdown" in findings(hpj, "--time-limit", "2h")
    assert "studio_idle_shutdown" not in findings(hpj, "--time-limit", "60m")
    assert studio.calls == []


def test_elsewhere_nothing_is_said_of_it(endpoint, hpj):
    assert "studio_idle_shutdown" not in findings(hpj)


def test_another_application_is_not_stopped_so(studio, space, hpj):
    told = json.loads(space.metadata.read_text())
    space.metadata.write_text(json.dumps({**told, "AppType": "Canvas"}))
    assert "studio_idle_shutdown" not in findings(hpj)

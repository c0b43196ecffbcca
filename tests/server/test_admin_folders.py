"""Who makes folders for the Admin page: chosen over REST, by a job of a real Slurm cluster too; what is said where nobody does, or where it cannot be."""

from __future__ import annotations

import stat

import pytest

from hyperpod_jlab.admin.lifecycle.models import LifecycleWanted
from testbed.aws.state import lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, disk
from tests.admin.test_lifecycle import SCRIPTS
from tests.admin.test_lifecycle import apply as apply_scripts
from tests.aws.conftest import endpoint
from tests.server.admin_calls import BACK, PER_USER, applied, aws, here, planned, posted, quick, steps, until
from tests.session import write_config
from tests.slurm.conftest import slurm, slurm_cluster, slurm_version
from tests.slurm.hyperpod_fixtures import settings_for

__all__ = ["aws", "disk", "endpoint", "quick", "slurm", "slurm_cluster", "slurm_version"]

JOBS = 1000
"""The user of the cluster's jobs."""


@pytest.fixture
def slurm_folders(slurm, cluster):
    """The server's user has a Slurm cluster, whose nodes have the whole file system; folders are by its job."""
    write_config(settings_for(slurm), cluster / "config.toml")
    yield {"by": "slurm", "mounted_at": str(slurm.partition_on_nodes), "user": str(JOBS)}
    for name in ("alice", "bob", "carol"):
        folder = slurm.partition / name
        if folder.is_dir():
            folder.rmdir()


async def test_while_nobody_looks_profiles_wait(aws, api):
    answer = await planned(api, PER_USER)
    assert answer["asked"]["folders"]["by"] == "none"
    found = await steps(api, state="waits")
    assert {"folder /alice", "profile alice"} <= found.keys()
    assert found["profile alice"]["reason"] == "the folder /alice was not checked"


async def test_folders_are_made_by_a_job_of_slurm(aws, api, slurm, slurm_folders):
    body = {**PER_USER, "folders": slurm_folders}
    answer = await planned(api, body)
    assert answer["plan"]["counts"]["waits"] == 0
    assert answer["asked"]["folders"] == {
        **dict.fromkeys(("cluster", "queue", "namespace", "claim", "image")),
        **slurm_folders,
    }
    step = (await steps(api))["folder /alice"]
    assert (step["state"], step["before"]) == ("to-do", "missing")
    assert f"ACL user:{JOBS}:rwx" in step["after"]
    assert not (slurm.partition / "alice").exists()

    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    answer = await until(api, "applied", "failed")
    assert (answer["state"], answer["results"]["failed"], answer["results"]["left"]) == ("applied", 0, 0)
    made = (slurm.partition / "alice").stat()
    # With an access list the group's bits are the mask.
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (200001, 0o770)
    assert aws.account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    assert (await planned(api, body))["plan"]["counts"]["to_do"] == 0


async def test_clusters_that_can_make_folders_are_told(aws, api, slurm, slurm_folders):
    answer = await api.get("admin/choices")
    assert answer["folder_clusters"] == [{"name": "slurm", "kind": "slurm"}]


async def test_a_broken_configuration_is_noted_and_hides_nothing_else(aws, api, cluster):
    (cluster / "config.toml").write_text("[clusters\n")
    answer = await api.get("admin/choices")
    assert answer["folder_clusters"] == []
    assert any("config.toml" in note for note in answer["notes"])
    assert [one["id"] for one in answer["file_systems"]] == [FILE_SYSTEM]
    (cluster / "config.toml").write_text("[clusters.local]\nslots = 8\n")


@pytest.mark.parametrize(
    ("folders", "code", "field"),
    [
        ({"by": "slurm"}, "no_cluster_for_folders", "cluster"),
        ({"by": "kubernetes", "cluster": "other"}, "no_cluster_for_folders", "cluster"),
        ({"by": "kubernetes", "user": "trainer"}, "no_cluster_for_folders", "cluster"),
        ({"by": "here"}, "invalid_input", "mounted_at"),
    ],
)
async def test_what_cannot_be_is_the_plans_problem(aws, api, folders, code, field):
    await posted(api, "admin/plan", {**PER_USER, "folders": folders})
    answer = await until(api, "planned", "failed")
    problem = answer["problem"]
    assert (answer["state"], problem["code"], problem["detail"]["field"]) == ("failed", code, field)
    assert problem["hint"]
    assert not [call for call in aws.calls if call.action.startswith("sagemaker:Update")]


async def test_nobody_is_asked_where_all_is_taken_back(aws, api, disk):
    await applied(api, {**PER_USER, **here(disk)})
    answer = await applied(api, {**BACK, "folders": {"by": "slurm"}})
    assert (answer["state"], answer["results"]["failed"]) == ("applied", 0)
    assert aws.account.profiles[DOMAIN, "alice"].file_systems == []


async def test_scripts_of_ours_go_too_where_all_is_taken_back(aws, api):
    await apply_scripts(LifecycleWanted(SCRIPTS))
    answer = await planned(api, BACK)
    assert {"kind": "lifecycle", "total": 5, "differ": 5} in answer["plan"]["drift"]
    step = (await steps(api))[f"domain {DOMAIN}, JupyterLab"]
    assert (step["before"], step["after"]) == ("hyperpod-jlab-lab-1 built in", "none of ours")
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    assert (await until(api, "applied", "failed"))["results"]["failed"] == 0
    assert aws.account.lifecycle_configs == {}

"""``hpj admin plan``, ``apply``, ``status`` and ``destroy`` as an admin types them."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from testbed.aws.state import lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.aws.conftest import REGION

WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
SHARED = (*WHERE, "--partition-mode", "shared")
PER_USER = (*WHERE, "--partition-mode", "per-user")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """SageMaker is quick here, so it is looked at often."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)


def test_the_plan_says_what_would_change_and_changes_nothing(account, hpj, disk):
    done = hpj("admin", "plan", *PER_USER).ok()
    assert "~ profile alice: not mounted -> /alice (the folder /alice was not checked)" in done.out
    assert "~ folder /alice: not known -> owner 200001:1001, mode 0700" in done.out
    assert done.out.splitlines()[-1] == "3 up to date, 2 to do, 7 waiting"
    done = hpj("admin", "plan", *PER_USER, "--mounted-at", str(disk)).ok()
    assert "+ profile alice: not mounted -> /alice" in done.out
    assert done.out.splitlines()[-1] == "3 up to date, 9 to do"
    told = hpj("admin", "plan", *PER_USER, "--json").ok().json
    assert {step["target"] for step in told["steps"]} >= {"profile alice", "space work"}
    assert account.profiles[DOMAIN, "alice"].file_systems == []


def test_apply_toggle_and_destroy_with_files_in_both_modes(account, hpj, disk):
    at = ("--mounted-at", str(disk), "--yes")
    hpj("admin", "apply", *SHARED, *at).ok()
    found = (disk / "shared").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (200001, 1001, 0o3775)
    (disk / "shared" / "data.txt").write_text("of all")
    assert hpj("admin", "status", *SHARED, "--mounted-at", str(disk)).ok().out.endswith("up to date\n")

    hpj("admin", "apply", *PER_USER, *at).ok()
    assert stat.S_IMODE((disk / "alice").stat().st_mode) == 0o700
    (disk / "alice" / "mine.txt").write_text("alice's")
    assert account.domains[DOMAIN].file_systems == []
    drift = hpj("admin", "status", *SHARED, "--mounted-at", str(disk))
    assert drift.code == 1
    assert "profile alice: /alice -> not mounted" in drift.out

    hpj("admin", "apply", *SHARED, *at).ok()
    assert account.domains[DOMAIN].file_systems == [lustre_at(FILE_SYSTEM, "/shared")]
    hpj("admin", "destroy", *WHERE, "--yes").ok()
    assert account.domains[DOMAIN].file_systems == []
    assert (disk / "shared" / "data.txt").read_text() == "of all"
    assert (disk / "alice" / "mine.txt").read_text() == "alice's"
    again = hpj("admin", "destroy", *WHERE, "--yes").ok().out.splitlines()[-1]
    assert again == "7 up to date"


def test_nothing_without_a_word(account, hpj):
    done = hpj("admin", "apply", *PER_USER, "--json")
    assert (done.code, done.error["code"]) == (2, "not_confirmed")
    assert account.profiles[DOMAIN, "alice"].file_systems == []


def test_a_profile_waits_for_its_folder_while_nobody_looks(account, hpj, disk):
    done = hpj("admin", "apply", *PER_USER, "--yes")
    assert (done.code, "--folders" in done.out) == (1, True)
    assert "not done: profile alice: the folder /alice was not checked" in done.err
    # Whether the folder is there nobody knows, and of that no exit code is made.
    assert "not known: folder /alice: folders are not checked" in done.err
    hpj("admin", "apply", *SHARED, "--yes").ok()
    hpj("admin", "destroy", *WHERE, "--yes").ok()
    assert account.profiles[DOMAIN, "alice"].file_systems == []
    drift = hpj("admin", "status", *PER_USER)
    assert (drift.code, "the folder /alice was not checked" in drift.out) == (1, True)
    hpj("admin", "apply", *PER_USER, "--folders", "here", "--mounted-at", str(disk), "--yes").ok()
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]


def test_what_mounts_a_folder_that_was_not_made_is_left_alone(account, hpj, disk):
    """The folder of one of them is taken by somebody else once the plan is made."""
    shared = (*PER_USER, "--mounted-at", str(disk))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=3", "tmpfs", disk], check=True)
    try:
        done = hpj("admin", "apply", *shared, "--yes")
    finally:
        subprocess.run(["umount", disk], check=True)
    # Two folders found room, the third did not.
    made = [name for name in ("alice", "bob", "carol") if account.profiles[DOMAIN, name].file_systems]
    assert (done.code, made) == (2, ["alice", "bob"])
    assert "No space left" in done.err
    assert account.profiles[DOMAIN, "carol"].file_systems == []


def test_the_clusters_user_is_let_in_and_shown(account, hpj, disk):
    words = (*PER_USER, "--mounted-at", str(disk), "--cluster-user")
    hpj("admin", "apply", *words, "daemon", "--yes").ok()
    number = pwd.getpwnam("daemon").pw_uid
    assert f"ACL user:{number}:rwx" in hpj("admin", "plan", *words, "1000").ok().out
    assert hpj("admin", "status", *words, str(number)).ok()
    assert os.getxattr(disk / "alice", "system.posix_acl_default")


BAD_FOLDERS = [
    (("--folders", "here"), 2, "mounted_at"),
    (("--mounted-at", "/no/such/folder"), 2, "mounted_at"),
    (("--mounted-at", "/tmp", "--folders", "none"), 2, "mounted_at"),
    (("--folders", "slurm"), 2, "cluster"),
    (("--folders", "kubernetes"), 2, "cluster"),
    (("--claim", "fsx"), 2, "claim"),
    (("--folders", "slurm", "--image", "x"), 2, "image"),
    (("--cluster-user", "0"), 2, "cluster_user"),
    (("--cluster-user", "4294967295"), 2, "cluster_user"),
    (("--cluster-user", "ubuntu"), 2, "cluster_user"),
    (("--cluster-user", "$(id)", "--mounted-at", "/tmp"), 2, "cluster_user"),
    (("--cluster-user", "no-such-user", "--mounted-at", "/tmp"), 3, "cluster_user"),
]


@pytest.mark.parametrize(("words", "code", "field"), BAD_FOLDERS)
def test_bad_words_on_folders(account, hpj, words, code, field):
    done = hpj("admin", "plan", *PER_USER, *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (code, field)


def test_one_profile_alone(account, hpj, disk):
    hpj("admin", "apply", *PER_USER, "--profile", "bob", "--mounted-at", str(disk), "--yes").ok()
    assert [one.name for one in disk.iterdir()] == ["bob"]
    assert account.profiles[DOMAIN, "alice"].file_systems == []
    for what in ("plan", "apply", "status"):
        done = hpj("admin", what, *PER_USER, "--profile", "nobody", "--json")
        assert (done.code, done.error["code"], done.out) == (3, "no_such_profile", "")
    done = hpj("admin", "destroy", *WHERE, "--profile", "bob", "--profile", "nobody")
    assert (done.code, done.out) == (3, "")


def test_the_file_system_of_a_cluster(account, hpj):
    cluster = account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    words = ("admin", "plan", "--domain", DOMAIN, "--partition-mode", "shared")
    done = hpj(*words, "--cluster", "ml-cluster", "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "file_system")
    storage = {"FsxLustreConfig": {"DnsName": f"{FILE_SYSTEM}.fsx.{REGION}.amazonaws.com", "MountName": "x5kjbbmv"}}
    cluster.add_group("workers", "ml.p5.48xlarge", 1, storage=[storage])
    told = hpj(*words, "--cluster", "ml-cluster", "--json").ok().json
    assert told["mode"] == "shared"
    done = hpj(*words, "--cluster", "nope")
    assert done.code == 3


@pytest.mark.parametrize(
    ("words", "code", "field"),
    [
        (("--partition-mode", "shared", "--file-system", FILE_SYSTEM), 2, "domain"),
        (("--domain", DOMAIN, "--partition-mode", "shared"), 2, "file_system"),
        ((*SHARED, "--shared-path", "shared"), 2, "shared_path"),
        ((*SHARED, "--shared-path", "/.."), 2, "shared_path"),
        ((*SHARED, "--shared-path", "/shared/../alice"), 2, "shared_path"),
        ((*SHARED, "--shared-path", "/shared/"), 2, "shared_path"),
        ((*SHARED, "--mounted-at", ""), 2, "mounted_at"),
        ((*SHARED, "--domain", ""), 2, "domain"),
        ((*SHARED, "--domain", "d-ex\u00e4mple"), 2, "domain"),
        ((*SHARED, "--domain", "d-" + "a" * 62), 2, "domain"),
        ((*SHARED, "--domain", "d-example\n"), 2, "domain"),
        ((*SHARED, "--file-system", "fs-xyz"), 2, "file_system"),
        ((*SHARED, "--file-system", ""), 2, "file_system"),
        ((*SHARED, "--cluster", "two words"), 2, "cluster"),
        ((*SHARED, "--region", ""), 2, "region"),
        ((*SHARED, "--region", "../us-west-2"), 2, "region"),
    ],
)
def test_bad_words(account, endpoint, hpj, words, code, field):
    done = hpj("admin", "plan", *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (code, field)
    assert "Parameter validation" not in done.err
    assert endpoint.calls == []


def test_choices_are_told_on_one_line(hpj):
    done = hpj("admin", "plan", *WHERE)
    assert done.err.startswith("error: Missing option '--partition-mode'. Choose from: shared, per-user\n")


def test_one_step_is_one(account, hpj, disk):
    at = ("--mounted-at", str(disk))
    hpj("admin", "apply", *SHARED, *at, "--yes").ok()
    (disk / "shared").rmdir()
    done = hpj("admin", "apply", *SHARED, *at)
    assert (done.code, "to do: 1 step\n" in done.err) == (2, True)


def test_what_cannot_be_is_refused_by_plan_and_apply(account, hpj):
    account.file_systems[REGION][0].vpc = "vpc-0fedcba9876543210"
    for words in (("plan", *SHARED), ("apply", *SHARED, "--yes")):
        done = hpj("admin", *words, "--json")
        assert (done.code, done.error["code"]) == (2, "other_vpc")


def test_a_missing_right_is_named(account, endpoint, hpj, disk):
    endpoint.faults.deny("ec2:DescribeNetworkInterfaces")
    done = hpj("admin", "plan", *SHARED, "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    assert "ec2:DescribeNetworkInterfaces" in done.error["message"]
    endpoint.faults.denied.clear()
    endpoint.faults.deny("sagemaker:UpdateDomain")
    done = hpj("admin", "apply", *SHARED, "--mounted-at", str(disk), "--yes")
    assert done.code == 4
    assert "sagemaker:UpdateDomain" in done.err


def test_results_as_json(account, hpj, disk):
    words = ("admin", "apply", *SHARED, "--mounted-at", str(disk), "--yes", "--json")
    for _ in range(2):  # what was fine already is ok too
        told = hpj(*words).ok().json
        assert all(one["ok"] and one["error"] is None for one in told["results"])
    account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    done = hpj("admin", "destroy", *WHERE, "--yes", "--json")
    bad = [one["target"] for one in done.json["results"] if not one["ok"]]
    assert (done.code, bad) == (1, ["space work"])


@pytest.mark.parametrize("kind", ["file", "link"])
def test_something_else_where_a_folder_is_to_be(account, hpj, disk, kind):
    if kind == "file":
        (disk / "shared").write_text("")
    else:
        (disk / "elsewhere").mkdir()
        (disk / "shared").symlink_to(disk / "elsewhere")
    done = hpj("admin", "apply", *SHARED, "--mounted-at", str(disk), "--yes")
    assert (done.code, "! folder /shared: no folder" in done.out) == (1, True)
    assert account.domains[DOMAIN].file_systems == []


def test_a_folder_of_somebody_else_is_left_to_him(account, hpj, disk):
    (disk / "alice").mkdir(mode=0o755)
    os.chown(disk / "alice", 4711, 4711)
    done = hpj("admin", "plan", *PER_USER, "--mounted-at", str(disk)).ok()
    assert "! folder /alice" in done.out
    assert "uid 4711" in done.out
    assert hpj("admin", "apply", *PER_USER, "--mounted-at", str(disk), "--yes").code == 1
    assert (disk / "alice").stat().st_uid == 4711
    # Nor does alice get what is not hers.
    assert account.profiles[DOMAIN, "alice"].file_systems == []
    assert account.profiles[DOMAIN, "bob"].file_systems == [lustre_at(FILE_SYSTEM, "/bob")]


def test_status_says_which_mode_is_in_force(account, hpj, disk):
    at = ("--mounted-at", str(disk))
    done = hpj("admin", "status", *WHERE).ok().out.splitlines()
    assert done[0] == "mode: off"
    assert done[-2] == "new profiles: not mounted"
    hpj("admin", "apply", *SHARED, "--shared-path", "/team", *at, "--yes").ok()
    # Nothing differs from what is in force, whatever the folder is called.
    done = hpj("admin", "status", *WHERE, *at).ok().out.splitlines()
    assert done[:3] == ["mode: shared", "shared /team: alice, bob, carol", "new profiles: /team"]
    assert done[-1].endswith("up to date")
    hpj("admin", "apply", *PER_USER, "--profile", "bob", *at, "--yes").ok()
    told = hpj("admin", "status", *WHERE, *at, "--json").ok().json
    assert (told["mode"], told["in_force"]["mode"]) == ("shared", "mixed")
    groups = {group["kind"]: group["names"] for group in told["in_force"]["groups"]}
    assert groups == {"shared": ["alice", "carol"], "per-user": ["bob"]}
    hpj("admin", "destroy", *WHERE, "--yes").ok()
    hpj("admin", "apply", *PER_USER, *at, "--yes").ok()
    done = hpj("admin", "status", *WHERE, *at).ok().out.splitlines()
    assert done[:2] == ["mode: per-user", "own folder: alice, bob, carol"]
    # Compared with another mode it still says what is in force.
    drift = hpj("admin", "status", *SHARED)
    assert (drift.code, drift.out.splitlines()[0]) == (1, "mode: per-user")

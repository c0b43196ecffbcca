"""A cluster in a person's kubeconfig: what is missing is added, and nothing of theirs is changed."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest
import yaml

from hyperpod_jlab.admin.lifecycle.kubeconfig import add
from hyperpod_jlab.core.errors import RefusedError

ARN = "arn:aws:eks:us-west-2:123456789012:cluster/research"


def config(*, name="research-eks", cluster=ARN, server="https://old.example", current=None, **more):
    """As `aws eks update-kubeconfig` writes it."""
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server}}],
        "users": [{"name": cluster, "user": {"exec": {"command": "aws"}}}],
        "contexts": [{"name": name, "context": {"cluster": cluster, "user": cluster}}],
        **more,
    }
    return found if current is None else {**found, "current-context": current}


@pytest.fixture
def files(tmp_path):
    made, into = tmp_path / "made", tmp_path / "home" / ".kube" / "config"
    made.write_text(yaml.safe_dump(config(current="research-eks")))
    return made, into


def read(path):
    return yaml.safe_load(path.read_text())


def test_where_there_is_none_it_is_made_for_its_owner_alone(files):
    made, into = files
    assert add(made, into, "team-a")
    assert stat.S_IMODE(into.stat().st_mode) == 0o600
    found = read(into)
    assert found["current-context"] == "research-eks"
    assert found["contexts"][0]["context"] == {"cluster": ARN, "user": ARN, "namespace": "team-a"}
    before = into.stat().st_ino
    assert not add(made, into, "team-a")
    assert into.stat().st_ino == before


def test_what_is_theirs_stays(files):
    made, into = files
    into.parent.mkdir(parents=True)
    theirs = config(name="mine", cluster="mine", current="mine", preferences={"colors": True})
    into.write_text(yaml.safe_dump(theirs))
    into.chmod(0o644)
    assert add(made, into, "")
    found = read(into)
    assert found["current-context"] == "mine"
    assert found["preferences"] == {"colors": True}
    for kind in ("clusters", "users", "contexts"):
        assert found[kind][0] == theirs[kind][0]
        assert len(found[kind]) == 2
    assert stat.S_IMODE(into.stat().st_mode) == 0o600


def test_a_new_address_is_taken_over_and_their_namespace_and_login_stay(files):
    made, into = files
    add(made, into, "")
    theirs = read(into)
    theirs["contexts"][0]["context"]["namespace"] = "mine"
    theirs["users"][0]["user"]["exec"]["env"] = [{"name": "AWS_PROFILE", "value": "mine"}]
    into.write_text(yaml.safe_dump(theirs))
    made.write_text(yaml.safe_dump(config(server="https://new.example")))
    assert add(made, into, "team-a")
    found = read(into)
    assert found["clusters"] == [{"name": ARN, "cluster": {"server": "https://new.example"}}]
    assert (found["contexts"], found["users"]) == (theirs["contexts"], theirs["users"])


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "just words",
        "clusters: 3",
        "\udcff",
        yaml.safe_dump(config(cluster="another")),
        yaml.safe_dump({"contexts": [{"name": "research-eks"}]}),
    ],
)
def test_a_file_that_cannot_be_added_to_stays_as_it_is(files, text):
    made, into = files
    into.parent.mkdir(parents=True)
    into.write_text(text, errors="surrogateescape")
    before = into.read_bytes()
    with pytest.raises(RefusedError):
        add(made, into, "")
    assert into.read_bytes() == before
    assert [one.name for one in into.parent.iterdir()] == ["config"]


def test_a_link_is_followed_and_stays(files, tmp_path):
    made, into = files
    real = tmp_path / "dotfiles"
    into.parent.mkdir(parents=True)
    real.write_text("")
    into.symlink_to(real)
    assert add(made, into, "")
    assert into.is_symlink()
    assert read(real)["current-context"] == "research-eks"


def test_the_program_says_what_it_did(files, tmp_path):
    made, into = files
    words = [sys.executable, "-m", "hyperpod_jlab.admin.lifecycle.kubeconfig", made]

    def run():
        home = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
        return subprocess.run([*words, "", "research-eks", ""], env=home, capture_output=True, text=True)

    assert run().stdout == "research-eks is a context of ~/.kube/config\n"
    assert run().stdout == "research-eks is a context of ~/.kube/config already\n"
    into.write_text("a: [")
    done = run()
    assert done.returncode == 1
    assert done.stdout.startswith("~/.kube/config was not changed: it is not a kubeconfig")

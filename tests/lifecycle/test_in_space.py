"""Scripts run for real in a root like a space's: what they leave there, and that an application starts whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.lifecycle.conftest import PACKAGE
from tests.lifecycle.space import HOME, POINT, STATE

pytestmark = pytest.mark.timeout(600)
"""They install and start things, on machines that have other work too."""

RETURNS = 5.0
"""Seconds after which a script has returned (the issue's number)."""


def steps(status):
    return {step["name"]: step["state"] for step in status["steps"]}


def message(status, name):
    return next(step["message"] for step in status["steps"] if step["name"] == name)


def returned(took, done):
    assert done.returncode == 0, done.stderr
    assert took <= RETURNS


@pytest.mark.full
def test_its_root_puts_nothing_in_the_place_of_the_machines_devices(space):
    with space() as started:
        done = started.run("sh", "-c", "echo x >/dev/null && : >/dev/hpj-test", root=True)
        assert "/dev/hpj-test: Read-only file system" in done.stderr


@pytest.mark.parametrize("network", [True, False], ids=["network", "no network"])
def test_first_start_and_second(space, script, network):
    with space(network=network) as started:
        returned(*started.lifecycle(script()))
        status = started.ended()
        assert {name: state for name, state in steps(status).items() if name != "doctor"} == {
            "package": "done",
            "partition": "done",
            "config": "done",
            "client": "skipped",
        }, started.log()
        assert status["app"] == "code-editor"
        assert status["log"] == str(HOME / STATE / "lifecycle.log")
        # Nobody is at login-1, and there are no AWS credentials here: the doctor says so.
        assert (steps(status)["doctor"], status["state"]) == ("failed", "failed")
        assert "hpj doctor" in message(status, "doctor")
        assert "no AWS credentials found" in started.log()

        # As in a terminal: hpj is on the PATH, works, and knows the cluster.
        told = json.loads(started.run("bash", "-c", "hpj clusters --json").stdout)
        assert {one["name"] for one in told["clusters"]} == {"local", "ml-cluster"}
        done = started.run("hpj", "submit", "--cluster", "local", "-c", "echo hello", "--wait")
        assert done.returncode == 0, done.stderr
        assert (started.home / "hyperpod-partition").readlink() == POINT
        assert list(started.partition.glob(".hyperpod*/runs/*/*/spec.json"))

        before = started.run("cat", "/etc/hyperpod-jlab/config.toml").stdout
        returned(*started.lifecycle(script()))
        again = started.ended()
        assert message(again, "package") == f"{PACKAGE} is there already"
        assert steps(again) == steps(status)
        assert started.run("cat", "/etc/hyperpod-jlab/config.toml").stdout == before


@pytest.mark.full
def test_next_start_of_the_space(space, script, base):
    """Its image is new, its home is the old one."""
    made = space(network=False)
    for _ in range(2):
        with made as started:
            returned(*started.lifecycle(script()))
            assert steps(started.ended())["package"] == "done"
            assert started.run("hpj", "--version").returncode == 0


def test_after_a_run_that_was_ended_half_way(space, script):
    with space(network=False) as started:
        first = threading.Thread(target=started.lifecycle, args=(script(),))
        first.start()
        while not list(started.inside("/opt/conda/lib").glob("python3*/site-packages/hyperpod_jlab")):
            time.sleep(0.01)
        # Everything of this user ends at once, pip too.
        started.run("bash", "-c", "kill -KILL -1")
        first.join()
        # However far it came: a package half of whose files are there, and no word that it is whole.
        for path in ("*.lifecycle", "hyperpod_jlab/cli"):
            started.run("bash", "-c", f"rm -rf /opt/conda/lib/python3*/site-packages/{path}")
        assert started.run("hpj", "--version").returncode != 0
        returned(*started.lifecycle(script()))
        status = started.ended()
        assert steps(status)["package"] == "done", started.log()
        assert started.run("hpj", "--version").returncode == 0


def test_two_at_once(space, script):
    with space(network=False) as started:
        first, second = started.lifecycle(script()), started.lifecycle(script())
        returned(*first)
        returned(*second)
        assert steps(started.ended())["package"] == "done"
        assert started.log().count("== ") == started.log().count("\n== ") + 1
        assert started.log().count(" package\n") == 1


BROKEN = {
    "another checksum": ({"package_sha256": "1" * 64}, None, "does not have the SHA-256 that was set"),
    "no such folder": ({"package": "packages/none"}, None, "cannot be read"),
    "a wheel that was changed": ({}, "printf x >>{}/hyperpod_jlab-*.whl", "is not the one in its SHA256SUMS"),
    "a wheel that is missing": ({}, "rm {}/hyperpod_jlab-*.whl", "cannot be read"),
    "a list that leads out": (
        {"package_sha256": "of the list"},
        "echo '0  ../../x.whl' >{}/SHA256SUMS",
        "which is no file beside it",
    ),
}


@pytest.mark.parametrize(
    "how", [how if how == "another checksum" else pytest.param(how, marks=pytest.mark.full) for how in BROKEN]
)
def test_what_is_not_what_was_pinned_is_not_used(space, script, partition, how):
    changed, command, words = BROKEN[how]
    if command:
        subprocess.run(["bash", "-c", command.format(partition / PACKAGE)], check=True)
    if changed.get("package_sha256") == "of the list":
        done = subprocess.run(["sha256sum", partition / PACKAGE / "SHA256SUMS"], capture_output=True, text=True)
        changed = {"package_sha256": done.stdout.split()[0]}
    with space(network=False) as started:
        returned(*started.lifecycle(script(**changed)))
        status = started.ended()
        assert (steps(status)["package"], status["state"]) == ("failed", "failed")
        assert words in message(status, "package")
        assert started.run("bash", "-c", "command -v hpj").returncode != 0
        # What does not need it is done all the same.
        assert steps(status)["partition"] == steps(status)["config"] == "done"
        assert steps(status)["doctor"] == "skipped"


@pytest.mark.full
def test_partition_that_can_only_be_read(space, script):
    made = space(network=False)
    made.mark("read-only")
    with made as started:
        returned(*started.lifecycle(script()))
        status = started.ended()
        assert steps(status)["package"] == steps(status)["config"] == "done"


@pytest.mark.full
def test_no_partition(space, script, package, base):
    """A wheel of the image itself; the configuration says nothing of a folder."""
    with space(network=False, folder=None) as started:
        shutil.copytree(package.folder, started.home / "wheels")
        returned(*started.lifecycle(script(package=f"{HOME}/wheels")))
        status = started.ended()
        assert (steps(status)["package"], steps(status)["partition"]) == ("done", "failed")
        told = json.loads(started.run("hpj", "clusters", "--json").stdout)
        assert {one["name"] for one in told["clusters"]} == {"local", "ml-cluster"}
        assert "storage = " not in started.run("cat", "/etc/hyperpod-jlab/config.toml").stdout


@pytest.mark.full
def test_home_that_cannot_be_written(space, script):
    made = space(network=False)
    made.mark("read-only-home")
    with made as started:
        returned(*started.lifecycle(script()))
        path = "/tmp/hyperpod-jlab-1000/lifecycle.json"
        until = time.monotonic() + 60
        while '"state":"running"' in (told := started.run("cat", path).stdout) or not told:
            assert time.monotonic() < until, told
            time.sleep(0.1)
        assert steps(json.loads(told))["package"] == steps(json.loads(told))["config"] == "done"
        assert message(json.loads(told), "partition").endswith("cannot be made")


@pytest.mark.full
def test_a_full_home_has_log_and_status_below_tmp(space, script):
    """What an earlier start left in the home is older, and does not count."""
    with space(network=False) as started:
        started.run("mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "full", HOME, root=True)
        moment = "2026-01-01T00:00:00Z"
        told = {"started": moment, "updated": moment, "log": "x", "steps": []}
        before = json.dumps({"version": 1, "app": "code-editor", "state": "done", **told})
        started.run("install", "-D", "/dev/stdin", STATE / "lifecycle.json", input=before)
        started.run("touch", "-d", "2026-01-01", STATE / "lifecycle.json")
        started.run("bash", "-c", f"cat /dev/zero >{HOME}/x")
        returned(*started.lifecycle(script()))
        folder = "/tmp/hyperpod-jlab-1000"
        until = time.monotonic() + 120
        path = f"{folder}/lifecycle.json"
        while '"state":"running"' in (told := started.run("cat", path).stdout) or not told:
            assert time.monotonic() < until, told
            time.sleep(0.1)
        status = json.loads(told)
        assert steps(status)["package"] == steps(status)["config"] == "done"
        assert status["log"] == f"{folder}/lifecycle.log"
        assert " package\n" in started.run("cat", status["log"]).stdout
        assert started.run("bash", "-c", f"ls -A {folder} {STATE}").stdout.count("room") == 0
        doctor = json.loads(started.run("hpj", "doctor", "--json").stdout)
        (line,) = [one for one in doctor["checks"] if one["key"] == "lifecycle"]
        assert "it failed at" in line["evidence"]
        assert f"lifecycle.log in {folder}" in line["fix"]


@pytest.mark.full
def test_full_disk(space, script):
    """Nothing fits anywhere: not the package, not the status. The application starts."""
    with space(network=False) as started:
        full = "mount -t tmpfs -o size=64k,mode=1777 full"
        started.run("bash", "-c", f"{full} /tmp; {full} {HOME}", root=True)
        started.run("bash", "-c", f"cat /dev/zero >/tmp/x; cat /dev/zero >{HOME}/x")
        returned(*started.lifecycle(script()))


@pytest.mark.full
def test_no_sudo_no_metadata_no_environment(space, script, base):
    made = space(network=False)
    made.mark("no-sudo")
    with made as started:
        started.run("rm", "/opt/ml/metadata/resource-metadata.json", root=True)
        started.run("tee", "/run/script", input=script(), root=True)
        done = started.run("env", "-i", "HYPERPOD_MOUNT_TABLE=/run/mounts", "bash", "/run/script")
        assert done.returncode == 0, done.stderr
        status = started.ended()
        assert (steps(status)["package"], steps(status)["config"]) == ("done", "failed")
        assert message(status, "config") == "/etc/hyperpod-jlab/config.toml cannot be written"


@pytest.mark.full
def test_what_somebody_wrote_stays(space, script):
    own = 'default_cluster = "local"\n# mine\n[clusters.ml-cluster]\nuser = "me"\n'
    with space(network=False) as started:
        folder = started.home / ".config" / "hyperpod-jlab"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(own)
        (started.home / "hyperpod-partition").mkdir()
        os.chown(started.home / ".config", 1000, 100)
        returned(*started.lifecycle(script()))
        status = started.ended()
        assert (folder / "config.toml").read_text() == own
        assert "is something else, and stays" in message(status, "partition")
        told = started.run("hpj", "clusters", "--json")
        assert "ml-cluster" in told.stdout, told.stderr

        started.run("tee", "/etc/hyperpod-jlab/config.toml", input="# the image's\n", root=True)
        started.lifecycle(script())
        status = started.ended()
        assert steps(status)["config"] == "skipped"
        assert "somebody else's" in message(status, "config")
        told = started.run("cat", "/etc/hyperpod-jlab/config.toml").stdout
        assert told == "# the image's\n"


@pytest.mark.full
def test_another_version_takes_the_place_of_the_old_one(space, script, package, partition):
    with space(network=False) as started:
        started.lifecycle(script())
        assert steps(started.ended())["package"] == "done"
        place = Path("packages", "one", package.wheel.name)
        (partition / place).parent.mkdir()
        shutil.copy(package.wheel, partition / place)
        digest = subprocess.run(["sha256sum", package.wheel], capture_output=True, text=True)
        changed = {"package": str(place), "package_sha256": digest.stdout.split()[0]}
        started.lifecycle(script(**changed))
        status = started.ended()
        assert message(status, "package") == "hyperpod_jlab-0.1.0-py3-none-any is installed"
        assert started.run("hpj", "--version").returncode == 0

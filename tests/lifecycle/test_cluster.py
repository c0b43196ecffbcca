"""What runs on the cluster itself: a timer that calls ``hpj admin apply``, which makes the folders of profiles and wires them."""

from __future__ import annotations

import os
import re
import shlex
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from testbed.aws.state import Profile
from testbed.aws.studio import ROOT_MOUNT, whole_file_system
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, account, endpoint, no_aws
from tests.aws.conftest import KEY, REGION
from tests.lifecycle.image import TREE, packages
from tests.lifecycle.space import POINT, Space

pytestmark = pytest.mark.timeout(600)
"""They install and start things, on machines that have other work too."""

__all__ = ["account", "endpoint", "no_aws"]

WHERE = TREE / "lifecycle-configs" / "cluster"
UNITS = "/etc/systemd/system"
SAID = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM, "--region", REGION)


@pytest.fixture(scope="module")
def everything(package, tmp_path_factory):
    """The folder of wheels for a machine that has nothing, and its checksum."""
    folder = tmp_path_factory.mktemp("all") / "packages"
    return folder, packages(package.wheel, folder, everything=True)


@pytest.fixture
def controller(endpoint, no_aws, base, conda, everything):
    """A machine with the whole file system, and no network but for AWS; its root is thrown away like a space's."""
    folder = base / "fsx"
    folder.mkdir()
    (folder / "mounts").write_text(ROOT_MOUNT + whole_file_system(Path("/fsx")))
    subprocess.run(["cp", "-r", everything[0], folder / "packages"], check=True)
    subprocess.run(["cp", "-r", WHERE, folder / "cluster"], check=True)
    variables = {
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
        "PIP_INDEX_URL": "http://127.0.0.1:9/none",
        "HYPERPOD_MOUNT_TABLE": "/fsx/mounts",
    }
    with Space(base / "machine", folder, conda, variables=variables) as started:
        started.run("bash", "-c", "mkdir /fsx; mount --bind $0 /fsx", str(POINT), root=True)
        yield started


def install(machine, *more):
    words = (*SAID, "--mounted-at", "/fsx", "--package", "/fsx/packages", *more)
    return machine.run("bash", "/fsx/cluster/install.sh", *words, root=True, timeout=240)


def once(machine):
    """What the service does: its own command line, with its own file of variables, as systemd reads both."""
    unit = machine.run("cat", f"{UNITS}/hyperpod-jlab-wiring.service").stdout
    variables = dict(
        line.split("=", 1) for line in machine.run("cat", "/etc/hyperpod-jlab/wiring.env").stdout.splitlines()
    )
    line = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0]
    words: list[str] = []
    for word in shlex.split(line):
        whole = re.fullmatch(r"\$\{(\w+)\}", word)
        split = re.fullmatch(r"\$(\w+)", word)
        words += [variables[whole[1]]] if whole else variables[split[1]].split() if split else [word]
    return machine.run(*words, root=True, timeout=120)


def test_new_profiles_get_folder_and_wiring_by_themselves(controller, account, everything):
    modes = ("--partition-mode", "per-user", "--cluster-user", "1000")
    done = install(controller, *modes, "--sha256", everything[1])
    assert done.returncode == 0, done.stdout + done.stderr
    verified = controller.run("systemd-analyze", "verify", f"{UNITS}/hyperpod-jlab-wiring.timer", root=True)
    assert "hyperpod-jlab" not in verified.stderr, verified.stderr

    done = once(controller)
    assert done.returncode == 0, done.stdout + done.stderr
    account.profiles[DOMAIN, "dora"] = Profile()
    done = once(controller)
    assert done.returncode == 0, done.stdout + done.stderr
    found = (controller.partition / "dora").stat()
    # The bits of the group are the list's mask: the group itself has none.
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (200001, 0o770)
    lists = os.getxattr(controller.partition / "dora", "system.posix_acl_access")
    assert struct.pack("<HHI", 0x02, 7, 1000) in lists  # user 1000, rwx (acl(5), Linux' posix_acl_xattr.h)
    assert account.profiles[DOMAIN, "dora"].file_systems != []

    done = install(controller, "--partition-mode", "shared", "--sha256", everything[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert once(controller).returncode == 0
    assert (controller.partition / "shared").is_dir()
    assert account.profiles[DOMAIN, "dora"].file_systems == []

    done = controller.run("bash", "/fsx/cluster/install.sh", "--remove", root=True)
    assert done.returncode == 0, done.stderr
    left = controller.run("bash", "-c", f"ls {UNITS}/hyperpod-jlab* /opt/hyperpod-jlab/venv")
    assert left.stdout == ""
    assert (controller.partition / "dora").is_dir()


@pytest.mark.full
def test_only_what_the_list_names_is_installed(controller, everything):
    """Who may write to the folder can neither add a wheel nor exchange one."""
    folder = controller.partition / "packages"
    wheel = next(folder.glob("httpx-*.whl"))
    # A newer one than all, which pip would take if it looked there.
    (folder / "httpx-0.99.0-py3-none-any.whl").write_bytes(b"not even a wheel")
    done = install(controller, "--partition-mode", "per-user", "--sha256", everything[1])
    assert done.returncode == 0, done.stdout + done.stderr
    installed = controller.run("ls", "/opt/hyperpod-jlab/venv/bin/hpj", root=True)
    assert installed.returncode == 0
    assert controller.run("bash", "-c", "ls -d /tmp/tmp.*", root=True).returncode != 0

    controller.run("bash", "/fsx/cluster/install.sh", "--remove", root=True)
    wheel.write_bytes(b"somebody else's")
    done = install(controller, "--partition-mode", "per-user", "--sha256", everything[1])
    assert done.returncode != 0
    assert "is not the one in its SHA256SUMS" in done.stderr
    assert controller.run("ls", "/opt/hyperpod-jlab/venv", root=True).returncode != 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            ("--partition-mode", "shared", "--sha256", "0" * 64, "--package", "hyperpod-jlab==1.0"),
            "--sha256 is of a WHEEL or a FOLDER",
        ),
        (("--partition-mode", "per-user", "--sha256", "0" * 64), "does not have the SHA-256"),
        (("--partition-mode", "both"), "--partition-mode is shared or per-user"),
        ((), "--partition-mode is missing"),
        (("--partition-mode", "shared", "--shared-path", "/a b"), "cannot be used"),
        (("--partition-mode", "shared", "--cluster-user", "$(id)"), "cannot be used"),
        (("--partition-mode", "shared", "--mounted-at", "/opt"), "nothing is mounted at /opt"),
        (("--partition-mode", "shared", "--python", "/usr/bin/false"), "no Python 3.11 or newer"),
        (("--force",), "unknown: --force"),
    ],
)
def test_what_is_wrong_is_said_and_no_unit_is_written(controller, more, words):
    done = install(controller, *more)
    assert done.returncode != 0
    assert words in done.stderr
    assert controller.run("ls", f"{UNITS}/hyperpod-jlab-wiring.timer").returncode != 0

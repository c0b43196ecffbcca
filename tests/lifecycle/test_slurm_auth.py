"""How a space's Slurm client says who it is, besides a key that is a file: a token of its own (JWT), and a key out of Secrets Manager."""

from __future__ import annotations

import base64
import json
import re
import subprocess

import pytest

from testbed.loopback import Handler, Loopback
from tests.lifecycle.image import TREE, client_packages
from tests.lifecycle.space import POINT, Space
from tests.lifecycle.test_in_space import message, returned, steps
from tests.lifecycle.test_slurm import digest, prepare, user_1000
from tests.slurm.cluster import ONE, running

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]
"""They install and start things, on machines that have other work too."""

TOKEN = ".slurm/token"


@pytest.fixture(scope="module")
def cluster(package, tmp_path_factory):
    """A controller that takes tokens too."""
    # Not part of install-slurm.sh: only this needs it.
    subprocess.run([TREE / "scripts" / "apt-install.sh", "slurm-wlm-jwt-plugin"], check=True, timeout=300)
    key = tmp_path_factory.mktemp("jwt") / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    jwt = ("AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={key}")
    options = [word for line in jwt for word in ("--option", line)]
    with ONE.only(running(*user_1000(), *options, nodes=1)) as made:
        prepare(made, package)
        client_packages(made.partition / "slurm-jwt", "slurm-wlm-jwt-plugin", "libjwt0")
        yield made


@pytest.fixture
def secrets(cluster):
    """Secrets Manager with the cluster's key, as the AWS CLI asks it."""
    key = (cluster.folder / "etc" / "munge.key").read_bytes()

    class Keeper(Handler):
        def take(self) -> None:
            found = json.loads(self.body())["SecretId"] == "hyperpod/munge"
            told = {"Name": "hyperpod/munge", "SecretBinary": base64.b64encode(key).decode()}
            body = json.dumps(told if found else {"__type": "ResourceNotFoundException"}).encode()
            self.answer(200 if found else 400, body)

    with Loopback(Keeper) as server:
        yield server.url


@pytest.fixture
def started(cluster, base, conda, secrets):
    variables = {
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": secrets,
        "AWS_ACCESS_KEY_ID": "AKIATESTBEDEXAMPLE01",
        "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
    }
    with Space(base / "space", cluster.partition, conda, folder="/team", variables=variables) as made:
        yield made


def submitted(space):
    done = space.run("hpj", "submit", "-c", "echo it is $(id -u)", "--wait", "--json")
    assert done.returncode == 0, done.stdout + done.stderr + space.log()
    run = json.loads(done.stdout)
    assert (run["cluster"], run["state"]) == ("ml-cluster", "succeeded")
    return run


def of_slurm(cluster, **more):
    return {
        "package": "hyperpod-jlab",
        "login_nodes": (),
        "slurm_bin": "/usr/bin",
        "slurm_conf": str(POINT / "slurm.conf"),
        "python": cluster.python_on_nodes,
        **more,
    }


def recipe(home, user):
    """The README's commands that make a token, for another folder and user."""
    text = (TREE / "lifecycle-configs" / "README.md").read_text()
    (found,) = re.findall(r"```\n(install -d [^`]*scontrol token[^`]*)```", text)
    for theirs, ours in (("/fsx/alice", str(home)), ("alice", user), ("200001", "1000")):
        assert theirs in found
        found = found.replace(theirs, ours)
    return found


@pytest.mark.full
def test_a_token_of_ones_own_and_a_renewed_one(started, script, cluster):
    text = script(
        **of_slurm(
            cluster,
            slurm_client="slurm-jwt/",
            slurm_client_sha256=digest(cluster.partition / "slurm-jwt" / "SHA256SUMS"),
            slurm_auth="jwt",
            slurm_token=TOKEN,
        )
    )
    returned(*started.lifecycle(text))
    status = started.ended()
    assert "somebody on the cluster has to write it" in message(status, "client")

    name = cluster.exec("ctl", "id", "-un", "1000").strip()
    folder = cluster.partition / ".slurm"
    cluster.exec("ctl", "bash", "-ec", recipe(cluster.partition, name))
    secret = (folder / "token").read_text().strip()
    # What was written is read at the next call, without another start.
    submitted(started)
    returned(*started.lifecycle(text))
    status = started.ended()
    assert steps(status)["client"] == "done", started.log()
    assert started.run("pgrep", "munged", root=True).returncode == 1
    assert secret not in started.log()
    assert secret not in started.run("cat", "/etc/hyperpod-jlab/config.toml").stdout

    (folder / "token").write_text("x.y.z")
    refused = started.run("hpj", "submit", "-c", "true", "--wait")
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr


@pytest.mark.full
def test_a_key_of_secrets_manager(started, script, cluster):
    munge = of_slurm(
        cluster,
        slurm_client="slurm/",
        slurm_client_sha256=digest(cluster.partition / "slurm" / "SHA256SUMS"),
        slurm_auth="munge",
        munge_key_sha256=digest(cluster.folder / "etc" / "munge.key"),
    )
    returned(*started.lifecycle(script(**munge, munge_key="secret:nobody")))
    assert message(started.ended(), "client") == "the munge key cannot be read"
    returned(*started.lifecycle(script(**munge, munge_key="secret:hyperpod/munge")))
    assert steps(started.ended())["client"] == "done", started.log()
    submitted(started)

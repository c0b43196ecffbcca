"""The scripts as text: short, clean, the same for the same settings, and nothing of a setting is ever a command."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_jlab.admin.lifecycle.scripts import (
    APPS,
    MAX_BASE64,
    ScriptSettings,
    cluster_table,
    config_name,
    encoded,
    render,
)
from hyperpod_jlab.core.errors import InvalidInputError

LONG = "x" * 60
SLURM = ScriptSettings(
    cluster="ml-cluster",
    region="us-west-2",
    orchestrator="slurm",
    file_system="fs-0123456789abcdef0",
    package=f"s3://bucket-of-the-team/{LONG}/packages/hyperpod-jlab-1.2.3/",
    package_sha256="a" * 64,
    slurm_client=f"s3://bucket-of-the-team/{LONG}/packages/slurm-24.11/",
    slurm_client_sha256="b" * 64,
    slurm_user="ubuntu",
    python="/fsx/shared/environments/training/bin/python",
)
MUNGE = replace(
    SLURM,
    slurm_auth="munge",
    munge_key="secret:m",
    munge_key_sha256="c" * 64,
    tools="hyperpod-jlab/tools.tar.gz",
    tools_sha256="d" * 64,
)
JWT = replace(SLURM, slurm_auth="jwt", slurm_token=".slurm/token")
SSH = replace(SLURM, slurm_client=None, slurm_client_sha256=None, login_nodes=("ubuntu@10.1.2.3", "login-2"))
EKS = ScriptSettings(
    cluster="research-eks",
    region="us-gov-west-1",
    orchestrator="eks",
    file_system=None,
    package="hyperpod-jlab==1.2.3",
    package_sha256=None,
    eks="research",
    namespace="hyperpod-ns-vision",
    image="123456789012.dkr.ecr.us-gov-west-1.amazonaws.com/train:1",
    claim="fsx-claim",
)
KINDS = {
    "ssh": SSH,
    "client": SLURM,
    "munge": MUNGE,
    "jwt": JWT,
    "eks": EKS,
    "no kubeconfig": replace(EKS, kubeconfig=False),
    "tools": replace(EKS, tools=f"s3://bucket-of-the-team/{LONG}/tools.tar.gz", tools_sha256="d" * 64),
}


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_is_short_and_clean(app, kind):
    script = render(app, KINDS[kind])
    assert len(encoded(script)) <= MAX_BASE64
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.stderr == ""
    done = subprocess.run(
        [Path(sys.executable).parent / "shellcheck", "-"], input=script, text=True, capture_output=True, timeout=60
    )
    assert done.stdout == ""


def test_the_same_settings_give_the_same_bytes_and_name():
    assert render("jupyterlab", MUNGE) == render("jupyterlab", MUNGE)
    names = {config_name(app, render(app, one)) for app in APPS for one in KINDS.values()}
    assert len(names) == len(APPS) * len(KINDS)
    assert all(re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name) for name in names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder", ["/alice", ""])
def test_the_table_is_one_of_our_configuration(kind, folder):
    from hyperpod_jlab.core.config import Settings

    text = cluster_table(KINDS[kind])
    text = text.replace("@FOLDER@", folder).replace("@SUB@", folder[1:])
    read = Settings.model_validate(tomllib.loads(text))
    cluster = read.clusters[KINDS[kind].cluster]
    assert cluster.hyperpod == KINDS[kind].cluster
    if cluster.orchestrator == "kubernetes":
        assert (cluster.storage.sub_path, cluster.storage.mount) == (folder[1:], "/data")
    else:
        assert cluster.storage == f"/fsx{folder}"


BAD = [
    ("cluster", "a; rm -rf ~"),
    ("region", "us-west-2$(id)"),
    ("file_system", "../.."),
    ("package", "packages/../../x"),
    ("package", "s3://b"),
    ("package", "hyperpod-jlab==1; id"),
    ("package", "torch==1.0"),
    ("package_sha256", None),
    ("package_sha256", "A" * 64),
    ("slurm_client_sha256", None),
    ("slurm_user", "root; id"),
    ("login_nodes", ("-oProxyCommand=id",)),
    ("node_mount", "fsx"),
    ("slurm_conf", "/etc/a b"),
    ("munge_key", None),
    ("munge_key_sha256", "0"),
    ("slurm_bin", "/opt/$(id)"),
    ("tools", "tools/"),
    ("tools", "a;id.tar.gz"),
    ("tools_sha256", "0"),
]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_a_wrong_setting_is_refused_by_its_name(field, value):
    with pytest.raises(InvalidInputError) as raised:
        render("jupyterlab", replace(MUNGE, **{field: value}))
    assert raised.value.detail["field"] == field
    assert raised.value.hint


def test_eks_needs_its_name_and_jwt_its_token():
    for settings, field in (
        (replace(EKS, eks=None), "eks"),
        (replace(JWT, slurm_token=None), "slurm_token"),
        (replace(EKS, slurm_auth="munge"), "munge_key"),
    ):
        with pytest.raises(InvalidInputError) as raised:
            render("jupyterlab", settings)
        assert raised.value.detail["field"] == field


def test_one_that_would_be_too_long_is_refused():
    many = tuple(f"login-{number}.{LONG}.example.com" for number in range(30))
    with pytest.raises(InvalidInputError) as raised:
        render("jupyterlab", replace(SSH, login_nodes=many))
    assert raised.value.code == "script_too_long"


def test_a_quote_stays_a_letter():
    from hyperpod_jlab.admin.lifecycle.scripts import _shell_quote

    odd = "a'b\"c$(id)`id`\\\n"
    done = subprocess.run(["bash", "-c", f"printf %s {_shell_quote(odd)}"], capture_output=True, text=True)
    assert done.stdout == odd


CONFIGS = Path(__file__).parents[2] / "lifecycle-configs"
COPIES = {"begin/fetch.sh": "copy", "cluster/install.sh": "take"}
"""What copies a file from where users may write, by script."""


def copied(folder, script, make):
    """What the script's copying of `from` gives after some commands; the script itself is not started."""
    text = (CONFIGS / script).read_text().replace('\nmain "$@"\n', "\nset +e\n")
    (folder / "script.sh").write_text(text)
    words = f'source ./script.sh; {make}; {COPIES[script]} from to; echo "it gave $?"'
    done = subprocess.run(["bash", "-c", words], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize("script", COPIES)
@pytest.mark.parametrize(
    "make",
    [
        "mkfifo from",
        "ln -s /dev/zero from",
        "mkfifo pipe; ln -s pipe from",
        "mkdir from",
        "ln -s nowhere from",
        "truncate -s 3G from",
    ],
)
def test_what_never_ends_is_not_copied(tmp_path, script, make):
    assert re.fullmatch(r"it gave [1-9]\d*\n", copied(tmp_path, script, make))
    assert not (tmp_path / "to").is_file() or (tmp_path / "to").stat().st_blocks == 0


@pytest.mark.parametrize("script", COPIES)
@pytest.mark.parametrize("make", ["echo x >from", "echo x >file; ln -s file from"])
def test_a_file_is_copied(tmp_path, script, make):
    assert copied(tmp_path, script, make) == "it gave 0\n"
    assert (tmp_path / "to").read_text() == "x\n"

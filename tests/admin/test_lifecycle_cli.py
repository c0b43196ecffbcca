"""Lifecycle configurations as an admin types them: the file, the script, plan, apply, status and destroy."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from hyperpod_jlab.admin.fsx.aws import MAX_TRIES
from hyperpod_jlab.admin.lifecycle.commands import EXAMPLE
from testbed.aws.example import lustre
from testbed.aws.replies import ApiError
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.aws.conftest import REGION

WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
SHARED = (*WHERE, "--partition-mode", "shared")
TEXT = """\
cluster = "ml-cluster"
orchestrator = "slurm"
package = "hyperpod-jlab==0.1.0"
login_nodes = ["login.example.com"]
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """SageMaker is quick here, so it is looked at often."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "lifecycle.toml"
    made.write_text(TEXT)
    return made


def test_plan_apply_status_change_and_destroy(account, hpj, file, disk):
    words = (*SHARED, "--lifecycle-file", str(file), "--mounted-at", str(disk))
    done = hpj("admin", "plan", *words).ok()
    assert f"+ domain {DOMAIN}, JupyterLab: none of ours -> hyperpod-jlab-jupyterlab-" in done.out
    assert account.lifecycle_configs == {}
    hpj("admin", "apply", *words, "--yes").ok()
    assert hpj("admin", "status", *words).ok().out.endswith("up to date\n")
    made = {config.app_type: config for config in account.lifecycle_configs.values()}
    assert sorted(made) == ["CodeEditor", "JupyterLab"]
    script = base64.b64decode(made["JupyterLab"].content).decode()
    shown = hpj("admin", "lifecycle", "show", "--app", "jupyterlab", "--lifecycle-file", str(file))
    # The plan knows the region and the file system besides.
    assert shown.code == 2
    assert "region" in shown.err
    file.write_text(f'{TEXT}region = "{REGION}"\nfile_system = "{FILE_SYSTEM}"\n')
    shown = hpj("admin", "lifecycle", "show", "--app", "jupyterlab", "--lifecycle-file", str(file))
    assert shown.ok().out == script

    file.write_text(TEXT.replace("login.example.com", "login-2.example.com"))
    drift = hpj("admin", "status", *words)
    assert drift.code == 1
    assert "built in -> hyperpod-jlab-jupyterlab-" in drift.out
    hpj("admin", "apply", *words, "--yes").ok()
    assert len(account.lifecycle_configs) == 2
    assert hpj("admin", "status", *words).ok().out.endswith("up to date\n")

    # Without the file nothing is said of them, and nothing changes.
    hpj("admin", "apply", *SHARED, "--mounted-at", str(disk), "--yes").ok()
    assert len(account.lifecycle_configs) == 2
    hpj("admin", "destroy", *WHERE, "--yes").ok()
    assert account.lifecycle_configs == {}
    assert account.domains[DOMAIN].app_settings["JupyterLab"] == {}


def test_what_aws_knows_of_a_cluster_need_not_be_said(account, hpj, tmp_path):
    made = account.add_cluster("on-eks", REGION, orchestrator=account.eks("research", REGION))
    made.add_group("workers", "ml.g5.8xlarge", 1, storage=[lustre(REGION)])
    file = tmp_path / "short.toml"
    file.write_text('apps = ["code-editor"]\npackage = "hyperpod-jlab==0.1.0"\nimage = "i:1"\n')
    words = ("--app", "code-editor", "--lifecycle-file", str(file))
    told = hpj("admin", "lifecycle", "show", *words, "--cluster", "on-eks", "--json").ok().json
    assert told["name"].startswith("hyperpod-jlab-code-editor-")
    assert "CLUSTER='on-eks'\n" in told["script"]
    assert f"REGION='{REGION}'\n" in told["script"]
    assert f"FILE_SYSTEM='{FILE_SYSTEM}'\n" in told["script"]
    done = hpj("admin", "lifecycle", "show", *words, "--cluster", "nope", "--json")
    assert (done.code, done.error["code"]) == (3, "not_found")


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("package = ", "path", "not valid TOML"),
        ('packge = "x"', "packge", "did you mean 'package'"),
        ('apps = ["emacs"]', "apps", "jupyterlab, code-editor"),
        ('start = "always"', "start", "built-in or default"),
        ('package = "hyperpod-jlab==0.1.0"', "cluster", "has no cluster"),
        (TEXT.replace('"slurm"', '"pbs"'), "orchestrator", "valid: eks, slurm"),
        (TEXT.replace('["login.example.com"]', '"x"'), "login_nodes", "must be a list, not 'x'"),
        (f'{TEXT}kubeconfig = "maybe"\n', "kubeconfig", "must be true or false, not 'maybe'"),
        (f'{TEXT}package_sha256 = "{"0" * 64}"\n', "package_sha256", "cannot be used"),
        (EXAMPLE, "cluster", "has no cluster"),
        (f'cluster = "c"\norchestrator = "slurm"\n{EXAMPLE}', "login_nodes", "'...' cannot be used"),
        (TEXT.replace('"hyperpod-jlab==0.1.0"', "7"), "package", "must be text, not 7"),
        (TEXT.replace("hyperpod-jlab==0.1.0", "a.whl"), "package_sha256", "missing"),
        (TEXT.replace("ml-cluster", "a'; rm -rf /"), "cluster", "cannot be used"),
    ],
)
def test_a_wrong_file_says_what_is_wrong_and_nothing_is_done(account, hpj, tmp_path, text, field, words):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    done = hpj("admin", "apply", *SHARED, "--lifecycle-file", str(file), "--yes", "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, field)
    assert words in f"{done.error['message']} {done.error['hint']}"
    assert account.lifecycle_configs == {}
    assert account.domains[DOMAIN].file_systems == []


def test_a_file_that_is_not_there(account, hpj, tmp_path):
    done = hpj("admin", "plan", *SHARED, "--lifecycle-file", str(tmp_path / "none.toml"))
    assert done.code == 2
    assert "none.toml" in done.err


@pytest.mark.parametrize("mode", ["shared", "per-user"])
def test_files_of_the_partition_are_seen_in_mode_shared_only(account, hpj, tmp_path, mode):
    file = tmp_path / "relative.toml"
    said = {"package": "wheels/", "slurm_client": "client.tar.gz", "munge_key": "secret:munge"}
    pins = "".join(f'{name}_sha256 = "{"a1" * 32}"\n' for name in said)
    text = TEXT.replace("hyperpod-jlab==0.1.0", said["package"]) + 'slurm_auth = "munge"\n'
    text += f'slurm_client = "{said["slurm_client"]}"\nmunge_key = "{said["munge_key"]}"\n{pins}'
    file.write_text(text)
    words = ("--partition-mode", mode, "--lifecycle-file", str(file), "--json")
    told = hpj("admin", "plan", *WHERE, *words).ok().json["findings"]
    found = {(one["code"], one["level"], one["field"]) for one in told}
    assert found == (
        {("out_of_sight", "warning", "package"), ("out_of_sight", "warning", "slurm_client")}
        if mode == "per-user"
        else set()
    )
    file.write_text(text.replace('"wheels/"', '"s3://mine/w/"').replace('"client', '"/client'))
    assert hpj("admin", "plan", *WHERE, *words).ok().json["findings"] == []


def test_the_example_is_a_file_that_works_once_it_is_filled_in(account, hpj, tmp_path):
    assert hpj("admin", "lifecycle", "example").ok().out == EXAMPLE
    file = tmp_path / "example.toml"
    account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    words = ("--lifecycle-file", str(file), "--cluster", "ml-cluster")
    filled = EXAMPLE
    for field, value in (("login_nodes", "login-1"), ("package_sha256", "a1" * 32)):
        file.write_text(filled)
        done = hpj("admin", "lifecycle", "show", "--app", "jupyterlab", *words, "--json")
        assert (done.code, done.error["detail"]["field"]) == (2, field)
        assert "'...' cannot be used" in done.error["message"]
        filled = re.sub(rf'^({field} = \[?)"\.\.\."', rf'\1"{value}"', filled, flags=re.MULTILINE)
    file.write_text(filled)
    for app in ("jupyterlab", "code-editor"):
        script = hpj("admin", "lifecycle", "show", "--app", app, *words).ok().out
        bash = shutil.which("bash")
        assert bash is not None
        subprocess.run([bash, "-n"], input=script, text=True, check=True)


def test_a_later_round_mends_what_was_in_use(account, endpoint, hpj, file, disk):
    words = (*SHARED, "--lifecycle-file", str(file), "--mounted-at", str(disk))
    left = MAX_TRIES + 1  # more than the first round tries

    def busy(action, when):
        nonlocal left
        wanted = action == "sagemaker:UpdateDomain" and when == "before" and left > 0
        if wanted and "JupyterLabAppSettings" in str(endpoint.calls[-1].given):
            left -= 1
            raise ApiError("ResourceInUse", "Cannot update while another update is in progress")

    endpoint.faults.interrupt = busy
    hpj("admin", "apply", *words, "--yes").ok()
    assert left == 0
    assert hpj("admin", "status", *words).ok().out.endswith("up to date\n")

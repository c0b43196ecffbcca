"""``hpj --json`` on the embedded cluster: clusters, storage, keeping house, and what is said of bad input."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from tests.cli.conftest import Home, Hpj, make_home, write_notebook
from tests.cli.test_storage_files import ARCHIVED, DIRTY, LOCAL, LOST, RELEASED, Lustre
from tests.golden.asking import MACHINE, OF_A_RUN, asked, ended, told
from tests.golden.frozen import Golden

pytestmark = pytest.mark.local

ROOM = ("total", "free", "files_free", "index")
SIZES = ("cpus", "memory", "accelerators", "accelerators_free", "gpus")
OWNER = ("evidence", "parents")
"""What names the user, and each folder above the test's own."""
OF_THIS_MACHINE = {*("versions", "local-python", "parents", "privacy", "room", "storage", "studio", "network")}
"""Checks of the doctor whose result is another one elsewhere."""


@pytest.fixture(autouse=True)
def plain(no_aws: pytest.MonkeyPatch, tmp_path) -> None:
    """No AWS, a home folder, and one disk."""
    (tmp_path / "person").mkdir()
    no_aws.setenv("HOME", str(tmp_path / "person"))
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 259:1 / / rw - ext4 /dev/root rw\n")
    no_aws.setenv("HYPERPOD_MOUNT_TABLE", str(mounts))


@pytest.fixture
def home(tmp_path) -> Home:
    return make_home(tmp_path, slots=1)


def check(golden: Golden, name: str, document: Any, *varying: str) -> None:
    golden.check(f"local/{name}", document, varying={*OF_A_RUN, *varying}, also=MACHINE)


def test_clusters(golden: Golden, hpj: Hpj, home: Home) -> None:
    nodes = ("nodes", "nodes --cluster local --limit 1")
    idle = asked(hpj, *nodes, "queues", "clusters", "jobs", "jobs --ended", "runs")
    check(golden, "idle", idle, *SIZES)
    home.config.write_text(
        'default_cluster = "a"\n[clusters.a]\norchestrator = "local"\nslots = 3\n[clusters.local]\nslots = 2\n'
    )
    lines = ("clusters", "queues", "queues --cluster a", "runs --cluster a", "runs --cluster c")
    check(golden, "other-configuration", asked(hpj, *lines), *SIZES)


def test_config_and_init(golden: Golden, hpj: Hpj, home: Home) -> None:
    lines = (
        "config add local",
        "config add a/b --dry-run",
        "config add x --login-node 'a b' --dry-run",
        "init code-editor",
        "init code-editor --cluster local",
        "init code-editor nowhere",
        "init code-editor --cluster nobody",
        "completion bash",
        "completion tcsh",
    )
    answers = asked_texts(hpj, *lines)
    check(golden, "config", answers)
    written = (home.work / ".vscode" / "tasks.json").read_text()
    golden.check("local/tasks", json.loads(written))


def asked_texts(hpj: Hpj, *lines: str) -> dict[str, Any]:
    """As `asked`; a command that prints no JSON has its text."""
    found: dict[str, Any] = {}
    for line in lines:
        result = hpj(*line.split(), "--json")
        if result.out.startswith("{") or not result.out:
            found[line] = told(result)
        else:
            found[line] = {"exit": result.code, "text": result.out.splitlines()[:1]}
    return found


def test_storage(golden: Golden, hpj: Hpj, home: Home) -> None:
    before = asked(hpj, "storage --no-aws")
    check(golden, "storage-before", before, *ROOM, *OWNER)
    hpj("submit", "-c", "true", "--run-id", "one", "--wait").ok()
    (home.partition / "data").mkdir()
    (home.partition / "data" / "set.csv").write_text("1\n")
    lines = (
        "storage --no-aws",
        f"storage --no-aws {home.partition}/data/set.csv",
        f"storage --no-aws {home.partition}/data",
        "storage --no-aws nowhere",
        "storage link",
        "storage link again",
        "storage link a/b",
        "storage unlink again",
        "storage unlink",
        "storage unlink",
        "storage migrate --dry-run",
        "storage migrate",
        f"storage state {home.partition}/data/set.csv",
        f"storage release {home.partition}/data/set.csv",
    )
    answers = {line.replace(str(home.root), "<tmp>"): asked(hpj, line)[line] for line in lines}
    check(golden, "storage", answers, *ROOM, *OWNER)


def test_files_on_lustre(golden: Golden, hpj: Hpj, home: Home, no_aws: pytest.MonkeyPatch) -> None:
    lustre = Lustre(home.root, no_aws)
    flags = {"new": LOCAL, "both": ARCHIVED, "dirty": DIRTY, "released": RELEASED, "lost": LOST}
    for name, flag in flags.items():
        lustre.add(name, flag)
    no_aws.chdir(lustre.folder)
    lines = (
        "storage state new both dirty released lost nowhere",
        "storage hydrate new released nowhere",
        "storage release both dirty new",
    )
    check(golden, "lustre", asked(hpj, *lines))


def without_machine(answer: dict[str, Any]) -> dict[str, Any]:
    """A doctor's answer without what is another one elsewhere."""
    for one in answer["out"][0]["checks"]:
        if one["key"] in OF_THIS_MACHINE:
            one.update(dict.fromkeys(("level", "evidence", "fix", "who"), "<of this machine>"))
    return answer


def test_doctor(golden: Golden, hpj: Hpj) -> None:
    answer = asked(hpj, "doctor")["doctor"]
    # A warning of this machine's does not make it unwell, a failure would.
    check(golden, "doctor", without_machine(answer))
    check(golden, "doctor-errors", asked(hpj, "doctor --cluster nobody"))


def test_clean(golden: Golden, hpj: Hpj, home: Home) -> None:
    (home.work / "main.py").write_text("print(1)\n")
    hpj("submit", "main.py", "--run-id", "good").ok()
    hpj("submit", "-c", "exit 3", "--run-id", "bad").ok()
    ended(hpj, "good", "bad")
    time.sleep(1.1)  # `--older 1s` goes by the file system's clock, in seconds
    lines = (
        "clean --dry-run",
        "clean --older 1s --dry-run",
        "clean --older 1s",
        "clean --older 1s --keep-failed --yes",
        "clean --older 1s --yes",
        "runs",
        "clean --older soon",
    )
    check(golden, "clean", asked(hpj, *lines))


BAD = (
    "submit",
    "submit nobody.py",
    "submit nobody.ipynb",
    "submit data.csv",
    "submit -c ''",
    "submit train.py other.py",
    "submit -c true --nodes 0",
    "submit -c true --nodes many",
    "submit -c true --gpu-per-node 1",
    "submit -c true --launcher torhcrun",
    "submit -c true --time-limit soon",
    "submit -c true --memory 1Q",
    "submit -c true --array 3-1",
    "submit -c true --env A",
    "submit -c true --cluster nobody",
    "submit -c true --after nobody",
    "submit -c true --run-id 'not good'",
    "submit -c true --secret NOT_SET_ANYWHERE",
    "submit -c true --spec nobody.toml",
    "submit n.ipynb --cells 9",
    "submit n.ipynb --cells 2-1",
    "submit n.ipynb --tag trian",
    "submit train.py --cells 1",
    "clone nobody",
    "show nobody",
    "show last",
    "show ../x",
    "logs nobody",
    "logs nobody --grep '('",
    "logs nobody --rank x",
    "logs nobody --since yesterday",
    "why nobody",
    "cancel nobody",
    "cancel nobody noone",
    "forward nobody 80",
    "forward nobody 0",
    "runs --state runing",
    "runs --limit 0",
    "runs --cursor nonsense",
    "jobs --cluster nobody",
    "node drain local-0",
    "metrics nobody",
    "subnit x.py",
)


def test_bad_input(golden: Golden, hpj: Hpj, home: Home) -> None:
    for name in ("train.py", "other.py", "data.csv"):
        (home.work / name).write_text("")
    write_notebook(home.work / "n.ipynb", "1", ("2", ["train"]))
    assert "NOT_SET_ANYWHERE" not in os.environ
    found = asked(hpj, *BAD)
    check(golden, "bad-input", found)
    home.config.write_text("[clusters.local]\nslots = 0\nslot = 1\n")
    check(golden, "bad-configuration", asked(hpj, "runs", "clusters"))
    check(golden, "doctor-fails", without_machine(asked(hpj, "doctor")["doctor"]))
    home.config.write_text("[clusters\n")
    check(golden, "no-configuration", asked(hpj, "runs"))

"""The launcher's signs of life, for HyperPod's agent: written while its loop turns, and only where a file for them is named."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hyperpod_jlab.engines.kubernetes.kinds.hyperpod_job import HyperPodPyTorchJob
from hyperpod_jlab.launcher.contract import HEARTBEAT_VARIABLE
from hyperpod_jlab.launcher.heartbeat import Heartbeat
from tests.kubernetes.manifest_cases import CASES, text

from .conftest import until
from .pods import Pods


def test_a_line_is_due_every_30_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stdout.log"
    monkeypatch.setenv(HEARTBEAT_VARIABLE, str(path))
    heartbeat = Heartbeat()
    for now, lines in ((5.0, 1), (34.9, 1), (35.0, 2), (200.0, 3), (201.0, 3)):
        heartbeat.beat(now)
        assert path.read_bytes() == Heartbeat.LINE * lines


@pytest.mark.parametrize("value", [None, "", "missing/stdout.log"])
def test_without_a_file_nothing_is_written(value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(HEARTBEAT_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(HEARTBEAT_VARIABLE, value)
    Heartbeat().beat(0.0)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stdout.log").symlink_to(tmp_path / "other")
    monkeypatch.setenv(HEARTBEAT_VARIABLE, str(tmp_path / "stdout.log"))
    Heartbeat().beat(0.0)
    assert not (tmp_path / "other").exists()


def test_the_rule_matches_the_line() -> None:
    """As the agent does it: Python's `re.match` on a line of the file."""
    (pattern,) = re.findall(r"logPattern: '(.*)'", text(CASES["hyperpod_job_stop_on"]))
    assert re.match(pattern, Heartbeat.LINE.decode())


@pytest.mark.parametrize(
    ("error_file", "expected"),
    [("/tmp/t/attempt_1/0/error.json", "/tmp/t/attempt_1/0/stdout.log"), ("", ""), (None, "")],
)
def test_the_file_is_the_agents_stdout_file(error_file: str | None, expected: str) -> None:
    words = HyperPodPyTorchJob().wrap(["/bin/sh", "-c", f'echo "$0 ${HEARTBEAT_VARIABLE}"'], 1)
    words = [word.replace("$$", "$") for word in words[words.index("/bin/sh") :]]  # as the kubelet
    environment = {"RANK": "3", "MASTER_ADDR": "a"}
    if error_file is not None:
        environment["TORCHELASTIC_ERROR_FILE"] = error_file
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"--node-rank=3 {expected}\n"


@pytest.mark.local
def test_a_pod_gives_signs_of_life_and_its_ranks_do_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stdout.log"
    monkeypatch.setenv(HEARTBEAT_VARIABLE, str(path))
    pods = Pods(tmp_path, nodes=1)
    pods.shell(f'echo "up [${HEARTBEAT_VARIABLE}]"; until [ -e go ]; do sleep 0.05; done')
    try:
        pods.start(0).until_up(1, 0)
        until(path.exists, "a sign of life")
        (pods.bundle.folder / "work" / "go").touch()
        assert pods.ended() == [0]
        assert pods.bundle.rank_log(0) == b"up []\n"
    finally:
        pods.end_all()
    assert path.read_bytes() == Heartbeat.LINE

"""Code that travels to pods without shared storage: in the job's own object, or in ConfigMaps that it owns."""

from __future__ import annotations

import base64
import os
import random
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from hyperpod_jlab.core.errors import ConflictError, DeniedError, RefusedError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit import code
from hyperpod_jlab.engines.kubernetes.submit.code import (
    Archive,
    build_archive,
    config_maps,
    filled,
    has_placeholder,
)
from hyperpod_jlab.engines.kubernetes.submit.create import replace_foreign
from tests.kubernetes.session_fixtures import KubernetesSession

PODS_AND_JOBS = [
    {
        "apiGroups": ["kubeflow.org"],
        "resources": ["pytorchjobs"],
        "verbs": ["get", "list", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    for name, text in {
        "launcher.py": "print('launcher')\n",
        "launch.json": "{}\n",
        "code/train.ipynb/cell-01.py": "1\n",
        "work/data/ä b.txt": "grüße\n",
        "work/run.sh": "echo\n",
        "logs/attempt-1/node-0.log": "not this\n",
        "secrets/TOKEN": "not this either\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "work/run.sh").chmod(0o700)
    (folder / "work/empty").mkdir()
    return folder


def unpacked(archive: Archive, tmp_path: Path, where: str) -> Path:
    """What the pod makes of an archive: the very lines that it executes."""
    target, parts = tmp_path / "there", tmp_path / "parts"
    parts.mkdir()
    environment = {"PATH": os.environ["PATH"]}
    if where == "variables":
        text = base64.b64encode(archive.data).decode()
        chunks = [text[at : at + 90] for at in range(0, len(text), 90)]
        environment |= {f"HYPERPOD_CODE_{number}": chunk for number, chunk in enumerate(chunks)}
    else:
        for number, at in enumerate(range(0, len(archive.data), 7)):
            (parts / f"part-{number:03d}").write_bytes(archive.data[at : at + 7])
    lines = code.UNPACK.replace("/hyperpod-code", str(parts))
    words = ["-c", "import os; print([n for n in os.environ if 'CODE' in n])"]
    done = subprocess.run(
        [sys.executable, "-I", "-c", lines, str(target), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n", "the ranks would inherit it"
    return target


@pytest.mark.parametrize("where", ["variables", "parts"])
def test_what_is_packed_is_unpacked(bundle: Path, tmp_path: Path, where: str) -> None:
    target = unpacked(build_archive(bundle), tmp_path, where)
    found = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert found == {
        "launcher.py",
        "launch.json",
        "code/train.ipynb/cell-01.py",
        "work/data/ä b.txt",
        "work/run.sh",
    }
    for name in found:
        assert (target / name).read_bytes() == (bundle / name).read_bytes()
    assert (target / "work/empty").is_dir()
    assert os.access(target / "work/run.sh", os.X_OK)
    assert not (target / "launcher.py").stat().st_mode & 0o111


def test_the_same_code_is_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    other = shutil.copytree(bundle, tmp_path / "other")
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
    (other / "logs/more.log").write_text("written since")
    assert build_archive(other) == build_archive(bundle)


def test_too_much_code_is_refused_with_its_size_and_its_largest_files(bundle: Path) -> None:
    (bundle / "work/data/weights.bin").write_bytes(os.urandom(code.MAX_ARCHIVE_BYTES))
    with pytest.raises(RefusedError, match=r"7\.9 MB when packed, .* at most 7\.9 MB") as caught:
        build_archive(bundle)
    assert caught.value.code == "code_too_large"
    assert "data/weights.bin (7.9 MB)" in (caught.value.hint or "")


def document() -> dict[str, Any]:
    """A manifest with two templates, as a PyTorchJob has."""
    volume = code.carried()
    pod = {
        "containers": [
            {"name": "pytorch", "env": [{"name": "A", "value": "1"}, *volume.env]},
        ],
        "volumes": [*volume.volumes],
    }
    templates = {kind: {"template": {"spec": pod}} for kind in ("Master", "Worker")}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "run-x", "labels": {"run": "x"}},
        "spec": {"pytorchReplicaSpecs": templates},
    }


def pods(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["template"]["spec"] for one in made["spec"]["pytorchReplicaSpecs"].values()]


def test_small_code_stands_in_the_object(bundle: Path) -> None:
    given = document()
    archive = build_archive(bundle)
    made = filled(given, archive)
    assert given == document(), "the manifest itself stays"
    assert has_placeholder(given)
    assert not has_placeholder(made)
    for pod in pods(made):
        variables = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        assert variables.pop("A") == "1"
        text = "".join(variables[f"HYPERPOD_CODE_{number}"] for number in range(len(variables)))
        assert base64.b64decode(text) == archive.data
        assert max(map(len, variables.values())) < 128 << 10
        assert pod["volumes"][1] == {"name": "hyperpod-code", "emptyDir": {}}
    assert archive.parts == []


def test_large_code_stands_in_config_maps_that_the_job_owns(bundle: Path) -> None:
    (bundle / "work/weights.bin").write_bytes(os.urandom(2 * code.PART_SIZE))
    archive = build_archive(bundle)
    made = filled(document(), archive)
    names = ["run-x-code-0", "run-x-code-1", "run-x-code-2"]
    for pod in pods(made):
        assert [one["name"] for one in pod["containers"][0]["env"]] == ["A"]
        sources = pod["volumes"][1]["projected"]["sources"]
        assert [one["configMap"]["name"] for one in sources] == names
    made["metadata"]["uid"] = "the-uid"
    maps = config_maps(archive, made, "run")
    assert [one["metadata"]["name"] for one in maps] == names
    data = {key: value for one in maps for key, value in one["binaryData"].items()}
    assert b"".join(base64.b64decode(data[key]) for key in sorted(data)) == archive.data
    for one in maps:
        assert len(base64.b64decode(next(iter(one["binaryData"].values())))) < 1 << 20
        assert one["metadata"]["ownerReferences"][0]["uid"] == "the-uid"


class OneObject:
    """An API server that has one object where another is to be made."""

    def __init__(self, there: dict[str, Any]) -> None:
        self.there: dict[str, Any] | None = there

    async def get(self, path: str) -> dict[str, Any]:
        assert path == "/maps/part"
        assert self.there is not None
        return self.there

    async def delete(self, path: str) -> None:
        assert path == "/maps/part"
        self.there = None

    async def post(self, path: str, body: dict[str, Any]) -> None:
        assert path == "/maps"
        if self.there is not None:
            raise ConflictError("it is there")
        self.there = body


@pytest.mark.parametrize(
    ("label", "owner", "left"),
    [("mine", "now", "old"), ("mine", "before", "new"), ("others", "before", None)],
)
async def test_only_what_an_earlier_job_of_the_run_left_is_replaced(
    label: str, owner: str, left: str | None
) -> None:
    owned = {"labels": {RUN_LABEL: label}, "ownerReferences": [{"uid": owner}]}
    server = OneObject({"metadata": {"name": "part", **owned}, "data": "old"})
    wanted = {"name": "part", "labels": {RUN_LABEL: "mine"}}
    made = {"kind": "ConfigMap", "metadata": wanted, "data": "new"}
    job = {"metadata": {"namespace": "team", "uid": "now"}}
    replacing = replace_foreign(cast("KubeClient", server), "/maps", made, job)
    if left is None:
        with pytest.raises(RefusedError, match="the namespace team already has a ConfigMap"):
            await replacing
        left = "old"
    else:
        await replacing
    assert server.there is not None
    assert server.there["data"] == left


# ------------------------------------------------------------------------------ on the cluster


@pytest.fixture
def bare(sessions: Callable[..., KubernetesSession]) -> KubernetesSession:
    """A session whose pods mount nothing, with a project that is too large for the job's object."""
    session = sessions(claim=False)
    weights = random.Random(1).randbytes(1_500_000)
    (session.folder / "weights.bin").write_bytes(weights)
    (session.folder / "read.py").write_text(
        "import os, zlib\n"
        "print(zlib.crc32(open('weights.bin', 'rb').read()))\n"
        "print([name for name in os.environ if 'CODE' in name])\n"
    )
    return session


READ: dict[str, Any] = {
    "source": {"kind": "script", "path": "read.py"},
    "files": {"project": True},
}
SAID = f"{zlib.crc32(random.Random(1).randbytes(1_500_000))}\n[]\n"


@pytest.mark.full
async def test_a_large_project_comes_whole(
    bare: KubernetesSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hyperpod_jlab.engines.kubernetes.submit import send as delivery

    threads: list[threading.Thread] = []

    def encoded(*given: Any) -> list[dict[str, Any]]:
        threads.append(threading.current_thread())
        return config_maps(*given)

    monkeypatch.setattr(delivery, "config_maps", encoded)
    run_id = await bare.submit(**READ)
    assert threads
    assert threading.current_thread() not in threads  # the event loop goes on meanwhile
    run = await bare.ended(run_id)
    assert (run.state, bare.log(run_id)) == ("succeeded", SAID)
    found = bare.cluster.get("configmaps", namespace=bare.namespace)["items"]
    mine = [one for one in found if one["metadata"]["name"].startswith(f"run-{run_id}")]
    owners = {one["metadata"]["ownerReferences"][0]["uid"] for one in mine}
    assert (len(mine), owners) == (2, {bare.job_of(run)["metadata"]["uid"]})


@pytest.mark.full
async def test_a_submit_that_broke_off_between_job_and_code_is_taken_up(
    bare: KubernetesSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hyperpod_jlab.engines.kubernetes.submit import send as delivery

    class BrokenOffError(Exception):
        pass

    def broken(*_: Any) -> None:
        raise BrokenOffError

    run_id = "broken-off"
    with monkeypatch.context() as patch:
        patch.setattr(delivery, "config_maps", broken)
        with pytest.raises(BrokenOffError):
            await bare.submit(run_id=run_id, **READ)
    assert bare.job_of(run_id)
    assert await bare.submit(run_id=run_id, **READ) == run_id
    run = await bare.ended(run_id)
    assert (run.state, bare.log(run_id)) == ("succeeded", SAID)
    assert len(bare.pods_of(run)) == 1


@pytest.mark.full
async def test_who_may_make_no_config_maps_is_told_and_leaves_no_job(
    bare: KubernetesSession, sessions: Callable[..., KubernetesSession]
) -> None:
    kubeconfig = bare.cluster.user("narrow", bare.namespace, rules=PODS_AND_JOBS)
    narrow = sessions(claim=False, kubeconfig=kubeconfig)
    for name in ("read.py", "weights.bin"):
        shutil.copy(bare.folder / name, narrow.folder / name)
    with pytest.raises(DeniedError, match="configmaps"):
        await narrow.submit(run_id="denied", **READ)
    assert narrow.cluster.run(
        "get", "pytorchjob", "run-denied", namespace=narrow.namespace
    ).returncode
    assert not narrow.hyperpod.partition.has_run("denied")
    # What is small enough needs no right beyond those.
    (narrow.folder / "weights.bin").unlink()
    run = await narrow.ended(await narrow.submit("echo small"))
    assert run.state == "succeeded"


@pytest.mark.full
async def test_too_large_a_project_is_refused_and_nothing_is_left(bare: KubernetesSession) -> None:
    (bare.folder / "huge.bin").write_bytes(os.urandom(9_000_000))
    with pytest.raises(RefusedError) as caught:
        await bare.submit(run_id="too-large", **READ)
    assert caught.value.code == "code_too_large"
    assert not bare.hyperpod.partition.has_run("too-large")


async def test_a_secret_without_a_reference_is_refused(bare: KubernetesSession) -> None:
    with pytest.raises(RefusedError, match="TOKEN cannot be passed as a file"):
        await bare.submit(secrets={"TOKEN": "x"}, environment={"secrets": {"TOKEN": ""}})

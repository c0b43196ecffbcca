"""Requests on files of the file browser, with the stand-in for Lustre's program (see `tests.storage.recorded_lfs`)."""

import json
import sys

import pytest

from testbed.aws.example import FILE_SYSTEM
from tests.storage import recorded_lfs

RELEASED, ARCHIVED = 0xD, 0x9


@pytest.fixture
def root(jp_root_dir):
    """What the file browser shows."""
    return jp_root_dir


@pytest.fixture
def fsx(tmp_path, cluster, monkeypatch):
    """A partition that the table of mounts calls the folder /alice of a Lustre file system; two clusters have it elsewhere."""
    point = tmp_path / "mnt" / FILE_SYSTEM
    (point / "data").mkdir(parents=True)
    table = tmp_path / "mountinfo"
    table.write_text(
        f"22 1 259:1 / / rw - ext4 /dev/root rw\n30 22 0:40 / {point} rw - lustre 10.0.1.2@tcp:/x5kjbbmv/alice rw\n"
    )
    monkeypatch.setenv("HYPERPOD_MOUNT_TABLE", str(table))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (cluster / "config.toml").write_text(
        f'[storage]\npath = "{point}"\n[clusters.train]\norchestrator = "slurm"\nstorage = "/fsx/alice"\n'
    )
    return point


@pytest.fixture
def states(fsx, root, tmp_path, monkeypatch):
    """Lustre's program, with the states that a test gives it."""
    program = tmp_path / "bin" / "lfs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {recorded_lfs.__file__} "$@"\n')
    program.chmod(0o755)
    table = tmp_path / "states.json"
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("LFS_STATES", str(table))

    def write(**flags):
        told: dict[str, object] = {"calls": []}
        for name, flag in flags.items():
            (fsx / "data" / name).write_text("x")
            path = root / "hyperpod-partition" / "data" / name  # as it is called in the request
            told[str(path)] = {"flags": flag, "archive": 1}
        table.write_text(json.dumps(told))

    return write


async def linked(api):
    status, told = await api.request("POST", "storage/link", {"name": "hyperpod-partition"})
    assert status == 200, told
    return told


async def paths_of(api, path):
    status, told = await api.request("GET", "storage/paths", query={"path": path})
    assert status == 200, told
    return told


async def test_the_link_lies_where_the_file_browser_shows_it(api, fsx, root):
    told = await linked(api)
    assert told == {
        "path": "hyperpod-partition",
        "link": str(root / "hyperpod-partition"),
        "partition": str(fsx),
        "made": True,
    }
    assert (root / "hyperpod-partition" / "data").is_dir()
    assert (await linked(api))["made"] is False


async def test_something_else_of_its_name_stays(api, fsx, root):
    (root / "hyperpod-partition").write_text("mine")
    status, error = await api.request("POST", "storage/link", {"name": "hyperpod-partition"})
    assert (status, error["code"]) == (409, "not_our_link")
    assert (root / "hyperpod-partition").read_text() == "mine"


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", ""])
async def test_a_link_has_a_name_that_the_file_browser_shows(api, fsx, root, name):
    status, error = await api.request("POST", "storage/link", {"name": name})
    assert (status, error["detail"]["field"]) == (400, "name")
    assert list(root.iterdir()) == []


async def test_a_path_on_each_side(api, fsx, root):
    await linked(api)
    told = await paths_of(api, "hyperpod-partition/data")
    sides = {one["cluster"]: (one["side"], one["there"]) for one in told["clusters"]}
    assert sides["train"] == ("Slurm node", "/fsx/alice/data")
    assert told["here"] == str(root / "hyperpod-partition" / "data")
    assert told["studio"] is False
    (root / "own.txt").write_text("x")
    told = await paths_of(api, "own.txt")
    (train,) = [one for one in told["clusters"] if one["cluster"] == "train"]
    assert train["there"] is None
    assert "is not on the storage partition" in train["reason"]


@pytest.mark.parametrize("path", ["../out", "/../../etc/passwd", "a/../../b", "x" * 256, "ü" * 128, "long/" * 818])
async def test_a_path_that_leads_out_of_the_root_or_is_too_long_for_any_file(api, fsx, path):
    for verb, route, body, query in (
        ("GET", "storage/paths", None, {"path": path}),
        ("POST", "storage/files/states", {"paths": [path]}, None),
        ("POST", "storage/files/actions", {"paths": [path], "action": "release"}, None),
    ):
        status, error = await api.request(verb, route, body, query=query)
        assert (status, error["detail"]["field"]) == (400, "path" if query else "paths")


async def test_states_and_bringing_back(api, states, root):
    states(here=ARCHIVED, gone=RELEASED)
    await linked(api)
    paths = [f"hyperpod-partition/data/{name}" for name in ("here", "gone", "none")]
    status, told = await api.request("POST", "storage/files/states", {"paths": paths})
    assert status == 200
    assert [(one["path"], one["done"], one["state"]) for one in told["files"]] == [
        (paths[0], "seen", "archived"),
        (paths[1], "seen", "released"),
        (paths[2], "refused", None),
    ]
    body = {"paths": paths[:2], "action": "hydrate"}
    status, told = await api.request("POST", "storage/files/actions", body)
    assert [one["done"] for one in told["files"]] == ["nothing", "asked"]
    status, told = await api.request("POST", "storage/files/states", {"paths": paths[1:2]})
    assert told["files"][0]["state"] == "hydrating"


async def test_without_lfs_that_is_said(api, fsx, root):
    (root / "a").write_text("x")
    status, error = await api.request("POST", "storage/files/states", {"paths": ["a"]})
    assert (status, error["code"]) == (422, "no_lfs")

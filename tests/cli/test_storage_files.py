"""``hpj storage state``, ``hydrate`` and ``release``, against a stand-in for Lustre's program (see `tests.storage.recorded_lfs`)."""

from __future__ import annotations

import json
import sys
import time

import pytest

from hyperpod_jlab.storage import lfs as module
from tests.storage import recorded_lfs

pytestmark = pytest.mark.local

LOCAL, ARCHIVED, DIRTY, RELEASED, LOST = 0x0, 0x9, 0xB, 0xD, 0x4D
KEPT = 0x19


class Lustre:
    """Files on what the table of mounts calls Lustre, with the states that the stand-in tells."""

    def __init__(self, root, patch):
        self.folder = root / "fsx"
        self.folder.mkdir()
        self._table = root / "states.json"
        self._write({"calls": []})
        program = root / "bin" / "lfs"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {recorded_lfs.__file__} "$@"\n')
        program.chmod(0o755)
        patch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        patch.setenv("LFS_STATES", str(self._table))
        mounts = root / "mountinfo"
        mounts.write_text(
            f"22 1 259:1 / / rw - ext4 /dev/root rw\n30 22 0:40 / {self.folder} rw - lustre 10.0.1.2@tcp:/x/alice rw\n"
        )
        patch.setenv("HYPERPOD_MOUNT_TABLE", str(mounts))

    def _write(self, states):
        self._table.write_text(json.dumps(states))

    @property
    def states(self):
        return json.loads(self._table.read_text())

    @property
    def calls(self):
        return self.states["calls"]

    def add(self, name, flags, **more):
        path = self.folder / name
        path.write_text("x")
        told = {"flags": flags, "archive": 1 if flags & 0x9 else 0, **more}
        self._write({**self.states, str(path): told})
        return str(path)


@pytest.fixture
def lustre(hpj, tmp_path, monkeypatch):
    return Lustre(tmp_path, monkeypatch)


def done(told):
    return [(one["done"], one["state"]) for one in told.json["files"]]


def test_every_state_has_its_word(hpj, lustre):
    files = {
        lustre.add("local", LOCAL): "local",
        lustre.add("begun", 0x1): "exists",
        lustre.add("archived", ARCHIVED): "archived",
        lustre.add("changed", DIRTY): "dirty",
        lustre.add("released", RELEASED): "released",
        lustre.add("lost", LOST): "lost",
        lustre.add("going", LOCAL, action="ARCHIVE running (1024 bytes moved)"): "exporting",
        lustre.add("coming", RELEASED, action="RESTORE waiting (from 0 to EOF)"): "hydrating",
        lustre.add("other", ARCHIVED, action="REMOVE waiting (from 0 to EOF)"): "busy",
        lustre.add("-a name: (0x0000000d)\n with a line", ARCHIVED): "archived",
    }
    told = hpj("storage", "state", "--json", *files).ok()
    assert {one["path"]: one["state"] for one in told.json["files"]} == files
    assert len(lustre.calls) == 2
    (going,) = [one["file"] for one in told.json["files"] if one["path"].endswith("going")]
    assert (going["action"], going["progress"]) == ("ARCHIVE", "running (1024 bytes moved)")
    table = hpj("storage", "state", *files).ok().out
    assert "in S3 only; it is restored when it is read" in table
    assert "being copied to S3, running (1024 bytes moved)" in table


def test_what_has_no_state_is_named_and_stops_no_other(hpj, lustre, home):
    good = lustre.add("good", ARCHIVED)
    unknown = lustre.folder / "unknown"  # the program has something against it
    unknown.write_text("x")
    last = lustre.add("last", RELEASED)
    (lustre.folder / "link").symlink_to(good)
    paths = [good, str(unknown), last, str(lustre.folder), str(lustre.folder / "link")]
    told = hpj("storage", "state", "--json", *paths, str(home.config), str(lustre.folder / "no"))
    assert (told.code, told.error["code"]) == (2, "file_refused")
    reasons = [one["reason"] for one in told.json["files"]]
    assert done(told)[:3] == [("seen", "archived"), ("refused", None), ("seen", "released")]
    assert "can't get hsm state" in reasons[1]
    assert reasons[3].startswith("it is not a regular file")
    assert reasons[4].startswith("it is a link")
    assert reasons[5] == "it is on ext4, not on Lustre"
    assert reasons[6] == "No such file or directory"
    assert len(told.error["detail"]["files"]) == 5


@pytest.mark.parametrize(
    ("verb", "flags", "expected", "reason"),
    [
        ("hydrate", RELEASED, "asked", None),
        ("hydrate", ARCHIVED, "nothing", "its data is on the file system"),
        ("hydrate", LOST, "refused", "its copy in S3 is lost"),
        ("release", ARCHIVED, "asked", None),
        ("release", RELEASED, "nothing", "it is released"),
        ("release", LOCAL, "refused", "it has no copy in S3"),
        ("release", DIRTY, "refused", "changed since it was copied to S3"),
        ("release", KEPT, "refused", "it is marked as never released"),
    ],
)
def test_what_each_request_does(hpj, lustre, verb, flags, expected, reason):
    path = lustre.add("data", flags)
    told = hpj("storage", verb, path, "--json")
    assert told.code == (2 if expected == "refused" else 0)
    (one,) = told.json["files"]
    assert (one["done"], one["reason"]) == (expected, reason)
    sent = [call for call in lustre.calls if call[0] not in {"hsm_state", "hsm_action"}]
    command = {"hydrate": "hsm_restore", "release": "hsm_release"}[verb]
    assert sent == ([[command, path]] if expected == "asked" else [])


def test_a_request_goes_on_after_the_answer(hpj, lustre):
    path = lustre.add("data", RELEASED)
    hpj("storage", "hydrate", path).ok()
    assert hpj("storage", "state", path, "--json").ok().json["files"][0]["state"] == "hydrating"
    assert done(hpj("storage", "hydrate", path, "--json").ok()) == [("nothing", "hydrating")]
    refused = hpj("storage", "release", path, "--json")
    assert (refused.code, refused.error["hint"]) == (2, "wait for it")


def test_one_bad_file_of_many_stops_no_other(hpj, lustre):
    paths = [lustre.add(f"part-{number}", RELEASED) for number in range(4)]
    paths.insert(2, lustre.add("bad", RELEASED, bad="No space left on device"))
    told = hpj("storage", "hydrate", "--json", *paths)
    assert told.code == 2
    assert [one["done"] for one in told.json["files"]] == [*["asked"] * 2, "refused", *["asked"] * 2]
    assert "No space left on device" in told.error["message"]


def test_what_only_root_may_ask_for_is_said(hpj, lustre, monkeypatch):
    monkeypatch.setenv("LFS_DENIES", "hsm_release")
    told = hpj("storage", "release", lustre.add("data", ARCHIVED), "--json")
    assert told.code == 2
    assert "only for root" in told.error["hint"]
    hpj("storage", "hydrate", lustre.add("gone", RELEASED)).ok()


def test_many_files_go_in_several_calls(hpj, lustre, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_SIZE", 4)
    paths = [lustre.add(f"part-{number}", ARCHIVED) for number in range(10)]
    assert done(hpj("storage", "release", "--json", *paths).ok()) == [("asked", "archived")] * 10
    sent = [call[1:] for call in lustre.calls if call[0] == "hsm_release"]
    assert [len(some) for some in sent] == [4, 4, 2]
    assert [path for some in sent for path in some] == paths


def test_a_program_that_hangs_is_ended(hpj, lustre, monkeypatch):
    path = lustre.add("data", ARCHIVED)
    monkeypatch.setenv("LFS_HANGS", "1")
    monkeypatch.setattr(module.Lfs.__init__, "__defaults__", (None, 1.0))
    begin = time.monotonic()
    told = hpj("storage", "state", path, "--json")
    assert (told.code, told.error["code"]) == (2, "storage_no_answer")
    assert time.monotonic() - begin < 10


def test_without_the_program_it_is_said(hpj, lustre, monkeypatch):
    path = lustre.add("data", ARCHIVED)
    monkeypatch.setenv("PATH", "/nowhere")
    told = hpj("storage", "release", path, "--json")
    assert (told.code, told.error["code"]) == (2, "no_lfs")
    assert hpj("storage", "release", "--json").code == 2

"""Bundles that lost a file, hold half of one, or something else altogether: told, never raised raw, never waited for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError
from tests.storage.bundles import PROCESS, make_bundle, write_files

RECORDS = {
    "submission.json": {"scheduler_id": "17", "submitted_at": 1.0},
    "status/claim.json": {"scheduler_id": "17", "time": 1.0},
    "status/attempt-1/claim.json": {"scheduler_id": "17", "incarnation": "1", "time": 1.0},
    "status/attempt-1/node-0.json": {"node_rank": 0, "node": "n0", "started_at": 1.0},
    "status/attempt-1/rank-0.error.json": {"time": 1.0, "rank": 0, "type": "E", "message": "m"},
    "status/observations/local.json": {"time": 1.0, "observer": "local", "state": "running"},
    "status/actions/0-a.json": {"time": 1.0, "action": "hold", "user": "ada"},
    "status/intent-0.json": PROCESS,
    "status/owner.json": PROCESS,
}
DAMAGES = ["empty", "truncated", "garbage", "bytes", "list", "null", "deep", "folder", "loop", "pipe", "surrogate"]


def damage(path: Path, how: str) -> None:
    """Do something to a file."""
    text = path.read_text()
    path.unlink()
    contents = {
        "empty": b"",
        "truncated": text[: len(text) // 2].encode(),
        "garbage": b"{not json",
        "bytes": b"\x00\xff\xfe" * 100,
        "list": b"[1, 2]",
        "null": b"null",
        "deep": b"[" * 200_000,
        "surrogate": text.replace('": "', '": "\\ud800', 1).encode() if '": "' in text else b'{"a": "\\ud800"}',
    }
    if how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(contents[how])


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    made = make_bundle(Partition(tmp_path), "run-1", code=None)
    write_files(made.folder, RECORDS.items())
    return made


def test_a_whole_one(bundle):
    records = bundle.read()
    assert records.damage == ()
    assert records.head.name == "name of run-1"
    assert records.submission.scheduler_id == "17"
    assert len(records.attempts) == len(records.observations) == len(records.actions) == 1
    assert len(records.intents) == 1
    assert records.owner is not None
    assert bundle.spec().source.kind == "command"


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_is_named_and_the_others_are_read(bundle, name, how):
    damage(bundle.folder / name, how)
    records = bundle.read()
    assert records.damage == (name,)
    found = [records.submission, records.claim, records.owner, *records.observations]
    found += [*records.actions, *records.intents, records.attempts[0].claim]
    found += [*records.attempts[0].nodes, *records.attempts[0].errors]
    assert len([one for one in found if one is not None]) == len(RECORDS) - 1


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_is_not_there_yet_is_no_damage(bundle, name):
    (bundle.folder / name).unlink()
    assert bundle.read().damage == ()


@pytest.mark.parametrize("how", [*(how for how in DAMAGES if how != "surrogate"), "missing"])
@pytest.mark.parametrize("name", ["bundle.json", "spec.json", "launch.json"])
def test_without_its_own_files_a_bundle_is_damaged(bundle, name, how):
    path = bundle.folder / name
    path.write_text(path.read_text() if path.exists() else json.dumps({"format": 1}))
    if how == "missing":
        path.unlink()
    else:
        damage(path, how)
    read = {"bundle.json": bundle.read, "spec.json": bundle.spec, "launch.json": bundle.plan}[name]
    with pytest.raises(DamagedBundleError) as caught:
        read()
    error = caught.value
    assert error.code == "damaged"
    assert name in error.message
    assert len(error.message) < 500
    assert str(bundle.folder) in str(error.hint)
    json.dumps(error.to_dict()).encode()


@pytest.mark.parametrize("name", ["bundle.json", "spec.json"])
def test_half_a_character_is_damage(bundle, name):
    damage(bundle.folder / name, "surrogate")
    with pytest.raises(DamagedBundleError) as caught:
        (bundle.read if name == "bundle.json" else bundle.spec)()
    json.dumps(caught.value.to_dict()).encode()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bundle.json", {"array": "garbage"}),
        ("bundle.json", {"array": "3-1"}),
        ("bundle.json", {"nodes": 0}),
        ("bundle.json", {"nodes": "many"}),
        ("bundle.json", {"processes_per_node": -1}),
        ("bundle.json", {"created_at": float("nan")}),
        ("bundle.json", {"created_at": float("inf")}),
        ("bundle.json", {"created_at": 1e300}),
        ("bundle.json", {"created_at": -1}),
        ("bundle.json", {"name": None}),
        ("bundle.json", {"name": 7}),
        ("bundle.json", {"format": "one"}),
        ("bundle.json", {"format": 0}),
        ("spec.json", {"source": {"kind": "nothing"}}),
        ("spec.json", {"format": "one"}),
    ],
)
def test_a_head_or_spec_that_makes_no_sense(bundle, name, change):
    path = bundle.folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DamagedBundleError) as caught:
        (bundle.read if name == "bundle.json" else bundle.spec)()
    assert next(iter(change)) in caught.value.message


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e300", "-1", '"x"', "null", "[]"])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("submission.json", "submitted_at"),
        ("status/claim.json", "time"),
        ("status/attempt-1/claim.json", "time"),
        ("status/attempt-1/node-0.json", "started_at"),
        ("status/attempt-1/rank-0.error.json", "time"),
        ("status/observations/local.json", "time"),
        ("status/actions/0-a.json", "time"),
        ("status/owner.json", "time"),
    ],
)
def test_a_time_that_is_none(bundle, name, field, value):
    path = bundle.folder / name
    record = {**json.loads(path.read_text()), field: "HERE"}
    path.write_text(json.dumps(record).replace('"HERE"', value))
    assert bundle.read().damage == (name,)


@pytest.mark.parametrize("name", [*RECORDS, "bundle.json"])
def test_fields_of_a_later_minor_form_are_passed_over(bundle, name):
    path = bundle.folder / name
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "new": {"deep": [1]}, "format": record.get("format", 1)}))
    before = bundle.read()
    assert before.damage == ()
    assert before.head.name == "name of run-1"


@pytest.mark.parametrize("place", [(), ("mlflow",), ("source",), ("resources",)])
def test_fields_of_a_spec_that_only_another_version_knows_are_passed_over(bundle, place):
    path = bundle.folder / "spec.json"
    expected = bundle.spec()
    spec = expected.model_dump(mode="json")
    part = spec
    for name in place:
        part = part[name]
    part |= {"log_numbers": True, "new": {"deep": [1]}}
    path.write_text(json.dumps(spec))
    assert bundle.spec() == expected
    path.write_text(json.dumps({**spec, "name": 7}))
    with pytest.raises(DamagedBundleError, match="name"):
        bundle.spec()


def test_alarms_of_a_spec_that_only_another_version_knows_are_passed_over(bundle):
    path = bundle.folder / "spec.json"
    spec = bundle.spec().model_dump(mode="json")
    codes = ["straggler", "nan", "gpu_idle", "mlflow", "hang"]
    path.write_text(json.dumps({**spec, "alarms": {"stop_on": codes, "command": "true"}}))
    assert bundle.spec().alarms.stop_on == ["nan", "hang"]


def test_a_spec_with_very_many_values_is_refused_before_each_is_described(bundle):
    path = bundle.folder / "spec.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "after": [0] * 30_000}))
    with pytest.raises(DamagedBundleError, match="too many values"):
        bundle.spec()


def test_a_spec_of_an_older_version_with_a_conda_environment_is_read(bundle):
    path = bundle.folder / "spec.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "environment": {"capture": "conda"}}))
    assert bundle.spec().environment.capture == "venv"


@pytest.mark.parametrize("name", ["bundle.json", "spec.json"])
@pytest.mark.parametrize("number", [2, 999])
def test_a_newer_format_is_said_to_be_one(bundle, name, number):
    path = bundle.folder / name
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "format": number, "name": {"changed": "shape"}}))
    with pytest.raises(DamagedBundleError) as caught:
        (bundle.read if name == "bundle.json" else bundle.spec)()
    assert caught.value.code == "newer_format"
    assert str(number) in caught.value.message
    assert "update" in str(caught.value.hint)
    assert str(bundle.folder) in str(caught.value.hint)


@pytest.mark.parametrize(
    "name",
    ["attempt-", "attempt-x", "attempt--1", "attempt-1.tmp", "attempt-\u00b2", "attempt-\u0663", ".attempt-2", "other"],
)
def test_folders_that_are_no_attempts(bundle, name):
    (bundle.folder / "status" / name).mkdir()
    assert [attempt.number for attempt in bundle.read().attempts] == [1]


@pytest.mark.parametrize("name", ["status", "status/attempt-1", "status/observations", "status/actions"])
def test_a_file_where_a_folder_belongs_is_an_empty_folder(bundle, name):
    whole = bundle.read()
    folder = bundle.folder / name
    folder.rename(bundle.folder / "moved")
    folder.mkdir()
    without = bundle.read()
    assert without != whole
    folder.rmdir()
    folder.write_text("x")
    assert bundle.read() == without


def test_temporary_files_of_writers_are_passed_over(bundle):
    (bundle.folder / "status/observations/.local.json.a1.tmp").write_text('{"time"')
    (bundle.folder / "status/attempt-1/.node-1.json.tmp").write_text("")
    assert bundle.read().damage == ()


def test_no_run_and_no_bundle(tmp_path):
    partition = Partition(tmp_path)
    with pytest.raises(NotFoundError):
        BundleReader(partition, "run-1").read()
    partition.prepare()
    partition.bundle("run-1").mkdir(parents=True)
    with pytest.raises(DamagedBundleError):
        BundleReader(partition, "run-1").read()

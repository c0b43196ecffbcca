"""``GET storage``."""

import jsonschema
import pytest

from hyperpod_jlab.server.openapi import document


async def test_the_storage_of_a_machine_with_a_local_cluster_only(api, cluster):
    await api.submit("true")
    told = await api.get("storage")
    assert told["partition"]["path"].startswith(str(cluster))
    assert told["partition"]["isolation"]["level"] == "real_identity"
    assert [one["runs_go_here"] for one in told["file_systems"] if not one["network"]] == [True]
    (side,) = told["clusters"]
    assert (side["side"], side["there"]) == ("here", told["partition"]["path"])
    assert (told["studio"], told["shared_space"]) == (False, False)


async def test_it_is_what_is_described_to_the_last_field(api):
    await api.submit("true")  # the partition is there from then on
    told = await api.get("storage", aws="false")
    types = document()["components"]["schemas"]
    schema = {**types["StorageOverview"], "components": {"schemas": types}}
    jsonschema.validate(told, schema)
    assert set(told) == set(types["StorageOverview"]["properties"])
    assert set(told["partition"]) == set(types["StoragePartition"]["properties"])
    assert set(told["separation"]) == set(types["StorageSeparation"]["properties"])
    assert set(told["separation"]["parents"][0]) == set(types["StorageParent"]["properties"])
    assert set(told["file_systems"][0]) == set(types["StoragePlace"]["properties"])


@pytest.mark.parametrize(("query", "field"), [({"aws": "perhaps"}, "aws"), ({"path": "/etc"}, "path")])
async def test_a_wrong_query_names_the_field(api, query, field):
    status, error = await api.request("GET", "storage", query=query)
    assert (status, error["detail"]["field"]) == (400, field)


async def test_a_mount_point_that_is_not_there_is_said(api, monkeypatch, tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(
        f"22 1 259:1 / / rw - ext4 /dev/root rw\n30 22 0:40 / {tmp_path}/gone rw - lustre 10.0.1.2@tcp:/x/alice rw\n"
    )
    monkeypatch.setenv("HYPERPOD_MOUNT_TABLE", str(table))
    told = await api.get("storage", aws="false")
    (gone,) = [one for one in told["file_systems"] if one["network"]]
    assert (gone["exists"], gone["problem"]) == (False, "the folder where it is mounted does not exist")

"""The partition is unmounted while a run writes there, for real, and mounted again; or it is mounted to be read only."""

from __future__ import annotations

import pytest

from tests.cli.unmounted import LINES
from tests.mounts import on_small_disk

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space") / "disk"
    return on_small_disk("tests.cli.unmounted", "-", folder, options="size=64m,mode=755", timeout=240)


EVERY_LINE = [f"line {number}" for number in range(1, LINES + 1)]


def test_the_followed_log_waits_says_so_and_goes_on(told):
    code, lines, said = told["reader"]
    assert told["gone"]["follows"]
    assert code == 0
    assert [line.partition("|")[2].strip() or line for line in lines] == EVERY_LINE
    assert "no file system is mounted at" in said
    assert "the log continues when it is" in said
    assert said.rstrip().endswith("--- the storage partition is available again ---")


def test_the_log_socket_goes_on_too(told):
    assert told["socket"] == ["end", EVERY_LINE]


def test_meanwhile_nothing_is_said_to_be_gone_and_nothing_is_written_below_the_mount(told):
    assert told["gone"]["commands"] == dict.fromkeys(("runs", "show", "submit", "link"), "storage_gone")
    assert told["gone"]["rest"] == [[507, "storage_gone"]] * 2
    assert told["gone"]["left"] == []


def test_server_index_and_run_survive(told):
    assert told["run"] == [200, "succeeded"]
    assert told["listed"] == [[True, "succeeded"]]
    assert told["same_index"]


def test_one_that_can_only_be_read_takes_no_run_and_shows_what_it_has(tmp_path):
    told = on_small_disk(*("tests.cli.unmounted", "read-only", tmp_path / "disk"), options="size=64m,mode=755")
    code, out, error = told["refused"]
    assert (code, out, error["code"]) == (2, "", "storage_read_only")
    assert "read-only" in error["message"]
    assert told["left"]
    assert (told["listed"], told["log"]) == (["succeeded"], "0|there\n")
    partition = told["storage"]["partition"]
    assert (partition["read_only"], partition["writable"]) == (True, False)
    assert any("it is read-only here" in note for note in told["storage"]["notes"])

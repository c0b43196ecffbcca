"""Log files, their time indices, the activity record, and what of them comes to stdout."""

import itertools
import json
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import until


def index_of(path):
    data = path.with_suffix(".idx").read_bytes()
    assert len(data) % 16 == 0
    return list(struct.iter_unpack("<qq", data))


def activity(bundle, node=0):
    path = bundle.logs() / f"node-{node}.activity.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_the_first_line_is_for_programs(bundle):
    bundle.shell("true", processes_per_node=2)
    launcher = bundle.start(0, 1, "--quiet")
    out, _ = launcher.communicate(timeout=30)
    line = bundle.node_log().splitlines()[0]
    assert out.decode() == line + "\n"
    word, _, text = line.partition(" ")
    assert word == "##hyperpod"
    found = json.loads(text)
    assert found.pop("host")
    assert found == {
        "run_id": "test-run",
        "node": "node-0",
        "node_rank": 0,
        "attempt": 1,
        "local_world_size": 2,
        "pid": launcher.pid,
    }


def test_the_ranks_bytes_are_in_their_files_as_they_are(bundle):
    awkward = b"a\r\nb\rc\0\xff\xfe\xe2\x82" + "日本\n\n".encode() + b"x" * 70000 + b"no end"
    bundle.script(f"import os; os.write(1, {awkward[:9]!r}); os.write(2, {awkward[9:]!r})")
    assert bundle.run().returncode == 0
    assert bundle.rank_log() == awkward


def test_the_last_byte_before_a_sudden_death_is_there(bundle):
    bundle.script("import os, sys\nfor i in range(2000): print(i)\nos.kill(os.getpid(), 9)")
    assert bundle.run().returncode == 137
    assert bundle.rank_log().endswith(b"\n1999\n")


def test_the_index_tells_when_bytes_were_first_seen(bundle):
    bundle.shell("sleep 0.5; echo one; sleep 1.5; echo two")
    before = time.time_ns()
    assert bundle.run().returncode == 0
    after = time.time_ns()
    records = index_of(bundle.logs() / "node-0.rank-0.log")
    assert [offset for _, offset in records] == [0, 0, 4]
    opened, one, two = (moment for moment, _ in records)
    assert before < opened < one < two < after
    assert one - opened < 10e9
    assert 0.7e9 < two - one < 10e9
    assert index_of(bundle.logs() / "node-0.log")[0][1] == 0


def test_the_index_of_one_that_never_stops_is_sparse_and_in_order(bundle):
    bundle.script(
        "import os, time\nend = time.monotonic() + 1\n"
        "while time.monotonic() < end:\n    os.write(1, b'x' * 100)\n    time.sleep(0.001)"
    )
    assert bundle.run().returncode == 0
    records = index_of(bundle.logs() / "node-0.rank-0.log")
    assert 5 < len(records) < 40
    assert records == sorted(records)
    assert all(left[1] < right[1] for left, right in itertools.pairwise(records[1:]))


def test_the_activity_record(bundle):
    bundle.shell("echo up; sleep 600", processes_per_node=2)
    launcher = bundle.start()
    bundle.until_said(b"up", 0)
    bundle.until_said(b"up", 1)
    found = until(lambda: _with_size(bundle, 3))
    assert not found["ended"]
    assert set(found["streams"]) == {"node", "0", "1"}
    assert abs(time.time() - found["streams"]["0"]["changed"]) < 20
    # A heartbeat, though nothing changes.
    later = until(lambda: (now := activity(bundle))["time"] > found["time"] + 4 and now, patience=15)
    assert later["streams"] == found["streams"]
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=30)
    last = activity(bundle)
    assert last["ended"]
    assert last["streams"]["node"]["size"] == len(bundle.node_log().encode())


def _with_size(bundle, size):
    found = activity(bundle)
    streams = found["streams"] if found else {}
    return found if all(streams.get(key, {}).get("size") == size for key in "01") else None


def test_stdout_has_each_line_with_its_rank(bundle):
    bundle.shell(
        "for i in 1 2 3; do echo $RANK-$i; done; echo; printf end", processes_per_node=2, setup="echo hello", nodes=2
    )
    launchers = [bundle.start(node, 2) for node in range(2)]
    for node, launcher in enumerate(launchers):
        out = launcher.communicate(timeout=30)[0].splitlines()
        assert out[0].startswith(b"##hyperpod {")
        assert b"node-%d| hello" % node in out
        for rank in (2 * node, 2 * node + 1):
            lines = [line for line in out if line.startswith(b"%d|" % rank)]
            words = [b"%d-%d" % (rank, i) for i in (1, 2, 3)] + [b"", b"end"]
            assert lines == [b"%d| %s" % (rank, word) for word in words]


def test_a_great_deal_of_output_comes_through_whole(bundle):
    bundle.script("for i in range(60_000): print('line', i)", processes_per_node=2)
    out = bundle.run().stdout
    for rank in range(2):
        prefix = b"%d| " % rank
        lines = [line[len(prefix) :] for line in out.splitlines() if line.startswith(prefix)]
        assert lines == bundle.rank_log(rank).splitlines()
        assert len(lines) == 60_000


def test_a_closed_stdout_ends_nothing(bundle):
    bundle.shell("echo up; sleep 0.3; for i in $(seq 2000); do echo $i; done; echo done")
    reading, writing = os.pipe()
    launcher = bundle.start(stdout=writing)
    os.close(writing)
    os.close(reading)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 0
    assert bundle.rank_log().endswith(b"\n2000\ndone\n")
    assert bundle.node_log().count("stdout: Broken pipe") == 1


def test_a_stdout_that_is_not_there_at_all(bundle):
    bundle.shell("echo done")
    words = bundle.start(stdout=subprocess.DEVNULL).args
    bundle.launchers[-1].communicate(timeout=30)
    bundle.as_if_it_failed()
    done = subprocess.run(["/bin/bash", "-c", '"$0" "$@" <&- >&- 2>&-', *words], timeout=30)
    assert done.returncode == 0
    assert bundle.rank_log(attempt=2) == b"done\n"
    assert bundle.node_log(attempt=2).count("\n") == 1


def test_a_stuck_stdout_ends_nothing_and_is_counted(bundle):
    bundle.script("for i in range(30_000): print('line', i)")
    reading, writing = os.pipe()
    launcher = bundle.start(stdout=writing)
    os.close(writing)
    launcher.wait(timeout=30)
    os.close(reading)
    assert launcher.returncode == 0
    assert bundle.rank_log().endswith(b"line 29999\n")
    assert "stdout did not accept the last " in bundle.node_log()


def test_a_stuck_stdout_does_not_delay_a_stop(bundle):
    bundle.script("import time\nfor i in range(30_000): print('line', i)\ntime.sleep(600)")
    reading, writing = os.pipe()
    launcher = bundle.start(stdout=writing)
    os.close(writing)
    bundle.until_said(b"line 29999\n")
    begun = time.monotonic()
    launcher.send_signal(signal.SIGTERM)
    launcher.wait(timeout=30)
    os.close(reading)
    assert time.monotonic() - begun < 5
    assert bundle.node()["stopped_by"] == "SIGTERM"


def test_a_progress_bar_is_thinned_on_stdout_only(bundle):
    bundle.script(
        "import sys, time\n"
        "for i in range(110):\n"
        "    sys.stderr.write(f'\\r{i}%'); sys.stderr.flush(); time.sleep(0.01)\n"
        "sys.stderr.write('\\r100%\\n')\n"
    )
    out = bundle.run().stdout
    shown = [line for line in out.splitlines() if line.startswith(b"0| ")]
    assert 1 <= len(shown) <= 4
    assert shown[-1] == b"0| 100%"
    assert bundle.rank_log().count(b"\r") == 111


def test_bytes_of_torn_characters_come_through(bundle):
    bundle.script("import os, time\nos.write(1, b'a\\xe2'); time.sleep(0.4); os.write(1, b'\\x82\\xac\\n\\xff\\n')")
    out = bundle.run().stdout
    assert b"\n0| a\xe2\x82\xac\n0| \xff\n" in out


def test_a_quiet_node_costs_next_to_nothing(bundle):
    bundle.shell("echo up; sleep 600", processes_per_node=8)
    launcher = bundle.start()
    for local_rank in range(8):
        bundle.until_said(b"up", local_rank)
    until(lambda: _with_size(bundle, 3))

    def used():
        fields = Path(f"/proc/{launcher.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    begun, before = time.monotonic(), used()
    time.sleep(2)
    share = (used() - before) / (time.monotonic() - begun)
    assert share < 0.03


@pytest.mark.parametrize("quiet", [True, False])
def test_a_log_that_somebody_cuts_short(bundle, quiet):
    bundle.shell(
        "echo one two three; sleep 0.4; : >$LOG; echo four; sleep 0.4; echo five; sleep 0.3",
        variables={"LOG": str(bundle.logs() / "node-0.rank-0.log")},
    )
    done = bundle.run(0, 1, *["--quiet"] * quiet)
    assert done.returncode == 0
    assert bundle.rank_log() == b"four\nfive\n"
    records = index_of(bundle.logs() / "node-0.rank-0.log")
    assert records == sorted(records)

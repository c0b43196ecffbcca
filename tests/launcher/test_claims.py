"""The fence, and the attempts."""

import json
import signal
from pathlib import Path

import pytest

from .conftest import until


def test_the_first_job_claims_the_run(bundle):
    bundle.shell("true")
    assert bundle.run().returncode == 0
    claim = json.loads((bundle.folder / "status" / "claim.json").read_text())
    assert (claim["scheduler_id"], claim["node"]) == ("17", "node-0")
    claim = bundle.status("claim.json")
    assert (claim["scheduler_id"], claim["incarnation"]) == ("17", "17.0")


def test_another_job_is_fenced_off(bundle):
    bundle.shell("touch ran; true")
    assert bundle.run().returncode == 0
    (bundle.folder / "work" / "ran").unlink()
    done = bundle.run(scheduler_id="18", incarnation="18.0")
    assert done.returncode == 85
    assert b"(17) already executes this run" in done.stderr
    assert not (bundle.folder / "work" / "ran").exists()
    assert not (bundle.folder / "status" / "attempt-2").exists()


def test_another_jobs_second_node_is_fenced_off_while_it_waits(bundle):
    bundle.shell("true", nodes=2)
    waiting = bundle.start(1, 2, scheduler_id="18", incarnation="18.0")
    assert bundle.run(0, 1).returncode == 0
    waiting.communicate(timeout=30)
    assert waiting.returncode == 85


def test_of_many_jobs_at_once_one_runs(bundle):
    bundle.shell("echo ran >>ran")
    jobs = [bundle.start(scheduler_id=str(job), incarnation="x") for job in range(6)]
    for job in jobs:
        job.communicate(timeout=30)
    assert sorted(job.returncode for job in jobs) == [0, 85, 85, 85, 85, 85]
    assert (bundle.folder / "work" / "ran").read_text() == "ran\n"
    assert not list((bundle.folder / "status").glob(".*"))


def test_the_same_job_opens_the_next_attempt(bundle):
    bundle.shell("echo $HYPERPOD_ATTEMPT >>attempts")
    for number in range(3):
        assert bundle.run(incarnation=f"17.{number}").returncode == 0
        bundle.as_if_it_failed(number + 1)
    assert (bundle.folder / "work" / "attempts").read_text() == "1\n2\n3\n"
    assert bundle.status("claim.json", attempt=3)["incarnation"] == "17.2"


def test_other_nodes_join_the_attempt_of_their_incarnation(bundle):
    bundle.shell("true", nodes=2)
    first = [bundle.start(node, 2) for node in range(2)]
    for launcher in first:
        launcher.communicate(timeout=30)
    bundle.as_if_it_failed()
    waiting = bundle.start(1, 2, incarnation="17.1")
    with pytest.raises(AssertionError):
        until(lambda: waiting.poll() is not None, patience=0.5)
    bundle.run(0, 2, incarnation="17.1")
    waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert bundle.node(1, attempt=2)["exit_code"] == 0


def test_a_node_that_is_started_again_waits_for_a_new_attempt(bundle):
    bundle.shell("true", nodes=2)
    for node in range(2):
        assert bundle.run(node, 2).returncode == 0
    bundle.as_if_it_failed()
    again = bundle.run(1, 2, "--wait-attempt=0.3")
    assert again.returncode == 86
    assert bundle.node(1)["ended_at"] is not None


def test_a_run_that_has_succeeded_is_not_executed_again(bundle):
    """A scheduler that lost sight of a node may start a job once more that had ended well."""
    bundle.shell("echo ran >>ran", nodes=2)
    for launcher in [bundle.start(node, 2) for node in range(2)]:
        launcher.communicate(timeout=30)
    again = [bundle.start(node, 2, incarnation="17.1") for node in range(2)]
    said = [launcher.communicate(timeout=30)[1] for launcher in again]
    assert [launcher.returncode for launcher in again] == [0, 0]
    assert b"needs no further attempt" in said[0]
    assert (bundle.folder / "work" / "ran").read_text() == "ran\nran\n"
    assert not (bundle.folder / "status" / "attempt-2").exists()


def test_a_node_gives_up_when_node_0_never_comes(bundle):
    bundle.shell("true", nodes=2)
    done = bundle.run(1, 2, "--wait-attempt=0.3")
    assert done.returncode == 86
    assert b"node 0 did not open the attempt" in done.stderr
    word = json.loads((bundle.folder / "status" / "unstarted" / "node-1.json").read_text())
    assert word["error"]["code"] == "no_attempt"
    assert word["error"]["hint"]
    assert word["incarnation"] == "17.0"


def test_waiting_for_node_0_ends_at_a_signal(bundle):
    bundle.shell("true", nodes=2)
    waiting = bundle.start(1, 2)
    until(lambda: (bundle.folder / "status").is_dir() and _catches_term(waiting.pid))
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=30)
    assert waiting.returncode == 128 + signal.SIGTERM


def _catches_term(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return caught >> (signal.SIGTERM - 1) & 1


def test_a_child_of_an_array_has_its_own_claim_and_records(bundle):
    bundle.shell('echo $HYPERPOD_ARRAY_INDEX; test "$HYPERPOD_RECORDS" = "$HYPERPOD_BUNDLE/tasks/7"')
    assert bundle.run(0, 1, "--task=7", scheduler_id="20_7").returncode == 0
    assert bundle.run(0, 1, "--task=8", scheduler_id="20_8").returncode == 1
    assert bundle.node(task=7)["exit_code"] == 0
    logs = bundle.records(7) / "logs" / "attempt-1"
    assert (logs / "node-0.rank-0.log").read_bytes() == b"7\n"
    assert not (bundle.folder / "status" / "claim.json").exists()

"""The end of a run, posted to the user's webhook: once, by the attempt that ends the run."""

import json
import signal
import time

import pytest

from .conftest import until


def plan_of(webhook, **options):
    return {"alarms": {"webhook": webhook.url, **options}}


def ends(webhook):
    return [(one["code"], one["node_rank"], one["message"]) for one in webhook.posted]


def test_a_run_that_succeeded(bundle, webhook):
    bundle.shell("true", **plan_of(webhook))
    assert bundle.run().returncode == 0
    (end,) = webhook.posted
    assert end.pop("since") > 1e9
    assert end == {
        "run_id": "test-run",
        "node_rank": 0,
        "code": "succeeded",
        "message": "the run succeeded",
        "rank": None,
    }


def test_a_child_of_an_array_is_a_run(bundle, webhook):
    bundle.shell("echo step 1 loss nan", **plan_of(webhook))
    for task in (3, 7):
        assert bundle.run(0, 1, f"--task={task}").returncode == 0
    told = [(one["run_id"], one["code"]) for one in webhook.posted]
    assert told == [(f"test-run.{task}", code) for task in (3, 7) for code in ("nan", "succeeded")]


def test_of_several_nodes_the_last_one_tells(bundle, webhook):
    text = "import os, time; time.sleep(3 * (os.environ['NODE_RANK'] == '0'))"
    bundle.script(text, nodes=2, **plan_of(webhook))
    launchers = [bundle.start(node, 2) for node in range(2)]
    assert [one.wait(60) for one in launchers] == [0, 0]
    assert ends(webhook) == [("succeeded", 0, "the run succeeded")]


def test_the_node_that_failed_tells(bundle, webhook):
    text = "import os, sys, time; os.environ['NODE_RANK'] == '1' and sys.exit(7); time.sleep(600)"
    bundle.script(text, nodes=2, **plan_of(webhook))
    launchers = [bundle.start(node, 2) for node in range(2)]
    assert [one.wait(60) != 0 for one in launchers] == [True, True]
    assert ends(webhook) == [("failed", 1, "node 1 failed: exit code 7")]


def test_only_the_attempt_that_ends_the_run_tells(bundle, webhook):
    bundle.shell("exit 3", **plan_of(webhook, max_restarts=1))
    assert bundle.run(incarnation="17.0").returncode == 3
    assert webhook.posted == []
    assert bundle.run(incarnation="17.1").returncode == 3
    assert ends(webhook) == [("failed", 0, "node 0 failed: exit code 3")]
    assert bundle.run(incarnation="17.2").returncode == 3  # by hand, behind the end
    assert len(webhook.posted) == 1


def stop(bundle):
    """Have a run stopped as schedulers do it."""
    launcher = bundle.start()
    until(bundle.rank_pids)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) != 0


def cancel(bundle):
    actions = bundle.folder / "status" / "actions"
    actions.mkdir(parents=True)
    (actions / "1.json").write_text(json.dumps({"action": "cancel"}))


@pytest.mark.parametrize("command", ["sleep 600", "trap 'exit 0' TERM; while :; do sleep 0.1; done"])
def test_a_run_that_was_cancelled(bundle, webhook, command):
    bundle.shell(command, **plan_of(webhook))
    cancel(bundle)
    stop(bundle)
    assert ends(webhook) == [("cancelled", 0, "the run was cancelled")]


def test_a_child_of_an_array_that_was_cancelled_as_a_whole(bundle, webhook):
    bundle.shell("sleep 600", **plan_of(webhook))
    cancel(bundle)
    launcher = bundle.start(0, 1, "--task=3")
    until(lambda: any(bundle.folder.rglob("node-0.rank-0.log")))
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) != 0
    (end,) = webhook.posted
    assert (end["run_id"], end["code"]) == ("test-run.3", "cancelled")


def test_a_job_that_may_be_requeued_tells_nothing(bundle, webhook):
    bundle.shell("sleep 600", **plan_of(webhook, time_limit=3600))
    stop(bundle)
    assert webhook.posted == []


@pytest.mark.parametrize("is_slurm", [True, False])
def test_the_time_limit_ends_a_run(bundle, webhook, monkeypatch, is_slurm):
    if is_slurm:
        monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time())))
    bundle.shell("sleep 600", **plan_of(webhook, time_limit=86_400 if is_slurm else 1))
    stop(bundle)
    assert ends(webhook) == [("failed", 0, "the time limit is reached")]


def test_a_webhook_that_cannot_be_reached_is_noted_and_changes_nothing(bundle):
    bundle.shell("true", alarms={"webhook": "http://127.0.0.1:1/hook"})
    assert bundle.run().returncode == 0
    assert "the webhook failed: " in bundle.node_log()

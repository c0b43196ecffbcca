"""Secrets: read, deleted, and said nowhere."""

import os

import pytest

from .conftest import until

VALUE = "s3cret-välue $x `id`\n"


@pytest.fixture
def secret(bundle):
    folder = bundle.folder / "secrets"
    folder.mkdir(mode=0o700)
    path = folder / "TOKEN"
    path.touch(mode=0o600)
    path.write_text(VALUE)
    return path


def everything_written(bundle):
    return b"".join(
        path.read_bytes() for part in ("status", "logs") for path in (bundle.folder / part).rglob("*") if path.is_file()
    )


def test_a_secret_comes_as_a_variable_and_its_file_goes(bundle, secret):
    bundle.shell('printf %s "$TOKEN" | sha256sum >digest', secrets=["TOKEN"], setup='test -n "$TOKEN"')
    done = bundle.run()
    assert done.returncode == 0
    assert not secret.parent.exists()
    bundle.as_if_it_failed()
    bundle.shell('printf %s "$TOKEN" | sha256sum >expected', variables={"TOKEN": VALUE})
    assert bundle.run(incarnation="17.1").returncode == 0
    work = bundle.folder / "work"
    assert (work / "digest").read_text() == (work / "expected").read_text()
    written = everything_written(bundle) + done.stdout + done.stderr
    assert b"s3cret" not in written


def test_all_nodes_read_a_secret_before_it_goes(bundle, secret):
    bundle.shell('test "$TOKEN" && sleep 600', secrets=["TOKEN"], nodes=3)
    launchers = [bundle.start(node, 3) for node in (0, 1)]
    until(lambda: bundle.node(0) and bundle.node(1))
    until(lambda: bundle.rank_pids(0) and bundle.rank_pids(1))
    assert secret.exists()
    launchers.append(bundle.start(2, 3))
    until(lambda: not secret.exists())
    assert all(launcher.poll() is None for launcher in launchers)


def test_nodes_of_one_machine_in_any_order(bundle, secret):
    bundle.shell('test "$TOKEN"', secrets=["TOKEN"], nodes=4)
    launchers = [bundle.start(node, 4) for node in (3, 2, 1, 0)]
    for launcher in launchers:
        launcher.communicate(timeout=30)
    assert [launcher.returncode for launcher in launchers] == [0, 0, 0, 0]
    assert not secret.exists()


def test_a_failed_node_deletes_it_too(bundle, secret):
    bundle.shell("exit 3", secrets=["TOKEN"], nodes=2)
    assert bundle.run(0, 2).returncode == 3
    assert not secret.exists()


def test_a_node_that_is_stopped_deletes_it_too(bundle, secret):
    bundle.shell("sleep 600", secrets=["TOKEN"], nodes=2)
    launcher = bundle.start(0, 2)
    until(bundle.rank_pids)
    assert secret.exists()
    launcher.terminate()
    launcher.communicate(timeout=30)
    assert not secret.exists()


def test_a_later_attempt_without_it_says_so(bundle, secret):
    bundle.shell("true", secrets=["TOKEN"])
    assert bundle.run().returncode == 0
    bundle.as_if_it_failed()
    assert bundle.run(incarnation="17.1").returncode == 86
    error = bundle.node(attempt=2)["error"]
    assert error["code"] == "secret_missing"
    assert "requeue" in error["hint"]
    assert error["detail"] == {"name": "TOKEN"}


def test_one_that_is_delivered_again_serves_the_later_attempt(bundle, secret):
    bundle.shell('test "$TOKEN"', secrets=["TOKEN"])
    assert bundle.run().returncode == 0
    bundle.as_if_it_failed()
    secret.parent.mkdir()
    secret.write_text("again")
    assert bundle.run(incarnation="17.1").returncode == 0
    assert not secret.exists()


def test_a_plan_may_keep_them_for_later_attempts(bundle, secret):
    bundle.shell('test "$TOKEN" && test $HYPERPOD_ATTEMPT = 2', secrets=["TOKEN"], keep_secrets=True)
    assert bundle.run().returncode == 1
    assert secret.exists()
    assert bundle.run(incarnation="17.1").returncode == 0
    assert secret.exists()


def test_the_children_of_an_array_share_them(bundle, secret):
    bundle.shell('test "$TOKEN"', secrets=["TOKEN"])
    for task in range(2):
        assert bundle.run(0, 1, f"--task={task}", scheduler_id=f"20_{task}").returncode == 0
    assert secret.exists()


def test_one_that_the_engine_put_into_the_environment(bundle):
    bundle.shell('test "$TOKEN" = there', secrets=["TOKEN"])
    assert bundle.run(env={**os.environ, "TOKEN": "there"}).returncode == 0


def test_a_link_is_not_followed(bundle, secret, tmp_path):
    (tmp_path / "other").write_text("somebody else's")
    secret.unlink()
    secret.symlink_to(tmp_path / "other")
    bundle.shell("true", secrets=["TOKEN"])
    assert bundle.run().returncode == 86
    assert bundle.node()["error"]["code"] == "secret_missing"


def test_a_traceback_with_a_secret_is_recorded_without_it(bundle, secret):
    bundle.script("import os\nraise ValueError('bad token: ' + os.environ['TOKEN'].strip())", secrets=["TOKEN"])
    assert bundle.run().returncode == 1
    error = bundle.status("rank-0.error.json")
    assert error["message"] == "bad token: ***"
    assert "s3cret" not in error["traceback"]

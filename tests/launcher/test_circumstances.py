"""Odd circumstances on the far side."""

import os
import stat
import subprocess

import pytest

from .conftest import NODE_PYTHON, make_bundle, until


@pytest.fixture
def umask_077():
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_a_narrow_umask_hides_no_record(tmp_path, umask_077):
    bundle = make_bundle(tmp_path / "run")
    bundle.folder.chmod(0o755)
    bundle.shell("umask; touch mine; echo up", processes_per_node=2, setup="true")
    assert bundle.run().returncode == 0
    assert bundle.rank_log() == b"0077\nup\n"
    assert stat.S_IMODE((bundle.folder / "work" / "mine").stat().st_mode) == 0o600
    for part in ("status/attempt-1", "logs/attempt-1"):
        folder = bundle.folder / part
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert set(modes.values()) == {0o644}, modes


def test_a_bundle_that_a_group_shares(tmp_path, umask_077):
    bundle = make_bundle(tmp_path / "run")
    bundle.folder.chmod(0o770)
    bundle.shell("true")
    assert bundle.run().returncode == 0
    assert stat.S_IMODE((bundle.logs() / "node-0.log").stat().st_mode) == 0o664


@pytest.mark.parametrize("launcher", ["python", "none"])
def test_a_home_that_does_not_exist(bundle, launcher):
    bundle.script("import os; print(os.environ['HOME'])", launcher=launcher, setup=":")
    environment = {"PATH": os.environ["PATH"], "HOME": "/no/such/home"}
    assert bundle.run(env=environment).returncode == 0
    assert bundle.rank_log() == b"/no/such/home\n"


def test_an_empty_environment(bundle):
    bundle.script("print('hello')", setup=":")
    assert bundle.run(env={}).returncode == 0
    assert bundle.rank_log() == b"hello\n"


def test_a_home_and_a_tmp_that_are_read_only(bundle, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    bundle.script("import os; print(os.access(os.environ['HOME'], os.W_OK))", setup="export A=1")
    mount = f'mount -t tmpfs -o ro none "{home}" && exec "$0" "$@"'
    launcher = bundle.start(python="/bin/true")
    launcher.communicate()
    words = [NODE_PYTHON, *launcher.args[1:]]
    unshare = ["unshare"] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    done = subprocess.run(
        [*unshare, "--mount", "/bin/sh", "-c", mount, *words],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)},
        stdout=subprocess.DEVNULL,
        timeout=30,
    )
    assert done.returncode == 0
    assert bundle.rank_log() == b"False\n"


def test_records_that_cannot_be_written_end_nothing(bundle):
    bundle.shell("echo up; while [ ! -e go ]; do sleep 0.05; done; echo done")
    launcher = bundle.start()
    bundle.until_said(b"up")
    until(bundle.rank_pids)
    folder = bundle.folder / "status" / "attempt-1"
    folder.rename(folder.with_name("away"))
    logs = bundle.folder / "logs" / "attempt-1"
    logs.rename(logs.with_name("away"))
    away = logs.with_name("away")
    (bundle.folder / "work" / "go").touch()
    until(lambda: b"done" in (away / "node-0.rank-0.log").read_bytes())
    until(lambda: "cannot write" in (away / "node-0.log").read_text())
    logs.with_name("away").rename(logs)
    folder.with_name("away").rename(folder)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 0
    assert bundle.node_log().count("cannot write") == 1
    assert bundle.node()["exit_code"] == 0


def test_a_disk_that_takes_no_more_ends_nothing(bundle):
    # A limit on the size of files fails the launcher's writes; each rank lifts it for itself.
    bundle.script(
        "import resource, time\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\n"
        "print('x' * 5000, flush=True); time.sleep(0.5); print('y' * 5000)\n",
        processes_per_node=8,
    )
    launcher = bundle.start(python="/bin/true")
    launcher.communicate()
    words = [NODE_PYTHON, *launcher.args[1:]]
    limited = 'ulimit -S -f 1; exec "$0" "$@"'
    done = subprocess.run(["/bin/bash", "-c", limited, *words], stdout=subprocess.DEVNULL, timeout=30)
    assert done.returncode == 0
    for local_rank in range(8):
        assert len(bundle.rank_log(local_rank)) == 10002
    assert bundle.node_log().count("node-0.json: File too large; trying again") == 1


def test_nothing_is_written_beside_the_bundles_own_parts(bundle):
    bundle.script("pass", setup="true", secrets=[])
    assert bundle.run().returncode == 0
    names = {path.name for path in bundle.folder.iterdir()}
    assert names == {"launch.json", "launcher.py", "code", "work", "logs", "status"}
    left = [path.name for path in bundle.folder.rglob(".*")]
    assert left == []

"""Environments that travel with runs, with a real uv and packages of this test's own."""

import base64
import http.server
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import pytest

from hyperpod_jlab.launcher import environments
from hyperpod_jlab.launcher.errors import LauncherError
from tests.mounts import on_small_disk
from tests.tiny_packages import slow_source, wheel

from .conftest import kill_processes_with, make_bundle, until

PYTHON = "{}.{}".format(*sys.version_info[:2])
SCRIPT = "import sys, alpha; print(alpha.VERSION, sys.prefix)"


def add_environment(bundle, *lines, script=SCRIPT, changes=None, **document):
    """Let a run bring an environment along."""
    content = {"format": 1, "python": PYTHON, "platform": sysconfig.get_platform(), **document}
    content.setdefault("requirements", "".join(f"{line}\n" for line in lines))
    (bundle.folder / "code" / "environment.json").write_text(json.dumps(content))
    changes = {"run_id": bundle.folder.name, **(changes or {})}
    bundle.script(script, environment="code/environment.json", **changes)
    return bundle


@pytest.fixture
def partition(tmp_path, monkeypatch):
    """Makes bundles of one user's partition; uv keeps its cache in the test's folder."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    made = []

    def make(name="one"):
        made.append(make_bundle(tmp_path / ".hyperpod" / "runs" / "ab" / name))
        return made[-1]

    yield make
    for bundle in made:
        for launcher in bundle.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.communicate()


@pytest.fixture
def index(tmp_path):
    """Lines that let installers look only into a folder, which has the package alpha."""
    folder = tmp_path / "packages"
    wheel(folder, "alpha")
    return folder, ("--no-index", f"--find-links {folder}")


def builds(tmp_path):
    """Environments, and what builders have left."""
    return sorted((tmp_path / ".hyperpod" / "environments").glob("*"))


def plain_python(folder):
    """A Python without uv, with the programs of the system alone on the PATH."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    path = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    assert shutil.which("uv", path=path) is None
    return str(folder / "bin" / "python"), {**os.environ, "PATH": path}


def test_the_first_run_builds_and_the_second_uses_that(partition, index, tmp_path):
    lines = (*index[1], "alpha==1.0")
    first = add_environment(partition(), *lines, changes={"processes_per_node": 2})
    assert first.run().returncode == 0, first.node_log()
    second = add_environment(partition("two"), *lines)
    assert second.run().returncode == 0, second.node_log()
    (build,) = builds(tmp_path)
    for log in (first.rank_log(0), first.rank_log(1), second.rank_log()):
        assert log.decode() == f"1.0 {build}\n"
    assert "built in" in first.node_log()
    assert "built" not in second.node_log()
    assert {path.name for path in (build / "used").iterdir()} == {"one", "two"}


def test_without_uv_the_run_says_what_to_do(partition, index, tmp_path):
    python, variables = plain_python(tmp_path / "plain")
    bundle = add_environment(partition(), *index[1], "alpha", changes={"python": python})
    assert bundle.run(env=variables).returncode == 86
    error = bundle.node()["error"]
    assert error["message"] == "the environment cannot be built: this node has no uv"
    assert error["hint"].startswith("install uv on the nodes or in the image")
    assert builds(tmp_path) == []


def test_programs_of_packages_find_their_python(partition, index):
    wheel(index[0], "tool", extra={"tool-1.0.dist-info/entry_points.txt": "[console_scripts]\ntool = tool:main\n"})
    bundle = add_environment(
        partition(),
        *index[1],
        "tool",
        script="import os, pathlib, shutil, sys; p = pathlib.Path(shutil.which('tool')); "
        "print(p.parent.samefile(sys.prefix + '/bin'), b'building' in p.read_bytes())",
    )
    assert bundle.run().returncode == 0, bundle.node_log()
    assert bundle.rank_log() == b"True False\n"


def test_setup_lines_and_commands_run_in_it(partition, index):
    bundle = add_environment(partition(), *index[1], "alpha")
    plan = json.loads((bundle.folder / "launch.json").read_text())
    command = ["/bin/bash", "-c", "python -c 'import alpha; print(alpha.VERSION)'"]
    bundle.plan(*command, environment=plan["environment"], launcher="none", setup="python -c 'import alpha'")
    assert bundle.run().returncode == 0, bundle.node_log()
    assert bundle.rank_log() == b"1.0\n"


def test_another_content_is_another_environment(partition):
    contents: list[dict[str, object]] = [{}, {"requirements": "a"}, {"pip": ["install a"]}, {"python": None}]
    keys = set()
    for number, content in enumerate(contents):
        bundle = add_environment(partition(str(number)), **content)
        keys.add(environments.PackageEnvironment(str(bundle.folder))._key())
    same = add_environment(partition("same"), platform="win-amd64", **{"from": "lock"})
    keys.add(environments.PackageEnvironment(str(same.folder))._key())
    assert len(keys) == len(contents)


def test_other_places_of_packages_or_setup_lines_are_another_environment(partition, tmp_path, monkeypatch):
    settings = tmp_path / "uv.toml"
    settings.write_text("")
    count = iter(range(99))

    def key(setup=None, **variables):
        bundle = add_environment(partition(str(next(count))), "alpha", changes={"setup": setup})
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return environments.PackageEnvironment(str(bundle.folder))._key()

    plain, index = key(), "https://me:hunter2@test.example/simple"
    keys = [
        plain,
        key(setup="pip install beta"),
        key(PIP_EXTRA_INDEX_URL=index),
        key(PIP_FIND_LINKS="/x"),
        key(PIP_NO_INDEX="1"),
        key(UV_CONFIG_FILE=str(settings)),
        key(UV_CONSTRAINT="/x"),
        key(UV_INDEX_STRATEGY="first-index"),
        key(UV_CONFIG_FILE="/x"),
        key(UV_EXCLUDE_NEWER="2026-01-01"),
        key(PIP_INDEX_URL=index),
    ]
    settings.write_text("no-index = true\n")
    keys.append(key(UV_CONFIG_FILE=str(settings)))
    assert len(set(keys)) == len(keys)
    # The same place by another name or with another password, and what decides nothing.
    assert key(UV_DEFAULT_INDEX=index) == key(PIP_INDEX_URL=index)
    assert key(PIP_INDEX_URL=index.replace("hunter2", "changed")) == key(PIP_INDEX_URL=index)
    assert key(UV_CACHE_DIR="/y", PIP_CACHE_DIR="/y", UV_HTTP_TIMEOUT="9") == plain


def test_packages_of_a_test_index_are_not_served_to_a_run_without_it(partition, index, tmp_path):
    wheel(tmp_path / "test", "alpha", "9.9")
    lines = ("--no-index", "alpha")
    for name, folder, version in (("one", "test", "9.9"), ("two", "packages", "1.0")):
        bundle = add_environment(partition(name), *lines)
        variables = {**os.environ, "PIP_FIND_LINKS": str(tmp_path / folder)}
        assert bundle.run(env=variables).returncode == 0, bundle.node_log()
        assert bundle.rank_log().decode().startswith(version)


def test_a_uv_of_the_project_does_not_build(partition, index, tmp_path):
    bundle = add_environment(partition(), *index[1], "alpha")
    program = bundle.folder / "work" / "uv"
    program.parent.mkdir(exist_ok=True)
    for file in (program, program.with_name("uv.py")):
        file.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nopen('{tmp_path}/ran', 'w')\n")
        file.chmod(0o755)
    variables = {**os.environ, "PATH": f".::{os.defpath}", "PYTHONPATH": str(program.parent)}
    assert bundle.run(env=variables).returncode == 0, bundle.node_log()
    assert not (tmp_path / "ran").exists()


def test_lines_of_pip_are_installed_after_the_rest(partition, index):
    wheel(index[0], "beta", "2.5")
    bundle = add_environment(
        partition(), *index[1], "alpha", script="import alpha, beta", pip=["install -q 'beta>2' # it"]
    )
    assert bundle.run().returncode == 0, bundle.node_log()


def test_two_runs_at_once_build_once(partition, index, tmp_path):
    begun, go = slow_source(index[0], "slow")
    script = "import slow, sys; print(sys.prefix)"
    first, second = (add_environment(partition(name), *index[1], "slow", script=script) for name in ("one", "two"))
    launchers = [first.start()]
    until(begun.exists, "the build")
    launchers.append(second.start())
    until(lambda: "waiting for the environment, which the run one" in second.node_log())
    go.touch()
    assert [launcher.wait(60) for launcher in launchers] == [0, 0]
    assert len(builds(tmp_path)) == 1
    assert first.rank_log() == second.rank_log()


def test_a_killed_builder_is_taken_over(partition, index, tmp_path, monkeypatch):
    begun, go = slow_source(index[0], "slow")
    first, second = (
        add_environment(partition(name), *index[1], "slow", script="import slow") for name in ("one", "two")
    )
    launcher = first.start()
    until(begun.exists, "the build")
    (torn,) = builds(tmp_path)
    assert torn.name.endswith(".building-1")
    launcher.kill()
    kill_processes_with(f"HYPERPOD_BUNDLE={first.folder}")  # uv, too, as a lost node would
    launcher.wait()
    go.touch()
    monkeypatch.setattr(environments, "DEAD_AFTER_S", 1.0)
    whole = environments.PackageEnvironment(str(second.folder)).obtain()
    assert builds(tmp_path) == [Path(whole)]
    assert torn.name == f"{Path(whole).name}.building-1"


def test_a_builder_that_was_taken_for_dead_uses_what_the_other_built(partition, index, tmp_path, monkeypatch):
    begun, go = slow_source(index[0], "slow")
    first, second = (
        add_environment(partition(name), *index[1], "slow", script="import slow") for name in ("one", "two")
    )
    launcher = first.start()
    until(begun.exists, "the build")
    monkeypatch.setattr(environments, "DEAD_AFTER_S", -1.0)
    threading.Timer(2.0, go.touch).start()
    whole = environments.PackageEnvironment(str(second.folder)).obtain()
    assert launcher.wait(60) == 0, first.node_log()
    until(lambda: builds(tmp_path) == [Path(whole)], "the end of both claims")


def test_a_stopped_builder_leaves_nothing_and_no_lease(partition, index, tmp_path):
    begun, go = slow_source(index[0], "slow")
    bundle = add_environment(partition(), *index[1], "slow", script="import slow")
    launcher = bundle.start()
    until(begun.exists, "the build")
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == 128 + signal.SIGTERM
    assert builds(tmp_path) == []
    go.touch()
    again = add_environment(partition("two"), *index[1], "slow", script="import slow")
    assert again.run().returncode == 0, again.node_log()


def test_a_builder_is_dead_when_its_file_is_no_longer_touched(partition, index, monkeypatch):
    bundle = add_environment(partition(), *index[1], "alpha")
    environment = environments.PackageEnvironment(str(bundle.folder))
    claim = Path(environment._claim(1))
    claim.mkdir(parents=True)
    (claim / "builder.json").write_text("{}")
    times = iter((0.0, 29.0, 31.0, 32.0, 63.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times, 99.0))
    assert [environment._is_dead(1) for _ in range(3)] == [False, False, True]
    os.utime(claim / "builder.json", (1, 1))  # by a clock of its own
    assert [environment._is_dead(1) for _ in range(2)] == [False, True]


def test_a_build_that_fails_ends_the_run_with_the_installers_words(partition, index, tmp_path):
    bundle = add_environment(partition(), *index[1], "nothing==7")
    assert bundle.run().returncode == 86
    error = bundle.node()["error"]
    assert error["code"] == "environment_failed"
    assert "nothing" in error["message"]
    assert any("nothing" in line for line in error["detail"]["lines"])
    assert "nothing" in bundle.node_log()
    assert builds(tmp_path) == []
    wheel(index[0], "nothing", "7")
    again = add_environment(partition("two"), *index[1], "nothing==7", script="import nothing")
    assert again.run().returncode == 0


def test_packages_of_another_platform_are_said_to_be_that(partition, index):
    wheel(index[0], "windows", tag="py3-none-win_amd64")
    bundle = add_environment(partition(), *index[1], "windows", platform="win-amd64")
    assert bundle.run().returncode == 86
    error = bundle.node()["error"]
    assert error["code"] == "environment_failed"
    assert f"captured on win-amd64, this node is {sysconfig.get_platform()}" in error["hint"]


def test_another_python_is_refused(partition, index):
    bundle = add_environment(partition(), *index[1], "alpha", python="3.2")
    assert bundle.run().returncode == 86
    error = bundle.node()["error"]
    assert error["code"] == "python_version"
    assert f"captured with Python 3.2, but the job would run it with Python {PYTHON}" in error["message"]


def test_a_damaged_environment_is_built_again(partition, index, tmp_path):
    lines = (*index[1], "alpha")
    assert add_environment(partition(), *lines).run().returncode == 0
    (build,) = builds(tmp_path)
    (build / "bin" / "python").unlink()
    bundle = add_environment(partition("two"), *lines)
    assert bundle.run().returncode == 0, bundle.node_log()
    assert "is damaged; it is built again" in bundle.node_log()


def test_an_environment_whose_python_is_elsewhere_is_left_to_the_others(partition, index, tmp_path):
    lines = (*index[1], "alpha")
    assert add_environment(partition(), *lines).run().returncode == 0
    (build,) = builds(tmp_path)
    python = build / "bin" / "python"
    python.unlink()
    python.symlink_to("/on/another/node")
    bundle = add_environment(partition("two"), *lines)
    assert bundle.run().returncode == 86
    assert "is not on this node" in bundle.node()["error"]["message"]
    assert python.is_symlink()


def test_environments_of_an_older_version_are_left_alone(partition, index, tmp_path):
    lines = (*index[1], "alpha")
    old = tmp_path / ".hyperpod" / "environments" / ("0" * 32)
    (old / "build-1").mkdir(parents=True)
    for name in ("ready.json", "lease-1.json"):
        (old / name).write_text('{"format": 1, "build": "build-1"}')
    bundle = add_environment(partition(), *lines)
    assert bundle.run().returncode == 0, bundle.node_log()
    assert len(builds(tmp_path)) == 2
    assert len(list(old.iterdir())) == 3


def test_a_folder_that_others_may_change_is_not_used(partition, index, tmp_path):
    folder = tmp_path / ".hyperpod" / "environments"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    bundle = add_environment(partition(), *index[1], "alpha")
    assert bundle.run().returncode == 86
    assert bundle.node()["error"]["code"] == "untrusted_environment"
    folder.chmod(0o755)
    assert add_environment(partition("two"), *index[1], "alpha").run().returncode == 0
    (build,) = builds(tmp_path)
    assert not stat.S_IMODE(build.stat().st_mode) & 0o022


class PrivateIndex(http.server.BaseHTTPRequestHandler):
    """An index of one package for those who know the password."""

    packages = Path()

    def do_GET(self):
        expected = "Basic " + base64.b64encode(b"me:hunter2-hunter2").decode()
        name = self.path.rpartition("/")[2]
        page = "".join(f'<a href="/{path.name}">{path.name}</a>' for path in self.packages.iterdir())
        known = self.headers.get("Authorization") == expected
        self.send_response(200 if known else 401)
        self.send_header("WWW-Authenticate", "Basic realm=x")
        self.send_header("Content-Type", "application/octet-stream" if name else "text/html")
        self.end_headers()
        if known and self.command == "GET":
            self.wfile.write((self.packages / name).read_bytes() if name else page.encode())

    do_HEAD = do_GET  # noqa: N815 - its name in the base class

    def log_message(self, *_):
        """Say nothing."""


def test_a_private_index_is_read_with_a_secret_that_is_in_no_file(partition, index, tmp_path):
    PrivateIndex.packages = index[0]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PrivateIndex)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"--index-url http://me:${{TOKEN}}@127.0.0.1:{server.server_port}/simple"
    with server:
        for name, password, code in (("one", "wrong-secret", 86), ("two", "hunter2-hunter2", 0)):
            bundle = add_environment(partition(name), address, "alpha", changes={"secrets": ["TOKEN"]})
            (bundle.folder / "secrets").mkdir()
            (bundle.folder / "secrets" / "TOKEN").write_text(password)
            assert bundle.run().returncode == code, bundle.node_log()
        server.shutdown()
    files = [path for path in (tmp_path / ".hyperpod").rglob("*") if path.is_file()]
    assert len(files) > 5
    found = [path for path in files if re.search(b"hunter2|wrong-secret", path.read_bytes())]
    assert found == []


def test_a_full_disk_is_said(tmp_path):
    found = on_small_disk("tests.launcher.full_disk", "environment", tmp_path / "disk")
    assert found["exit_code"] == 86
    assert found["error"]["code"] == "environment_failed"
    assert "No space left" in found["error"]["message"]
    assert found["builds"] == []


def test_a_bundle_outside_of_a_partition_keeps_its_environment_for_itself(bundle, index):
    add_environment(bundle, *index[1], "alpha")
    assert bundle.run().returncode == 0, bundle.node_log()
    assert bundle.rank_log().decode().split()[1].startswith(f"{bundle.folder}/environments/")


def test_an_unreadable_document_is_an_error(partition):
    bundle = add_environment(partition(), "alpha")
    (bundle.folder / "code" / "environment.json").write_text("{")
    assert bundle.run().returncode == 86
    assert bundle.node()["error"]["code"] == "bad_plan"
    with pytest.raises(LauncherError):
        environments.PackageEnvironment(str(bundle.folder))

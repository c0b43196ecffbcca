"""kubectl, helm and the Session Manager plugin in the terminals of a space, out of the archive that an admin has made."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.lifecycle.image import TREE
from tests.lifecycle.test_in_space import message, returned, steps

pytestmark = pytest.mark.timeout(600)
"""They install and start things, on machines that have other work too."""

MAKE = TREE / "lifecycle-configs" / "make-tools.sh"
NAMES = ("kubectl", "helm", "session-manager-plugin")


def made(*words, path="/usr/local/bin:/usr/bin:/bin"):
    return subprocess.run([MAKE, *words], capture_output=True, text=True, env={"PATH": path}, timeout=60)


def archive_of(folder: Path, version: str, names=NAMES) -> tuple[Path, str]:
    """An archive of programs that say their name and version; its path and checksum."""
    programs = folder / version
    programs.mkdir()
    for name in names:
        (programs / name).write_text(f"#!/bin/sh\necho {name} {version}\n")
    archive = folder / f"tools-{version}.tar.gz"
    done = made("--from", programs, archive)
    assert done.returncode == 0, done.stderr
    return archive, done.stdout.strip()


@pytest.fixture
def tools(partition):
    """On the partition: the settings of an archive."""
    (partition / "tools").mkdir()

    def make(version, names=NAMES):
        archive, digest = archive_of(partition / "tools", version, names)
        return {"tools": f"tools/{archive.name}", "tools_sha256": digest}

    return make


@pytest.mark.full
def test_programs_are_in_the_terminals_of_both_applications(space, script, tools):
    with space(network=False) as started:
        first = tools("1")
        returned(*started.lifecycle(script(app="jupyterlab", **first)))
        status = started.ended()
        assert steps(status)["tools"] == "done", started.log()
        words = "in terminals: helm kubectl session-manager-plugin"
        assert message(status, "tools") == words
        for name in NAMES:
            assert started.run("bash", "-c", name).stdout == f"{name} 1\n"
        assert not list(started.inside("/tmp/hyperpod-jlab-1000-work").glob("tools*"))

        # Again, in the other application, and with a newer archive.
        returned(*started.lifecycle(script(**first)))
        assert message(started.ended(), "tools").startswith("in terminals already: ")
        returned(*started.lifecycle(script(**tools("2"))))
        assert message(started.ended(), "tools") == words
        assert started.run("bash", "-c", "helm").stdout == "helm 2\n"

        # What was broken off is done again, whatever it left.
        started.run("bash", "-c", "echo >/opt/conda/bin/helm")
        started.run("sed", "-i", "1s/.*//", "/opt/conda/bin/hyperpod_jlab.tools")
        returned(*started.lifecycle(script(**tools("3"))))
        assert steps(started.ended())["tools"] == "done"
        assert started.run("bash", "-c", "helm").stdout == "helm 3\n"


@pytest.mark.full
def test_what_the_image_has_stays(space, script, tools):
    with space(network=False) as started:
        own = "#!/bin/sh\necho mine\n"
        done = started.run("bash", "-c", "cat >/opt/conda/bin/kubectl; chmod 755 /opt/conda/bin/kubectl", input=own)
        assert done.returncode == 0, done.stderr
        for version in ("1", "2"):
            returned(*started.lifecycle(script(**tools(version))))
            words = "in terminals: helm session-manager-plugin; the image has its own: kubectl"
            assert message(started.ended(), "tools") == words
        assert started.run("bash", "-c", "kubectl").stdout == "mine\n"
        assert started.run("bash", "-c", "helm").stdout == "helm 2\n"


@pytest.mark.full
def test_an_archive_that_was_changed_or_leads_out_is_not_used(space, script, tools, partition):
    with space(network=False) as started:
        given = tools("1")
        archive = partition / given["tools"]
        good = archive.read_bytes()
        archive.write_bytes(good + b"x")
        started.lifecycle(script(**given))
        status = started.ended()
        assert "does not have the SHA-256 that was set" in message(status, "tools")
        # One step that fails keeps none of the others from going on.
        assert (steps(status)["tools"], steps(status)["config"]) == ("failed", "done")

        out = partition / "out.tar.gz"
        with tarfile.open(out, "w:gz") as file:
            file.add(archive, "bin/../../../etc/x")
        digest = subprocess.run(["sha256sum", out], capture_output=True, text=True).stdout[:64]
        started.lifecycle(script(tools="out.tar.gz", tools_sha256=digest))
        assert "holds more than programs" in message(started.ended(), "tools")
        started.lifecycle(script(tools="none.tar.gz", tools_sha256=digest))
        assert "cannot be read" in message(started.ended(), "tools")
        for name in NAMES:
            assert not started.inside(f"/opt/conda/bin/{name}").exists()


@pytest.mark.full
def test_without_room_nothing_half_is_left(space, script, tools):
    """The package is there; then the disk is full, and the application starts all the same."""
    with space(network=False) as started:
        started.lifecycle(script())
        started.ended()
        started.run("mount", "-t", "tmpfs", "-o", "size=256k", "bin", "/media", root=True)
        started.run("bash", "-c", "cp -P /opt/conda/bin/python3* /opt/conda/bin/hpj /media", root=True)
        started.run("bash", "-c", "cat /dev/zero >/media/full", root=True)
        started.run("mount", "--bind", "/media", "/opt/conda/bin", root=True)
        returned(*started.lifecycle(script(**tools("1"))))
        status = started.ended()
        assert steps(status)["tools"] == "failed", started.log()
        assert "cannot be written" in message(status, "tools")
        assert not started.inside("/opt/conda/bin/kubectl").exists()


def test_what_does_not_have_its_publishers_checksum_or_signature_is_refused(tmp_path):
    """The downloads, out of a folder: kubectl's checksum is wrong, then all are right but AWS' signature."""
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin" / "curl"
    curl.write_text(f'#!/bin/bash\nfor to; do :; done\ncp "{tmp_path}/web/${{to##*/}}" "${{@: -2:1}}"\n')
    curl.chmod(0o755)
    web = tmp_path / "web"
    web.mkdir()
    (web / "kubectl").write_text("kubectl")
    (web / "kubectl.sha256").write_text("0" * 64)
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    target = tmp_path / "tools.tar.gz"
    done = made(target, path=path)
    assert (done.returncode, target.exists()) == (1, False)
    assert "kubectl does not have the checksum" in done.stderr

    def checksum(name):
        return subprocess.run(["sha256sum", web / name], capture_output=True, text=True).stdout[:64]

    (web / "kubectl.sha256").write_text(checksum("kubectl"))
    helm = web / "helm-v3.0.0-linux-amd64.tar.gz"
    with tarfile.open(helm, "w:gz") as file:
        file.add(web / "kubectl", "linux-amd64/helm")
    (web / f"{helm.name}.sha256sum").write_text(f"{checksum(helm.name)}  {helm.name}\n")
    deb = web / "session-manager-plugin.deb"
    deb.write_text("no package")
    deb.with_name(f"{deb.name}.sig").write_text("no signature")
    done = made("--helm", "v3.0.0", target, path=path)
    assert (done.returncode, target.exists()) == (1, False)
    assert "does not have AWS' signature" in done.stderr


@pytest.mark.parametrize(
    "words", [["--kubectl", "1.34", "x.tar.gz"], ["x.zip"], [], ["--from", "/nowhere", "x.tar.gz"]]
)
def test_making_it_says_what_is_wrong(words):
    done = made(*words)
    assert done.returncode in {1, 2}
    assert done.stderr

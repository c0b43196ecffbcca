"""Where a package comes from, besides the partition: the package index, and S3 by the AWS CLI."""

from __future__ import annotations

import functools
import hashlib
import shutil
from http.server import SimpleHTTPRequestHandler

import pytest

from testbed.loopback import Handler, Loopback
from tests.lifecycle.test_in_space import message, returned, steps

pytestmark = pytest.mark.timeout(600)
"""They install and start things, on machines that have other work too."""


class _Handler(SimpleHTTPRequestHandler, Handler):
    """Files, with what S3 says of an object; ``/simple/`` is a package index as it is."""

    def end_headers(self) -> None:
        self.send_header("ETag", '"0"')
        super().end_headers()


@pytest.fixture
def served(base, package):
    folder = base / "served"
    shutil.copytree(package.folder, folder / "bucket" / "packages")
    for path in package.folder.glob("*.whl"):
        name = path.name.split("-")[0].replace("_", "-").lower()
        (folder / "simple" / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / "simple" / name)
    with Loopback(functools.partial(_Handler, directory=str(folder))) as server:
        yield server.url


@pytest.fixture
def started(space, served):
    variables = {
        "PIP_INDEX_URL": f"{served}/simple/",
        "PIP_EXTRA_INDEX_URL": "",
        "AWS_ENDPOINT_URL_S3": served,
        "AWS_ACCESS_KEY_ID": "AKIATESTBEDEXAMPLE01",
        "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
    }
    with space(variables=variables) as made:
        yield made


@pytest.mark.full
def test_the_index_with_and_without_the_right_checksum(started, script, package):
    version = package.wheel.name.split("-")[1]
    wanted = f"hyperpod-jlab=={version}"
    returned(*started.lifecycle(script(package=wanted, package_sha256="1" * 64)))
    status = started.ended()
    assert steps(status)["package"] == "failed"
    assert "does not have the SHA-256 that was set" in message(status, "package")
    assert started.run("bash", "-c", "command -v hpj").returncode != 0

    digest = hashlib.sha256(package.wheel.read_bytes()).hexdigest()
    for sha256 in (digest, None):
        returned(*started.lifecycle(script(package=wanted, package_sha256=sha256)))
        assert steps(started.ended())["package"] == "done", started.log()
        assert started.run("hpj", "--version").returncode == 0


@pytest.mark.full
def test_s3_folder_and_wheel(started, script, package):
    returned(*started.lifecycle(script(package="s3://bucket/packages/")))
    assert steps(started.ended())["package"] == "done", started.log()
    assert started.run("hpj", "--version").returncode == 0

    wheel = f"s3://bucket/packages/{package.wheel.name}"
    returned(*started.lifecycle(script(package=wheel, package_sha256="1" * 64)))
    status = started.ended()
    assert "does not have the SHA-256" in message(status, "package")
    digest = hashlib.sha256(package.wheel.read_bytes()).hexdigest()
    returned(*started.lifecycle(script(package=wheel, package_sha256=digest)))
    status = started.ended()
    assert steps(status)["package"] == "done", started.log()

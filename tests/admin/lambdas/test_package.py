"""The package: the same bytes twice, small, whole, and quickly imported."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.admin.lambdas.package import ROOT, build, built, interpreter

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]
"""pip installs into the package, from an index."""

BIG_ZIPPED, BIG_UNZIPPED = 50_000_000, 250_000_000
EVERY_MODULE = """
import importlib, pathlib, sys
package = sys.argv[1]
sys.path.insert(0, package)
for path in sorted(pathlib.Path(package, "hyperpod_jlab").rglob("*.py")):
    parts = path.relative_to(package).with_suffix("").parts
    importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
import hyperpod_jlab
print(hyperpod_jlab.__version__)
"""


def names():
    with zipfile.ZipFile(built()) as made:
        return made.namelist()


def test_the_same_bytes_again(tmp_path):
    _, version = interpreter()
    build(tmp_path / "again.zip", "--python", version)
    assert (tmp_path / "again.zip").read_bytes() == built().read_bytes()


def test_it_says_its_size_and_is_small():
    with zipfile.ZipFile(built()) as made:
        unzipped = sum(one.file_size for one in made.infolist())
        assert {one.date_time for one in made.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert built().stat().st_size < BIG_ZIPPED / 4
    assert unzipped < BIG_UNZIPPED / 4


def test_there_is_nothing_that_is_not_needed():
    tops = {name.split("/")[0] for name in names() if ".dist-info" not in name}
    assert "jupyter_server" not in tops
    assert {"boto3", "botocore", "pydantic", "pydantic_core", "hyperpod_jlab"} <= tops
    ours = {name.split("/")[1] for name in names() if name.startswith("hyperpod_jlab/")}
    assert ours == {"__init__.py", "admin", "aws", "contributions.py", "core", "engines", "launcher", "storage"}
    services = {name.split("/")[2] for name in names() if re.match("botocore/data/[^/]*/", name)}
    assert services == {"ec2", "eks", "fsx", "sagemaker", "sts"}
    assert not [name for name in names() if "__pycache__" in name]


def test_every_licence_is_there():
    folders = {name.split("/")[0] for name in names() if ".dist-info/" in name}
    for folder in folders:
        assert [
            name for name in names() if name.startswith(f"{folder}/") and re.search("LICENSE|licenses|METADATA", name)
        ], folder


def test_every_module_of_ours_imports_with_the_package_alone(package):
    python, _ = interpreter()
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", EVERY_MODULE, str(package)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == json.loads((ROOT / "package.json").read_text())["version"]


def test_other_architectures(tmp_path):
    build(tmp_path / "arm.zip", "--architecture", "arm64")
    with zipfile.ZipFile(tmp_path / "arm.zip") as made:
        (found,) = [name for name in made.namelist() if "_pydantic_core" in name and ".so" in name]
        binary = made.read(found)
    assert "cpython-312-aarch64" in found
    assert int.from_bytes(binary[18:20], "little") == 183  # EM_AARCH64 of ELF's header


@pytest.mark.parametrize("handler", ["custom_resource", "new_profile", "reconcile"])
def test_nothing_from_outside_and_nothing_written(function, package, handler):
    before = sorted(package.rglob("*"))
    invoked = function.invoke(handler, {})
    assert invoked.error["errorType"] == "InvalidInputError"
    assert invoked.outside == (str(Path(__file__).with_name("runtime.py")),)
    assert sorted(package.rglob("*")) == before
    assert not Path("/home/sbx_user1051").exists()
    assert invoked.imported < 5  # 0.6 s on an idle machine

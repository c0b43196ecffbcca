"""Build the package of the functions of AWS Lambda: what of ours they use, and what that needs, as wheels for Lambda's Python.

The same sources and the same constraints make the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import grimp

from hyperpod_jlab.admin.lambdas.settings import services

ROOT = Path(__file__).resolve().parent.parent
NAME = "hyperpod-jlab-admin"

PYTHON = "3.12"
"""Lambda's runtime ``python3.12`` (Amazon Linux 2023, glibc 2.34)."""

PLATFORMS = ("manylinux2014_{}", "manylinux_2_17_{}", "manylinux_2_28_{}", "manylinux_2_34_{}")
ARCHITECTURES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""Lambda's words, and those of wheels."""

PACKAGE = "hyperpod_jlab"
HANDLERS = tuple(f"{PACKAGE}.admin.lambdas.{name}" for name in ("custom_resource", "new_profile", "reconcile"))
"""What of ours is in it: these, and all that they import, inside of functions too."""

REQUIREMENTS = ("pydantic", "boto3", "httpx", "sniffio")
"""What these import, of the requirements in pyproject.toml; the versions are those of the constraints."""

MOST_ZIPPED, MOST_UNZIPPED = 50_000_000, 250_000_000
"""Bytes that Lambda takes, uploaded as it is, and unpacked (quotas of Lambda)."""

KEPT_OF_METADATA = frozenset({"METADATA", "licenses", "LICENSE", "LICENSE.txt", "NOTICE"})


def main() -> int:
    given = _arguments()
    target = given.output or ROOT / "dist" / f"{NAME}-{version()}{_suffix(given)}.zip"
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder), given.architecture, given.python)
        pack(Path(folder), target)
    zipped, unzipped = sizes(target)
    print(f"{target}: {zipped / 1e6:.1f} MB, unpacked {unzipped / 1e6:.1f} MB")
    print(f"sha256 {hashlib.sha256(target.read_bytes()).hexdigest()}")
    if zipped > MOST_ZIPPED or unzipped > MOST_UNZIPPED:
        print("Lambda takes no package of this size", file=sys.stderr)
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architecture", choices=list(ARCHITECTURES), default="x86_64")
    parser.add_argument("--python", default=PYTHON, help=f"default: {PYTHON}")
    parser.add_argument("--output", type=Path, help=f"default: dist/{NAME}-VERSION.zip")
    return parser.parse_args()


def _suffix(given: argparse.Namespace) -> str:
    return "" if given.architecture == "x86_64" else f"-{given.architecture}"


def version() -> str:
    found = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["version"]
    return str(found)


def install(folder: Path, architecture: str, python: str) -> None:
    """Put all of it into a folder."""
    words = ["--target", str(folder), "--no-compile", "--only-binary=:all:"]
    words += ["--implementation", "cp", "--python-version", python]
    for platform in PLATFORMS:
        words += ["--platform", platform.format(ARCHITECTURES[architecture])]
    words += ["--constraint", str(ROOT / "requirements" / "constraints.txt"), *requirements()]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, *words], check=True)
    thin_out(folder)
    ours(folder)


def requirements() -> list[str]:
    """The lines of pyproject.toml for what is needed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["aws"], *extras["kubernetes"]]
    found = [line for line in lines if line.startswith(REQUIREMENTS)]
    if len(found) != len(REQUIREMENTS):
        raise SystemExit(f"pyproject.toml does not name all of {REQUIREMENTS}")
    return found


def thin_out(folder: Path) -> None:
    """Take away what installing leaves, and services of AWS that are never called."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for metadata in folder.glob("*.dist-info"):
        for path in metadata.iterdir():
            if path.name not in KEPT_OF_METADATA:
                path.unlink() if path.is_file() else shutil.rmtree(path)
    called = services()
    for service in (folder / "botocore" / "data").iterdir():
        if service.is_dir() and service.name not in called:
            shutil.rmtree(service)
    shutil.rmtree(folder / "boto3" / "data")
    shutil.rmtree(folder / "boto3" / "examples", ignore_errors=True)


def ours(folder: Path) -> None:
    """Our own part, with the metadata by which it knows its version."""
    for source in modules():
        target = folder / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    metadata = folder / f"hyperpod_jlab-{version()}.dist-info"
    metadata.mkdir()
    words = f"Metadata-Version: 2.1\nName: hyperpod_jlab\nVersion: {version()}\n"
    (metadata / "METADATA").write_text(words, encoding="utf-8")
    shutil.copyfile(ROOT / "LICENSE", metadata / "LICENSE")


def modules() -> list[Path]:
    """Files of our modules that the handlers import, themselves among them."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    # The package itself offers all of it, by names that no handler asks for.
    for offered in graph.find_modules_directly_imported_by(PACKAGE):
        graph.remove_import(importer=PACKAGE, imported=offered)
    names, known = set(HANDLERS), set[str]()
    while names - known:
        new = names - known
        known |= new
        # Python imports the packages above a module first.
        above = {name.rsplit(".", depth)[0] for name in new for depth in range(name.count("."))}
        names |= above.union(*map(graph.find_upstream_modules, new))
    return sorted(map(_file, names | {PACKAGE}))


def _file(name: str) -> Path:
    path = ROOT / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def pack(folder: Path, target: Path) -> None:
    """Zip a folder: names in order, one time and one mode for all, so that the bytes depend on the content alone."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w") as made:
        for path in files(folder):
            name = path.relative_to(folder).as_posix()
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, path.read_bytes(), compresslevel=9)
    unfinished.replace(target)


def files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def sizes(target: Path) -> tuple[int, int]:
    """Bytes of the package, as it is and unpacked."""
    with zipfile.ZipFile(target) as made:
        return target.stat().st_size, sum(one.file_size for one in made.infolist())


if __name__ == "__main__":
    sys.exit(main())

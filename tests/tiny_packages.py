"""Packages of a few bytes, for real installers without a network."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

_BACKEND = """
import pathlib, time, zipfile
def build_wheel(folder, settings=None, metadata=None):
    pathlib.Path({begun!r}).touch()
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.02)
    with zipfile.ZipFile(folder + "/{file}", "w") as archive:
        for name, text in {content!r}.items():
            archive.writestr(name, text)
    return {file!r}
"""


def _content(name: str, version: str, extra: dict[str, str]) -> dict[str, str]:
    info = f"{name}-{version}.dist-info"
    content = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **extra,
    }
    record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    return {**content, f"{info}/RECORD": record}


def wheel(
    folder: Path, name: str, version: str = "1.0", tag: str = "py3-none-any", extra: dict[str, str] | None = None
) -> Path:
    """Put a wheel with one module, whose VERSION is its version, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in _content(name, version, extra or {}).items():
            archive.writestr(file, text)
    return path


def slow_source(folder: Path, name: str) -> tuple[Path, Path]:
    """Put a source package into a folder; its build creates the first of these files, and then waits for the second."""
    folder.mkdir(parents=True, exist_ok=True)
    begun, go = folder / f"{name}.begun", folder / f"{name}.go"
    backend = _BACKEND.format(
        begun=str(begun), go=str(go), file=f"{name}-1.0-py3-none-any.whl", content=_content(name, "1.0", {})
    )
    project = f'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "{name}"\nversion = "1.0"\n'
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for file, text in (("pyproject.toml", project), ("backend.py", backend), ("PKG-INFO", info)):
            member = tarfile.TarInfo(f"{name}-1.0/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return begun, go

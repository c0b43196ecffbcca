"""The IPython that goes with a notebook for nodes that have none: one archive of pure Python, the same bytes for each submit."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from hyperpod_jlab.capture.captured import CodeFile
from hyperpod_jlab.storage.mounts import own_cache_folder

_PATH = "code/lib/ipython.zip"
_FORMAT = "1"
_TIME = (2000, 1, 1, 0, 0, 0)
_UNNEEDED = {"colorama", "jedi", "parso", "psutil"}
"""For completion, Windows, and numbers of processes; IPython runs cells without them."""

_BINARIES = {".pyc", ".pyd", ".so"}


@cache
def ipython_file() -> CodeFile:
    """IPython and the packages that it needs, as installed here."""
    versions = _closure("ipython")
    listed = " ".join(f"{name}={version}" for name, version in sorted(versions.items()))
    digest = hashlib.sha256(f"{_FORMAT} {listed}".encode()).hexdigest()[:16]
    folder = own_cache_folder()
    kept = None if folder is None else folder / f"ipython-{digest}.zip"
    if kept is not None:
        with contextlib.suppress(OSError):
            return CodeFile(_PATH, kept.read_bytes())
    data = _zip(sorted(versions))
    if kept is not None:
        temporary = kept.with_name(f".{kept.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_bytes(data)
            temporary.replace(kept)
    return CodeFile(_PATH, data)


def _closure(root: str) -> dict[str, str]:
    """Names and versions of a package and of all that it requires here."""
    from packaging.requirements import Requirement

    versions: dict[str, str] = {}
    pending = [root]
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if name in versions or name in _UNNEEDED:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # required by another system or Python
        versions[name] = package.version
        for text in package.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                pending.append(requirement.name)
    return versions


def _zip(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            for file in sorted(distribution(name).files or (), key=str):
                if file.suffix in _BINARIES or {"tests", ".."} & set(file.parts):
                    continue
                info = zipfile.ZipInfo(str(file), _TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, Path(str(file.locate())).read_bytes())
    return buffer.getvalue()

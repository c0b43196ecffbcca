"""The IPython that goes with a notebook for nodes that have none: one archive of pure Python, the same bytes for each submit."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import zipfile
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from hyperpod_jlab.capture.captured import CodeFile
from hyperpod_jlab.storage.mounts import own_cache_folder

_PATH = "code/lib/ipython.zip"
_FORMAT = "1"
_TIME = (2000, 1, 1, 0, 0, 0)
_UNNEEDED = {"colorama", "jedi", "parso", "psutil"}
"""For completion, Windows, and numbers of processes; IPython runs cells without them."""

_OLDEST = {"extra": "", "python_version": "3.10"}
"""Nodes may have an older Python."""
_BINARIES = {".pyc", ".pyd", ".so"}

_EXCEPTION_GROUP = "class BaseExceptionGroup(BaseException): ...\n"
"""IPython 8 imports it in Python 3.10, where only the package has it, to recognize such errors."""


@cache
def ipython_file() -> CodeFile:
    """IPython and the packages that it needs, as installed here."""
    cache_folder = own_cache_folder()
    if cache_folder is None:
        return CodeFile(_PATH, _zip())
    # An installation into a folder changes its time.
    spec = find_spec("IPython")
    assert spec is not None
    assert spec.origin is not None
    packages = Path(spec.origin).parents[1]
    prefix = hashlib.sha256(f"{_FORMAT} {packages}".encode()).hexdigest()[:16]
    kept = cache_folder / f"ipython-{prefix}-{packages.stat().st_mtime_ns}.zip"
    with contextlib.suppress(OSError):
        return CodeFile(_PATH, kept.read_bytes())
    data = _zip()
    with contextlib.suppress(OSError):
        for older in cache_folder.glob(f"ipython-{prefix}-*.zip"):
            older.unlink()
        temporary = kept.with_name(f".{kept.name}.{os.getpid()}")
        temporary.write_bytes(data)
        temporary.replace(kept)
    return CodeFile(_PATH, data)


def _packages() -> dict[str, Distribution]:
    """IPython and all that it requires here, by name."""
    from packaging.requirements import Requirement

    packages: dict[str, Distribution] = {}
    pending = ["ipython"]
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if name in packages or name in _UNNEEDED:
            continue
        try:
            packages[name] = distribution(name)
        except PackageNotFoundError:
            continue  # required by another system or Python
        for text in packages[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate(_OLDEST):
                pending.append(requirement.name)
    return packages


def _zip() -> bytes:
    buffer = io.BytesIO()
    packages = _packages()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if "exceptiongroup" not in packages:
            archive.writestr(zipfile.ZipInfo("exceptiongroup.py", _TIME), _EXCEPTION_GROUP)
        for _, package in sorted(packages.items()):
            for file in sorted(package.files or (), key=str):
                if file.suffix in _BINARIES or {"tests", ".."} & set(file.parts):
                    continue
                info = zipfile.ZipInfo(str(file), _TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, Path(str(file.locate())).read_bytes())
    return buffer.getvalue()

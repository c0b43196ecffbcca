"""What a space of Studio that several people act as may take for its own: known without AWS as far as it goes, since every command begins with it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from pathlib import Path, PurePosixPath

from hyperpod_jlab.aws.lustre import LustreMount
from hyperpod_jlab.aws.profiles import describe_profile
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.model.errors import HyperpodError, StorageError
from hyperpod_jlab.storage.atomic import to_json
from hyperpod_jlab.storage.descent import replace

KIND = "SAGEMAKER_SPACE_TYPE_LOWERCASE"
"""Variable in which Studio's images say whether the space is ``private`` or ``shared``."""

_PATIENCE = 10.0
"""Seconds that AWS has for one question before a command goes on without it."""

_KEPT, _KEPT_UNKNOWN = 86_400.0, 300.0
"""Seconds that an answer, and none, is kept: profiles come and go seldom."""


def shared_space() -> str | None:
    """The name of the shared space that this process acts as; None elsewhere, and where Studio does not say so."""
    if os.environ.get(KIND) != "shared":
        return None
    studio = find_studio()
    return None if studio is None else studio.space or "of Studio"


def whose_private(mount: LustreMount) -> str | None:
    """Why a mount is none for everybody in this shared space; None when it is.

    A partition is a user profile's when its folder has the name of a profile of the domain. SageMaker is asked once a day; while it does not say, the
    partition is taken for a private one.
    """
    studio, name = find_studio(), PurePosixPath(mount.folder).name
    if studio is None or not name:
        return None
    known = True if name == studio.user_profile else _is_profile(studio, name)
    if known is None:
        return f"whether {mount.folder} is a user profile's is not known here"
    return f"it is the private partition of {name}" if known else None


def _is_profile(studio: Studio, name: str) -> bool | None:
    """Whether the domain has a user profile of a name; None when nobody says."""
    file, key = _cache(), f"{studio.domain_id}/{name}"
    kept = _read(file)
    found = kept.get(key)
    if found is not None and time.time() - found[1] < (
        _KEPT if found[0] is not None else _KEPT_UNKNOWN
    ):
        return found[0]
    answer = _asked(studio, name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace(file, to_json({**kept, key: [answer, time.time()]}))
    except (OSError, StorageError):
        pass  # it is asked again next time
    return answer


def _asked(studio: Studio, name: str) -> bool | None:
    """SageMaker's answer. In a thread of its own: whoever makes the services may have an event loop already."""
    answers: list[bool | None] = []

    async def ask() -> bool | None:
        if studio.domain_id is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE):
                await describe_profile(Aws(), studio.domain_id, name)
        except HyperpodError as error:
            return False if error.code == "not_found" else None
        except TimeoutError:
            return None
        return True

    thread = threading.Thread(target=lambda: answers.append(asyncio.run(ask())))
    thread.start()
    thread.join()
    return answers[0] if answers else None


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "hyperpod-jlab" / "profiles.json"


def _read(file: Path) -> dict[str, tuple[bool | None, float]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(key): (answer, float(when)) for key, (answer, when) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}

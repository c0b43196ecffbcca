"""The file in which an admin says what lifecycle configurations are to do (TOML), and the scripts that come of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from hyperpod_jlab.admin.lifecycle.attachment import Start
from hyperpod_jlab.admin.lifecycle.scripts import APPS, App, ScriptSettings, name_of, render
from hyperpod_jlab.admin.lifecycle.steps import Script
from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.model.validation import invalid

_STARTS: tuple[Start, ...] = get_args(Start)
_SETTINGS = {one.name: one for one in fields(ScriptSettings)}
_NULLABLE = frozenset(name for name, one in _SETTINGS.items() if "None" in str(one.type))
_MOST = 64 * 1024


@dataclass(frozen=True)
class LifecycleFile:
    """What the file says.

    Attributes:
        apps: The applications that are to have a script; none: nothing of ours is to be attached.
        start: How it comes to be run (`attachment`).
        settings: What the scripts do, by the names of `ScriptSettings`; what is missing is found out.
    """

    apps: tuple[App, ...] = APPS
    start: Start = "built-in"
    settings: Mapping[str, Any] = field(default_factory=dict)


NOTHING = LifecycleFile(apps=())
"""For taking all of ours away."""


def read_lifecycle_file(path: Path) -> LifecycleFile:
    """Read the file.

    Raises:
        InvalidInputError: It cannot be read, or says something that cannot be meant; `detail.field` is the name.
    """
    try:
        with path.open("rb") as file:
            told = tomllib.loads(file.read(_MOST).decode())
    except OSError as error:
        raise _wrong(path, f"it cannot be read: {error.strerror}", "path") from error
    except UnicodeDecodeError as error:
        raise _wrong(path, "it is no text in UTF-8", "path") from error
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, f"it is no TOML: {error}", "path") from error
    known = ["apps", "start", *_SETTINGS]
    for name in told:
        if name not in known:
            raise InvalidInputError(
                f"{path}: there is no setting {name}",
                hint=nearest_hint(name, known),
                detail={"field": name},
            )
    apps, start = told.pop("apps", list(APPS)), told.pop("start", "built-in")
    if not isinstance(apps, list) or not apps or any(app not in APPS for app in apps):
        raise _wrong(path, f"apps is a list out of {', '.join(APPS)}", "apps")
    if start not in _STARTS:
        raise _wrong(path, f"start is {' or '.join(_STARTS)}", "start")
    chosen = tuple(app for app in APPS if app in apps)
    return LifecycleFile(chosen, cast("Start", start), told)


def settings_of(file: LifecycleFile, found: Mapping[str, Any]) -> ScriptSettings:
    """The settings of the scripts.

    Args:
        file: What the admin says.
        found: What was found out of the cluster; what the file says counts more.

    Raises:
        InvalidInputError: Something is missing, or has another type than it needs.
    """
    known = {name: value for name, value in found.items() if value is not None}
    given: dict[str, Any] = {**known, **file.settings}
    missing = [
        name
        for name, one in _SETTINGS.items()
        if one.default is MISSING and name not in given and name not in _NULLABLE
    ]
    if missing:
        raise InvalidInputError(
            f"the lifecycle file does not say {', '.join(missing)}",
            hint="write it into the file; --cluster tells what AWS knows of a cluster",
            detail={"field": missing[0]},
        )
    given = {**dict.fromkeys(name for name in _NULLABLE if name not in given), **given}
    try:
        return _ADAPTER.validate_python(given)
    except ValidationError as error:
        raise invalid(ScriptSettings, error, code=InvalidInputError.default_code) from error


def scripts_of(file: LifecycleFile, found: Mapping[str, Any]) -> dict[App, Script]:
    """The script of each application.

    Raises:
        InvalidInputError: See `settings_of` and `scripts.render`.
    """
    if not file.apps:
        return {}
    settings = settings_of(file, found)
    texts = {app: render(app, settings) for app in file.apps}
    return {app: Script(name_of(app, text), text) for app, text in texts.items()}


def _wrong(path: Path, words: str, name: str) -> InvalidInputError:
    return InvalidInputError(f"{path}: {words}", detail={"field": name})


_ADAPTER: TypeAdapter[ScriptSettings] = TypeAdapter(ScriptSettings)

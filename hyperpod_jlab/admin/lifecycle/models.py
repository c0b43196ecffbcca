"""Lifecycle configurations: the desired state, the actual state, and the steps between them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pydantic import TypeAdapter, ValidationError

from hyperpod_jlab.admin.fsx.models import MountTarget, PlanStep
from hyperpod_jlab.admin.lifecycle.scripts import APPS, App, ScriptSettings, config_name, render
from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.core.validation import invalid

# --------------------------------------------------------------------------------------------------
# Where the settings of an application of Studio name lifecycle configurations, and the settings with ours put in or taken out.
#
# There are three places (SageMaker's documentation, "Lifecycle configurations within Amazon SageMaker Studio"). A built-in one is the admin's: it always
# runs, before any other, and is looked up in the domain's settings at each start, so a new one needs nothing of the users. A default one is chosen
# beforehand when a space is made, and the space keeps it until its user chooses another. The list says what users may choose.

AppType = Literal["JupyterLab", "CodeEditor"]
"""An application, by SageMaker's name."""

APP_TYPES: Mapping[App, AppType] = {"jupyterlab": "JupyterLab", "code-editor": "CodeEditor"}
"""The same, by the name in our options."""

Start = Literal["built-in", "default"]
"""How a script is started: see above."""

_NOTHING = "None"
"""The value that removes a single one (the members' pattern in SageMaker's service model); omitting it might leave it unchanged."""


@dataclass(frozen=True)
class Attachment:
    """The ARNs that settings name.

    Attributes:
        built_in: The one that always runs.
        default: The preselected one.
        listed: The ones that users may choose.
    """

    built_in: str | None = None
    default: str | None = None
    listed: tuple[str, ...] = ()

    @property
    def all(self) -> frozenset[str]:
        """All that are named anywhere."""
        return frozenset(filter(None, (self.built_in, self.default, *self.listed)))

    def at(self, start: Start) -> str | None:
        """The one that is started in this way."""
        return self.built_in if start == "built-in" else self.default


def parse_attachment(settings: Mapping[str, Any]) -> Attachment:
    """The ARNs in the settings of an application, as in the API."""
    default = (settings.get("DefaultResourceSpec") or {}).get("LifecycleConfigArn")
    return Attachment(
        _single(settings.get("BuiltInLifecycleConfigArn")),
        _single(default),
        tuple(map(str, settings.get("LifecycleConfigArns") or ())),
    )


def with_own_script(current: Attachment, arn: str | None, start: Start, own_arns: Collection[str]) -> Attachment:
    """The desired ARNs.

    Args:
        current: The current ARNs.
        arn: Ours; None: none of ours.
        start: How it is started.
        own_arns: The ARNs of all that we created, including earlier ones: they are removed.
    """
    cleared = Attachment(
        None if current.built_in in own_arns else current.built_in,
        None if current.default in own_arns else current.default,
        tuple(arns for arns in current.listed if arns not in own_arns or (arns == arn and start == "default")),
    )
    if arn is None:
        return cleared
    if start == "built-in":
        return replace(cleared, built_in=arn)
    # SageMaker requires a default to be in the list, too.
    new_listed = cleared.listed if arn in cleared.listed else (*cleared.listed, arn)
    return replace(cleared, default=arn, listed=new_listed)


def with_attachment(settings: Mapping[str, Any], desired: Attachment) -> dict[str, Any]:
    """The settings of an application with that attachment; the rest is kept, since SageMaker replaces all settings."""
    current = parse_attachment(settings)
    new_settings = dict(settings)
    if desired.built_in != current.built_in:
        new_settings["BuiltInLifecycleConfigArn"] = desired.built_in or _NOTHING
    if desired.default != current.default:
        resource = settings.get("DefaultResourceSpec") or {}
        new_settings["DefaultResourceSpec"] = {**resource, "LifecycleConfigArn": desired.default or _NOTHING}
    if desired.listed != current.listed:
        new_settings["LifecycleConfigArns"] = list(desired.listed)
    return new_settings


def _single(arn: object) -> str | None:
    return None if arn is None or arn == _NOTHING else str(arn)


@dataclass(frozen=True)
class Script:
    """A script for SageMaker: the lifecycle configuration's name, and the text."""

    name: str
    text: str


@dataclass(frozen=True)
class LifecycleWanted:
    """The desired state.

    Attributes:
        scripts: The script of each application; empty: nothing of ours (`destroy`).
        start: How it is started.
        profiles: Only in the settings of these profiles, without the domain's own; None: in the domain's, for all.
        take_over: Also replace those that others have set.
    """

    scripts: Mapping[App, Script] = field(default_factory=dict)
    start: Start = "built-in"
    profiles: frozenset[str] | None = None
    take_over: bool = False


@dataclass(frozen=True)
class LifecycleConfig:
    """A lifecycle configuration of the account.

    Attributes:
        name: Its name.
        arn: Its ARN.
        app_type: Its application, by SageMaker's name.
        is_ours: Whether its tag shows that we created it.
        domains: The domains that use it, by its tags.
        text: The script; None: not read.
    """

    name: str
    arn: str
    app_type: str
    is_ours: bool
    domains: frozenset[str] = frozenset()
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class LifecycleStep(PlanStep):
    """A step on lifecycle configurations.

    Attributes:
        stage: Steps of a stage may run concurrently; lower stages come first, also when removing everything.
    """

    stage: int


@dataclass(frozen=True, kw_only=True)
class ConfigStep(LifecycleStep):
    """Create a lifecycle configuration, or tag it as used by this domain.

    Attributes:
        script: Its name and script.
        app_type: Its application.
        arn: Its present or future ARN.
        is_there: Whether it exists, and only the tag is missing.
    """

    script: Script
    app_type: AppType
    arn: str
    is_there: bool


@dataclass(frozen=True, kw_only=True)
class AttachStep(LifecycleStep):
    """Attach one to the settings of an application, or detach ours.

    Attributes:
        holder: The resource with the settings.
        app_type: The application.
        arn: The one to attach; None: none of ours.
        start: How it is started.
        ours: The ARNs of all that we created.
        take_over: Whether to replace others' too.
    """

    holder: MountTarget
    app_type: AppType
    arn: str | None
    start: Start
    ours: frozenset[str]
    take_over: bool


@dataclass(frozen=True, kw_only=True)
class RemovalStep(LifecycleStep):
    """Delete a lifecycle configuration that we created, or only its tag for this domain.

    Attributes:
        config: The lifecycle configuration.
        fate: What happens to it.
    """

    config: LifecycleConfig
    fate: Literal["deleted", "kept for others"]


# --------------------------------------------------------------------------------------------------
# The file in which an admin says what lifecycle configurations are to do (TOML), and the scripts that come of it.

_STARTS: tuple[Start, ...] = get_args(Start)
_SETTINGS = {one.name: one for one in fields(ScriptSettings)}
_NULLABLE = frozenset(name for name, one in _SETTINGS.items() if "None" in str(one.type))
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class LifecycleFile:
    """The contents of the file.

    Attributes:
        apps: The applications with a script; empty: attach nothing of ours.
        start: How it is started (`attachment`).
        settings: The scripts' settings, by the names of `ScriptSettings`; missing ones are discovered.
    """

    apps: tuple[App, ...] = APPS
    start: Start = "built-in"
    settings: Mapping[str, Any] = field(default_factory=dict)


NOTHING = LifecycleFile(apps=())
"""To remove all of ours."""


def read_lifecycle_file(path: Path) -> LifecycleFile:
    """Read the file.

    Raises:
        InvalidInputError: It cannot be read, or is invalid; `detail.field` is the name.
    """
    try:
        with path.open("rb") as file:
            data = tomllib.loads(file.read(_MAX_BYTES).decode())
    except OSError as error:
        raise _invalid_file(path, f"it cannot be read: {error.strerror}", "path") from error
    except UnicodeDecodeError as error:
        raise _invalid_file(path, "it is not UTF-8 text", "path") from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid_file(path, f"it is not valid TOML: {error}", "path") from error
    known_fields = ["apps", "start", *_SETTINGS]
    for name in data:
        if name not in known_fields:
            raise InvalidInputError(
                f"{path}: unknown setting {name}", hint=nearest_hint(name, known_fields), detail={"field": name}
            )
    apps, start = data.pop("apps", list(APPS)), data.pop("start", "built-in")
    if not isinstance(apps, list) or not apps or any(app not in APPS for app in apps):
        raise _invalid_file(path, f"apps must be a list of {', '.join(APPS)}", "apps")
    if start not in _STARTS:
        raise _invalid_file(path, f"start must be {' or '.join(_STARTS)}", "start")
    selected = tuple(app for app in APPS if app in apps)
    return LifecycleFile(selected, cast("Start", start), data)


def script_settings(file: LifecycleFile, cluster_facts: Mapping[str, Any]) -> ScriptSettings:
    """The settings of the scripts.

    Args:
        file: The admin's file.
        cluster_facts: Discovered facts about the cluster; the file takes precedence.

    Raises:
        InvalidInputError: A setting is missing, or has the wrong type.
    """
    known_facts = {name: value for name, value in cluster_facts.items() if value is not None}
    values: dict[str, Any] = {**known_facts, **file.settings}
    missing = [
        name
        for name, field in _SETTINGS.items()
        if field.default is MISSING and name not in values and name not in _NULLABLE
    ]
    if missing:
        raise InvalidInputError(
            f"the lifecycle file has no {', '.join(missing)}",
            hint="set it in the file, or use --cluster to read settings of the cluster from AWS",
            detail={"field": missing[0]},
        )
    values = {**dict.fromkeys(name for name in _NULLABLE if name not in values), **values}
    try:
        return _ADAPTER.validate_python(values)
    except ValidationError as error:
        raise invalid(ScriptSettings, error, code=InvalidInputError.default_code) from error


def render_scripts(file: LifecycleFile, cluster_facts: Mapping[str, Any]) -> dict[App, Script]:
    """The script of each application.

    Raises:
        InvalidInputError: See `script_settings` and `scripts.render`.
    """
    if not file.apps:
        return {}
    settings = script_settings(file, cluster_facts)
    texts = {app: render(app, settings) for app in file.apps}
    return {app: Script(config_name(app, text), text) for app, text in texts.items()}


def _invalid_file(path: Path, message: str, name: str) -> InvalidInputError:
    return InvalidInputError(f"{path}: {message}", detail={"field": name})


_ADAPTER: TypeAdapter[ScriptSettings] = TypeAdapter(ScriptSettings)

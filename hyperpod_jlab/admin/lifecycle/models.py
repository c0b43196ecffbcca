"""What is wanted of lifecycle configurations, what is there of them, and the steps from the one to the other."""

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
"""An application, as SageMaker names it."""

APP_TYPES: Mapping[App, AppType] = {"jupyterlab": "JupyterLab", "code-editor": "CodeEditor"}
"""The same, by its name with admins."""

Start = Literal["built-in", "default"]
"""How a script comes to be run: see above."""

_NOTHING = "None"
"""What takes a single one out (the members' pattern in SageMaker's service model); leaving it out might leave it there."""


@dataclass(frozen=True)
class Attachment:
    """What settings name, as ARNs.

    Attributes:
        built_in: The one that the admin lets run always.
        default: The one that is chosen beforehand.
        listed: Those that users may choose.
    """

    built_in: str | None = None
    default: str | None = None
    listed: tuple[str, ...] = ()

    @property
    def all(self) -> frozenset[str]:
        """Each that is named anywhere."""
        return frozenset(filter(None, (self.built_in, self.default, *self.listed)))

    def at(self, start: Start) -> str | None:
        """The one that is run in this way."""
        return self.built_in if start == "built-in" else self.default


def parse_attachment(settings: Mapping[str, Any]) -> Attachment:
    """What the settings of an application, as the API has them, name."""
    default = (settings.get("DefaultResourceSpec") or {}).get("LifecycleConfigArn")
    return Attachment(
        _single(settings.get("BuiltInLifecycleConfigArn")),
        _single(default),
        tuple(map(str, settings.get("LifecycleConfigArns") or ())),
    )


def with_own_script(
    current: Attachment, arn: str | None, start: Start, own_arns: Collection[str]
) -> Attachment:
    """What is to be named.

    Args:
        current: What is named.
        arn: Ours; None: none of ours.
        start: How it is to be run.
        own_arns: The ARNs of all that were made by us, also of former times: they make way.
    """
    cleared = Attachment(
        None if current.built_in in own_arns else current.built_in,
        None if current.default in own_arns else current.default,
        tuple(
            arns
            for arns in current.listed
            if arns not in own_arns or (arns == arn and start == "default")
        ),
    )
    if arn is None:
        return cleared
    if start == "built-in":
        return replace(cleared, built_in=arn)
    # SageMaker wants a default to stand in the list, too.
    new_listed = cleared.listed if arn in cleared.listed else (*cleared.listed, arn)
    return replace(cleared, default=arn, listed=new_listed)


def with_attachment(settings: Mapping[str, Any], desired: Attachment) -> dict[str, Any]:
    """The settings of an application with that attachment; all else stays, for SageMaker replaces them as a whole."""
    current = parse_attachment(settings)
    new_settings = dict(settings)
    if desired.built_in != current.built_in:
        new_settings["BuiltInLifecycleConfigArn"] = desired.built_in or _NOTHING
    if desired.default != current.default:
        resource = settings.get("DefaultResourceSpec") or {}
        new_settings["DefaultResourceSpec"] = {
            **resource,
            "LifecycleConfigArn": desired.default or _NOTHING,
        }
    if desired.listed != current.listed:
        new_settings["LifecycleConfigArns"] = list(desired.listed)
    return new_settings


def _single(arn: object) -> str | None:
    return None if arn is None or arn == _NOTHING else str(arn)


@dataclass(frozen=True)
class Script:
    """A script as SageMaker gets it: the lifecycle configuration's name, and the text."""

    name: str
    text: str


@dataclass(frozen=True)
class LifecycleWanted:
    """What is to be there.

    Attributes:
        scripts: The script of each application that is to have one; none: nothing of ours (`destroy`).
        start: How it is to be run.
        profiles: Only in the settings of these profiles, and nothing of the domain's own; None: in the domain's, for all.
        take_over: Also put them in the place of what somebody else has set.
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
        app_type: The application that it is for, as SageMaker calls it.
        is_ours: Whether its tag says that it was made by us.
        domains: The domains for which it was made, by its tags.
        text: The script; None: nobody has asked.
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
        stage: Steps of a stage may be done at the same time; lower ones come first, also when all is taken away.
    """

    stage: int


@dataclass(frozen=True, kw_only=True)
class ConfigStep(LifecycleStep):
    """Make a lifecycle configuration, or note that this domain uses it too.

    Attributes:
        script: Its name and script.
        app_type: Its application.
        arn: The ARN that it has or will have.
        is_there: Whether it is there, and only the note is missing.
    """

    script: Script
    app_type: AppType
    arn: str
    is_there: bool


@dataclass(frozen=True, kw_only=True)
class AttachStep(LifecycleStep):
    """Put one into the settings of an application, or take ours out.

    Attributes:
        holder: Whose settings.
        app_type: The application.
        arn: The one that is to be run; None: none of ours.
        start: How.
        ours: The ARNs of all that were made by us.
        take_over: Also in the place of somebody else's.
    """

    holder: MountTarget
    app_type: AppType
    arn: str | None
    start: Start
    ours: frozenset[str]
    take_over: bool


@dataclass(frozen=True, kw_only=True)
class RemovalStep(LifecycleStep):
    """Delete a lifecycle configuration that was made by us, or only the note that this domain uses it.

    Attributes:
        config: Which.
        fate: What becomes of it.
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
                f"{path}: unknown setting {name}",
                hint=nearest_hint(name, known_fields),
                detail={"field": name},
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
        file: What the admin says.
        cluster_facts: What was found out of the cluster; what the file says counts more.

    Raises:
        InvalidInputError: Something is missing, or has another type than it needs.
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

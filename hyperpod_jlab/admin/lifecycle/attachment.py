"""Where the settings of an application of Studio name lifecycle configurations, and the settings with ours put in or taken out.

There are three places (SageMaker's documentation, "Lifecycle configurations within Amazon SageMaker Studio"). A built-in one is the admin's: it always
runs, before any other, and is looked up in the domain's settings at each start, so a new one needs nothing of the users. A default one is chosen
beforehand when a space is made, and the space keeps it until its user chooses another. The list says what users may choose.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hyperpod_jlab.admin.lifecycle.scripts import App

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


def attachment_of(settings: Mapping[str, Any]) -> Attachment:
    """What the settings of an application, as the API has them, name."""
    default = (settings.get("DefaultResourceSpec") or {}).get("LifecycleConfigArn")
    return Attachment(
        _single(settings.get("BuiltInLifecycleConfigArn")),
        _single(default),
        tuple(map(str, settings.get("LifecycleConfigArns") or ())),
    )


def with_ours(
    found: Attachment, arn: str | None, start: Start, ours: Collection[str]
) -> Attachment:
    """What is to be named.

    Args:
        found: What is named.
        arn: Ours; None: none of ours.
        start: How it is to be run.
        ours: The ARNs of all that were made by us, also of former times: they make way.
    """
    cleared = Attachment(
        None if found.built_in in ours else found.built_in,
        None if found.default in ours else found.default,
        tuple(
            one for one in found.listed if one not in ours or (one == arn and start == "default")
        ),
    )
    if arn is None:
        return cleared
    if start == "built-in":
        return replace(cleared, built_in=arn)
    # SageMaker wants a default to stand in the list, too.
    listed = cleared.listed if arn in cleared.listed else (*cleared.listed, arn)
    return replace(cleared, default=arn, listed=listed)


def with_attachment(settings: Mapping[str, Any], wanted: Attachment) -> dict[str, Any]:
    """The settings of an application with that attachment; all else stays, for SageMaker replaces them as a whole."""
    found = attachment_of(settings)
    made = dict(settings)
    if wanted.built_in != found.built_in:
        made["BuiltInLifecycleConfigArn"] = wanted.built_in or _NOTHING
    if wanted.default != found.default:
        resource = settings.get("DefaultResourceSpec") or {}
        made["DefaultResourceSpec"] = {
            **resource,
            "LifecycleConfigArn": wanted.default or _NOTHING,
        }
    if wanted.listed != found.listed:
        made["LifecycleConfigArns"] = list(wanted.listed)
    return made


def _single(arn: object) -> str | None:
    return None if arn is None or arn == _NOTHING else str(arn)

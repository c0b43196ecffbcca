"""What is wanted of lifecycle configurations, what is there of them, and the steps from the one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hyperpod_jlab.admin.lifecycle.attachment import AppType, Start
from hyperpod_jlab.admin.lifecycle.scripts import App
from hyperpod_jlab.admin.plan import Step
from hyperpod_jlab.admin.there import Holder


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
class LifecycleStep(Step):
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

    holder: Holder
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

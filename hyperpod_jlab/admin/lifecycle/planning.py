"""From the lifecycle configurations that are there and those that are wanted to the steps: pure.

A script that has changed is a new lifecycle configuration, for SageMaker cannot change one: the new one is made, named in the settings in the place of the old
one, and the old one deleted once nothing names it. Ours are known by their tag; those of others are left alone, in settings too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    DesiredState,
    MountTarget,
    PlanStep,
    StepState,
    mode_of,
)
from hyperpod_jlab.admin.fsx.planning import by_status
from hyperpod_jlab.admin.lifecycle.models import (
    APP_TYPES,
    Attachment,
    AttachStep,
    ConfigStep,
    LifecycleConfig,
    LifecycleStep,
    LifecycleWanted,
    RemovalStep,
    Script,
    attachment_of,
    with_ours,
)
from hyperpod_jlab.admin.lifecycle.scripts import App
from hyperpod_jlab.core.finding import Finding

NAMES: Mapping[App, str] = {"jupyterlab": "JupyterLab", "code-editor": "Code Editor"}
"""Applications in words."""

_NONE = "none of ours"
_MAKE, _REMOVE = 0, 100


@dataclass(frozen=True)
class _Slot:
    """The settings of an application that something of a domain has."""

    holder: MountTarget
    app: App

    @property
    def found(self) -> Attachment:
        return attachment_of(self.holder.app_settings.get(APP_TYPES[self.app]) or {})


def lifecycle_steps(
    there: ActualState, configs: Sequence[LifecycleConfig], wanted: LifecycleWanted
) -> tuple[PlanStep, ...]:
    """The steps, also those that are done.

    Args:
        there: The domain with its profiles and spaces.
        configs: Lifecycle configurations of the account that are ours, or are called like one that is wanted; those with their text.
        wanted: What is to be there.
    """
    known = {config.name: config for config in configs}
    made = {
        app: _config_step(there, app, script, known.get(script.name))
        for app, script in wanted.scripts.items()
    }
    arns = {app: step.arn for app, step in made.items()}
    ours = frozenset(config.arn for config in configs if config.is_ours) | set(arns.values())
    blocked = {app for app, step in made.items() if step.state == "blocked"}
    attach = [
        _attach_step(there, slot, arns.get(slot.app), ours, wanted, closed=slot.app in blocked)
        for slot in _slots(there, wanted, ours)
    ]
    removals = _removals(there, configs, attach, set(arns.values()))
    return (*made.values(), *attach, *removals)


def lifecycle_findings(
    there: ActualState, configs: Sequence[LifecycleConfig], wanted: LifecycleWanted
) -> Iterator[Finding]:
    """Profiles in which the domain's script does not run, since they name one of their own.

    Args:
        there: The domain with its profiles and spaces.
        configs: As for `lifecycle_steps`.
        wanted: What is to be there.
    """
    if wanted.profiles is not None:
        return
    ours = {config.arn for config in configs if config.is_ours}
    for holder in there.holders:
        for app in wanted.scripts if holder.kind == "profile" else ():
            own = _Slot(holder, app).found.at(wanted.start)
            if own is not None and own not in ours:
                yield Finding(
                    level="warning",
                    code="own_lifecycle_config",
                    message=f"{holder.words} has {_name(own)} for {NAMES[app]}, which overrides the domain's",
                    hint=f"--profile {holder.name} --take-over replaces it with the domain's",
                )


def sight_findings(
    there: ActualState, wanted: DesiredState, settings: Mapping[str, Any]
) -> Iterator[Finding]:
    """Files for all that are meant from the storage partition, where a partition is of one profile alone.

    Args:
        there: The domain with its profiles.
        wanted: What is to be there.
        settings: What the file says, by the names of `ScriptSettings`.
    """
    modes = {
        mode_of(one, wanted)
        for one in there.holders
        if one.kind == "profile" and wanted.concerns(one.name)
    }
    if "per-user" not in {*modes, wanted.mode}:
        return
    for name in ("package", "slurm_client", "munge_key"):
        value = settings.get(name) or "/"
        if not value.startswith(("/", "s3://", "secret:")) and "==" not in value:
            yield Finding(
                level="warning",
                code="out_of_sight",
                message=f"{name}: in mode per-user, '{value[:60]}' is read from each profile's own folder, so it must be in each of them",
                hint="use a file that all profiles can read: s3://BUCKET/KEY",
                field=name,
            )


# ---------------------------------------------------------------------------------------- making them


def _config_step(
    there: ActualState, app: App, script: Script, found: LifecycleConfig | None
) -> ConfigStep:
    state: StepState = "to do"
    before, reason = "missing", None
    arn = found.arn if found else _arn(there, script.name)
    if found is not None:
        before = "exists"
        if not found.is_ours:
            state, reason = (
                "blocked",
                "someone else created it: delete it, or choose another name",
            )
        elif found.text != script.text or found.app_type != APP_TYPES[app]:
            state, reason = "blocked", "someone changed its script: delete it"
        elif there.domain in found.domains:
            state = "done"
        else:
            before = "there, for other domains"
    return ConfigStep(
        f"lifecycle configuration {script.name}",
        state,
        before,
        "exists",
        reason,
        stage=_MAKE,
        script=script,
        app_type=APP_TYPES[app],
        arn=arn,
        is_there=found is not None,
    )


def _arn(there: ActualState, name: str) -> str:
    """The ARN that it will have: the domain's with another end (SageMaker's service authorization reference)."""
    domain = next(holder.arn for holder in there.holders if holder.kind == "domain")
    return f"{domain.partition(':domain/')[0]}:studio-lifecycle-config/{name}"


# ---------------------------------------------------------------------------------------- settings


def _slots(there: ActualState, wanted: LifecycleWanted, ours: frozenset[str]) -> Iterator[_Slot]:
    """Settings that are concerned: the domain's own, or those of the profiles that were named; and wherever ours stands already."""
    apps: tuple[App, ...] = ("jupyterlab", "code-editor")
    for holder in there.holders:
        for app in apps:
            slot = _Slot(holder, app)
            if holder.kind == "space" or (holder.kind == "space defaults" and app != "jupyterlab"):
                continue  # spaces are their users' to set, and space defaults know JupyterLab only
            has_ours = bool(slot.found.all & ours)
            if _is_meant(holder, wanted):
                concerned = app in wanted.scripts or has_ours
            else:
                # The domain's own serve all profiles: what one has of ours by itself makes way.
                concerned = wanted.profiles is None and has_ours
            if concerned:
                yield slot


def _is_meant(holder: MountTarget, wanted: LifecycleWanted) -> bool:
    if wanted.profiles is None:
        return holder.kind != "profile"
    return holder.kind == "profile" and holder.name in wanted.profiles


def _attach_step(
    there: ActualState,
    slot: _Slot,
    arn: str | None,
    ours: frozenset[str],
    wanted: LifecycleWanted,
    *,
    closed: bool,
) -> AttachStep:
    holder, found = slot.holder, slot.found
    if holder.kind == "profile" and wanted.profiles is None:
        arn = None
    after = with_ours(found, arn, wanted.start, ours)
    state: StepState = "done" if after == found else "to do"
    reason = None
    foreign = found.at(wanted.start)
    if state != "done":
        state, reason = by_status("to do", None, holder)
        if closed and arn is not None:
            state, reason = "blocked", "its lifecycle configuration cannot be created"
        elif arn is not None and foreign is not None and foreign not in ours:
            if wanted.take_over:
                reason = f"{_name(foreign)} is replaced, and destroy does not restore it"
            else:
                state = "blocked"
                reason = f"someone else set {_name(foreign)} there; use --take-over to change it"
    app_type = APP_TYPES[slot.app]
    return AttachStep(
        f"{holder.words}, {NAMES[slot.app]}",
        state,
        _words(found, ours),
        _words(after, ours),
        reason,
        _running(there, holder, app_type) if state != "done" else (),
        stage=_stage(slot),
        holder=holder,
        app_type=app_type,
        arn=arn,
        start=wanted.start,
        ours=ours,
        take_over=wanted.take_over,
    )


def _stage(slot: _Slot) -> int:
    """SageMaker updates one thing of a domain, or of a profile, at a time."""
    kinds = ("domain", "space defaults", "profile")
    return 1 + 2 * kinds.index(slot.holder.kind) + (slot.app == "code-editor")


def _words(attachment: Attachment, ours: frozenset[str]) -> str:
    words = [
        f"{_name(arn)} {how}"
        for arn, how in ((attachment.built_in, "built in"), (attachment.default, "as default"))
        if arn is not None
    ]
    alone = [one for one in attachment.listed if one in ours and one != attachment.default]
    words += [f"{_name(one)} to choose" for one in alone]
    return ", ".join(words) or _NONE


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]


def _running(there: ActualState, holder: MountTarget, app_type: str) -> tuple[str, ...]:
    """Applications that were started before: of the profile's spaces, or of all."""
    return tuple(
        f"{app_type} in {space.words}"
        for space in there.holders
        if space.kind == "space"
        and app_type in space.apps
        and (holder.kind != "profile" or space.owner == holder.name)
    )


# ---------------------------------------------------------------------------------------- those of former times


def _removals(
    there: ActualState,
    configs: Sequence[LifecycleConfig],
    attach: Sequence[AttachStep],
    wanted: set[str],
) -> Iterator[LifecycleStep]:
    """What this domain no longer needs of what was made for it."""
    left = list(_left(there, attach))
    for config in configs:
        if not config.is_ours or there.domain not in config.domains or config.arn in wanted:
            continue
        users = [words for words, named in left if config.arn in named]
        others = config.domains - {there.domain}
        reason = f"{', '.join(users[:3])} still starts with it" if users else None
        yield RemovalStep(
            f"lifecycle configuration {config.name}",
            "waits" if users else "to do",
            "exists",
            f"left to {', '.join(sorted(others))}" if others else "missing",
            reason,
            stage=_REMOVE,
            config=config,
            fate="kept for others" if others else "deleted",
        )


def _left(there: ActualState, attach: Sequence[AttachStep]) -> Iterator[tuple[str, frozenset[str]]]:
    """What each one's settings will name once the steps that can be done are done."""
    steps = {(step.holder.words, step.app_type): step for step in attach}
    for holder in there.holders:
        for app, app_type in APP_TYPES.items():
            named = _Slot(holder, app).found
            step = steps.get((holder.words, app_type))
            if step is not None and step.state in {"done", "to do"}:
                named = with_ours(named, step.arn, step.start, step.ours)
            yield f"{holder.words}, {NAMES[app]}", named.all

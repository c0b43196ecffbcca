"""From the actual and desired lifecycle configurations to the steps: pure.

A changed script is a new lifecycle configuration, since SageMaker cannot change one: the new one is created, replaces the old one in the settings,
and the old one is deleted once nothing names it. Our tag identifies ours; others' are unchanged, in settings too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin.fsx.models import ActualState, DesiredState, MountTarget, PlanStep, StepState, mode_of
from hyperpod_jlab.admin.fsx.planning import adjust_to_status
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
    parse_attachment,
    with_own_script,
)
from hyperpod_jlab.admin.lifecycle.scripts import App
from hyperpod_jlab.core.finding import Finding

NAMES: Mapping[App, str] = {"jupyterlab": "JupyterLab", "code-editor": "Code Editor"}
"""Display names of applications."""

_NONE_TEXT = "none of ours"
_MAKE_STAGE, _REMOVE_STAGE = 0, 100


@dataclass(frozen=True)
class _Slot:
    """The settings of an application that something of a domain has."""

    holder: MountTarget
    app: App

    @property
    def found(self) -> Attachment:
        return parse_attachment(self.holder.app_settings.get(APP_TYPES[self.app]) or {})


def lifecycle_steps(
    actual: ActualState, configs: Sequence[LifecycleConfig], desired: LifecycleWanted
) -> tuple[PlanStep, ...]:
    """The steps, including those that are already done.

    Args:
        actual: The domain with its profiles and spaces.
        configs: Lifecycle configurations of the account that are ours, or have a desired name; those with their text.
        desired: The desired state.
    """
    config_by_name = {config.name: config for config in configs}
    config_steps = {
        app: _config_step(actual, app, script, config_by_name.get(script.name))
        for app, script in desired.scripts.items()
    }
    arns = {app: step.arn for app, step in config_steps.items()}
    own_arns = frozenset(config.arn for config in configs if config.is_ours) | set(arns.values())
    blocked = {app for app, step in config_steps.items() if step.state == "blocked"}
    attach = [
        _attach_step(actual, slot, arns.get(slot.app), own_arns, desired, closed=slot.app in blocked)
        for slot in _slots(actual, desired, own_arns)
    ]
    removals = _removals(actual, configs, attach, set(arns.values()))
    return (*config_steps.values(), *attach, *removals)


def lifecycle_findings(
    actual: ActualState, configs: Sequence[LifecycleConfig], desired: LifecycleWanted
) -> Iterator[Finding]:
    """Profiles in which the domain's script does not run, since they name one of their own.

    Args:
        actual: The domain with its profiles and spaces.
        configs: As for `lifecycle_steps`.
        desired: What is to be there.
    """
    if desired.profiles is not None:
        return
    own_arns = {config.arn for config in configs if config.is_ours}
    for holder in actual.holders:
        for app in desired.scripts if holder.kind == "profile" else ():
            current_arn = _Slot(holder, app).found.at(desired.start)
            if current_arn is not None and current_arn not in own_arns:
                yield Finding(
                    level="warning",
                    code="own_lifecycle_config",
                    message=f"{holder.words} has {_name(current_arn)} for {NAMES[app]}, which overrides the domain's",
                    hint=f"--profile {holder.name} --take-over replaces it with the domain's",
                )


def path_findings(actual: ActualState, desired: DesiredState, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Files for all that are meant from the storage partition, where a partition is of one profile alone.

    Args:
        actual: The domain with its profiles.
        desired: What is to be there.
        settings: What the file says, by the names of `ScriptSettings`.
    """
    modes = {
        mode_of(holder, desired)
        for holder in actual.holders
        if holder.kind == "profile" and desired.includes(holder.name)
    }
    if "per-user" not in {*modes, desired.mode}:
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


def _config_step(actual: ActualState, app: App, script: Script, config: LifecycleConfig | None) -> ConfigStep:
    state: StepState = "to do"
    state_before, reason = "missing", None
    arn = config.arn if config else _arn(actual, script.name)
    if config is not None:
        state_before = "exists"
        if not config.is_ours:
            state, reason = ("blocked", "someone else created it: delete it, or choose another name")
        elif config.text != script.text or config.app_type != APP_TYPES[app]:
            state, reason = "blocked", "someone changed its script: delete it"
        elif actual.domain in config.domains:
            state = "done"
        else:
            state_before = "there, for other domains"
    return ConfigStep(
        f"lifecycle configuration {script.name}",
        state,
        state_before,
        "exists",
        reason,
        stage=_MAKE_STAGE,
        script=script,
        app_type=APP_TYPES[app],
        arn=arn,
        is_there=config is not None,
    )


def _arn(actual: ActualState, name: str) -> str:
    """Its future ARN: the domain's with another suffix (SageMaker's service authorization reference)."""
    domain = next(holder.arn for holder in actual.holders if holder.kind == "domain")
    return f"{domain.partition(':domain/')[0]}:studio-lifecycle-config/{name}"


# ---------------------------------------------------------------------------------------- settings


def _slots(actual: ActualState, desired: LifecycleWanted, own_arns: frozenset[str]) -> Iterator[_Slot]:
    """The affected settings: the domain's own, or those of the named profiles; and all that already name ours."""
    apps: tuple[App, ...] = ("jupyterlab", "code-editor")
    for holder in actual.holders:
        for app in apps:
            slot = _Slot(holder, app)
            if holder.kind == "space" or (holder.kind == "space defaults" and app != "jupyterlab"):
                continue  # users set their own spaces, and space defaults only support JupyterLab
            has_ours = bool(slot.found.all & own_arns)
            if _is_selected(holder, desired):
                is_concerned = app in desired.scripts or has_ours
            else:
                # The domain's own serve all profiles: a profile's own entry of ours is removed.
                is_concerned = desired.profiles is None and has_ours
            if is_concerned:
                yield slot


def _is_selected(holder: MountTarget, desired: LifecycleWanted) -> bool:
    if desired.profiles is None:
        return holder.kind != "profile"
    return holder.kind == "profile" and holder.name in desired.profiles


def _attach_step(
    actual: ActualState,
    slot: _Slot,
    arn: str | None,
    own_arns: frozenset[str],
    desired: LifecycleWanted,
    *,
    closed: bool,
) -> AttachStep:
    holder, current = slot.holder, slot.found
    if holder.kind == "profile" and desired.profiles is None:
        arn = None
    new_attachment = with_own_script(current, arn, desired.start, own_arns)
    state: StepState = "done" if new_attachment == current else "to do"
    reason = None
    foreign = current.at(desired.start)
    if state != "done":
        state, reason = adjust_to_status("to do", None, holder)
        if closed and arn is not None:
            state, reason = "blocked", "its lifecycle configuration cannot be created"
        elif arn is not None and foreign is not None and foreign not in own_arns:
            if desired.take_over:
                reason = f"{_name(foreign)} is replaced, and destroy does not restore it"
            else:
                state = "blocked"
                reason = f"someone else set {_name(foreign)} there; use --take-over to change it"
    app_type = APP_TYPES[slot.app]
    return AttachStep(
        f"{holder.words}, {NAMES[slot.app]}",
        state,
        _attachment_text(current, own_arns),
        _attachment_text(new_attachment, own_arns),
        reason,
        _running(actual, holder, app_type) if state != "done" else (),
        stage=_stage(slot),
        holder=holder,
        app_type=app_type,
        arn=arn,
        start=desired.start,
        ours=own_arns,
        take_over=desired.take_over,
    )


def _stage(slot: _Slot) -> int:
    """SageMaker updates one resource of a domain, or of a profile, at a time."""
    kinds = ("domain", "space defaults", "profile")
    return 1 + 2 * kinds.index(slot.holder.kind) + (slot.app == "code-editor")


def _attachment_text(attachment: Attachment, own_arns: frozenset[str]) -> str:
    parts = [
        f"{_name(arn)} {position}"
        for arn, position in ((attachment.built_in, "built in"), (attachment.default, "as default"))
        if arn is not None
    ]
    added_scripts = [
        arn_item for arn_item in attachment.listed if arn_item in own_arns and arn_item != attachment.default
    ]
    parts += [f"{_name(arn_item)} to choose" for arn_item in added_scripts]
    return ", ".join(parts) or _NONE_TEXT


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]


def _running(actual: ActualState, holder: MountTarget, app_type: str) -> tuple[str, ...]:
    """Applications that were started before: of the profile's spaces, or of all."""
    return tuple(
        f"{app_type} in {space.words}"
        for space in actual.holders
        if space.kind == "space" and app_type in space.apps and (holder.kind != "profile" or space.owner == holder.name)
    )


# ---------------------------------------------------------------------------------------- those of former times


def _removals(
    actual: ActualState, configs: Sequence[LifecycleConfig], attach: Sequence[AttachStep], desired: set[str]
) -> Iterator[LifecycleStep]:
    """What this domain no longer needs."""
    remaining = list(_attachments_after(actual, attach))
    for config in configs:
        if not config.is_ours or actual.domain not in config.domains or config.arn in desired:
            continue
        users = [holder_name for holder_name, attachment in remaining if config.arn in attachment]
        other_domains = config.domains - {actual.domain}
        reason = f"{', '.join(users[:3])} still starts with it" if users else None
        yield RemovalStep(
            f"lifecycle configuration {config.name}",
            "waits" if users else "to do",
            "exists",
            f"left to {', '.join(sorted(other_domains))}" if other_domains else "missing",
            reason,
            stage=_REMOVE_STAGE,
            config=config,
            fate="kept for others" if other_domains else "deleted",
        )


def _attachments_after(actual: ActualState, attach: Sequence[AttachStep]) -> Iterator[tuple[str, frozenset[str]]]:
    """The ARNs in each resource's settings after all possible steps."""
    steps = {(step.holder.words, step.app_type): step for step in attach}
    for holder in actual.holders:
        for app, app_type in APP_TYPES.items():
            attachment = _Slot(holder, app).found
            step = steps.get((holder.words, app_type))
            if step is not None and step.state in {"done", "to do"}:
                attachment = with_own_script(attachment, step.arn, step.start, step.ours)
            yield f"{holder.words}, {NAMES[app]}", attachment.all

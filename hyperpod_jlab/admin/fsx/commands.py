"""``hpj admin plan``, ``apply``, ``status`` and ``destroy``: mount a file system for the users of a Studio domain."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from hyperpod_jlab.admin.fsx.apply import StepResult, claim_text
from hyperpod_jlab.admin.fsx.keepers import find_mismatch, open_reconciler
from hyperpod_jlab.admin.fsx.models import NOT_KNOWN, DesiredState, PlanStep, is_folder
from hyperpod_jlab.admin.fsx.mounts import find_mounts
from hyperpod_jlab.admin.fsx.request import ProvisionerKind, ProvisionerOptions, StorageRequest
from hyperpod_jlab.admin.lifecycle.models import NOTHING, read_lifecycle_file
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError, RefusedError
from hyperpod_jlab.core.finding import raise_on_error
from hyperpod_jlab.core.wire import to_plain

if TYPE_CHECKING:
    from hyperpod_jlab.admin.fsx.models import ActualState, DeletionStep, Mode, StoragePlan
    from hyperpod_jlab.admin.fsx.mounts import StorageMounts
    from hyperpod_jlab.admin.fsx.reconcile import Reconciler
    from hyperpod_jlab.admin.lifecycle.models import LifecycleFile
    from hyperpod_jlab.cli.slow_steps import Steps
    from hyperpod_jlab.core.errors import HyperpodError
    from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# Options that select the folder provisioner.

PROVISIONER_OPTIONS = (
    click.option(
        "--image",
        metavar="REF",
        help="With --folders kubernetes: image with python3, by digest. Default: the configured image of the cluster.",
    ),
    click.option(
        "--claim",
        metavar="NAME",
        help="With --folders kubernetes: persistent volume claim of the whole file system. Default: from the configuration.",
    ),
    click.option(
        "--namespace",
        metavar="NAME",
        help="With --folders kubernetes: namespace of the claim. Default: from the configuration.",
    ),
    click.option("--queue", metavar="NAME", help="With --folders slurm: Slurm partition of the job."),
    click.option(
        "--mounted-at",
        metavar="PATH",
        help="Mount point of the whole file system on this machine, or with --folders slurm on the nodes (default there: the mount point that AWS reports for the cluster, or /fsx).",
    ),
    click.option(
        "--folders",
        "by",
        type=click.Choice(get_args(ProvisionerKind)),
        help="Where folders are checked, created and deleted: on this machine, in a job of the Slurm cluster, in a Job of the Kubernetes cluster, or not at all. "
        "Default: here with --mounted-at, otherwise none.",
    ),
)
"""Who looks at folders. In the order in which click takes decorators: from the last to the first."""

FOLDER_OPTIONS = (
    click.option(
        "--cluster-user",
        metavar="UID|NAME|none",
        help="User that the cluster's jobs run as. Access lists (ACLs) give this user access to the folders and to new files in them. With none, no user gets access to "
        "private folders. Default: existing access is kept.",
    ),
    *PROVISIONER_OPTIONS,
)
"""The same, and the additional user for folders."""


def _provisioner_options(options: dict[str, Any]) -> ProvisionerOptions:
    """The provisioner options.

    Raises:
        InvalidInputError: They do not fit together.
    """
    kind: ProvisionerKind = options["by"] or ("none" if options["mounted_at"] is None else "here")
    options_found = ProvisionerOptions(
        kind,
        options["mounted_at"],
        options["cluster"],
        options["queue"],
        options["namespace"],
        options["claim"],
        options["image"],
        options.get("cluster_user"),
    )
    mismatch = find_mismatch(options_found)
    if mismatch is not None:
        name, valid_kinds = mismatch
        raise InvalidInputError(
            f"--{name.replace('_', '-')} can be used only with --folders {' or '.join(valid_kinds)}",
            detail={"field": name},
        )
    return options_found


# --------------------------------------------------------------------------------------------------
# Terminal output of plans: the steps, the confirmation, and the results.

_STATE_SIGNS = {"done": "=", "to do": "+", "waits": "~", "blocked": "!"}
_STATE_LABELS = {"done": "up to date", "to do": "to do", "waits": "waiting", "blocked": "blocked"}
_MAX_QUIET = 5
"""Up to this many unchanged steps are listed one by one."""


def format_steps(count: int) -> str:
    """For example ``3 steps``."""
    return "1 step" if count == 1 else f"{count} steps"


def confirmed(count: int, extra_question: str | None = None) -> bool:
    """Ask for a confirmation, and a second one if there is an extra question.

    Raises:
        InvalidInputError: There is no terminal.
    """
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            f"changes need confirmation; to do: {format_steps(count)}",
            code="not_confirmed",
            hint="confirm with --yes; 'hpj admin plan' shows them",
        )
    is_confirmed = click.confirm(f"Do {format_steps(count)}?", err=True)
    if is_confirmed and (extra_question is None or click.confirm(extra_question, err=True)):
        return True
    print("nothing was done", file=sys.stderr)
    return False


def show(storage_plan: StoragePlan, *, drift: bool = False) -> None:
    """Print a plan; for drift only the differences."""
    if invocation().as_json:
        print_json(storage_plan)
        return
    done_steps = [step for step in storage_plan.steps if step.state == "done"]
    for step in (*storage_plan.steps, *storage_plan.deletions):
        if step.state != "done" or (not drift and len(done_steps) <= _MAX_QUIET):
            print(printable(_line(step)))
    errors = [finding for finding in storage_plan.findings if finding.level == "error"]
    if not (drift or errors):
        for statement in storage_plan.statements:
            print(printable(f"{statement.topic}: {statement.text}"))
    counts = {
        label: sum(step.state == state for step in (*storage_plan.steps, *storage_plan.deletions))
        for state, label in _STATE_LABELS.items()
    }
    print(", ".join(f"{count} {label}" for label, count in counts.items() if count) or "no steps")
    for finding in storage_plan.findings:
        # The first error becomes the command's error.
        if finding not in errors[:1]:
            print(printable(f"{finding.level}: {finding.message}"), file=sys.stderr)
            if finding.hint:
                print(printable(f"hint: {finding.hint}"), file=sys.stderr)


def _line(step: PlanStep) -> str:
    change = step.after if step.state == "done" else f"{step.before} -> {step.after}"
    return f"{_STATE_SIGNS[step.state]} {step.target}: {change}" + (f" ({step.reason})" if step.reason else "")


def print_result(result: StepResult) -> None:
    """Print the result of a step, as text."""
    if invocation().as_json:
        return
    if result.error is None:
        print(printable(f"{result.step.target}: {result.step.after}"))
    else:
        print(printable(f"error: {result.step.target}: {result.error.message}"), file=sys.stderr)


def _raise_worst(results: Sequence[StepResult]) -> None:
    """Raise the worst error; all were printed already."""
    failures = [(result.step.target, result.error) for result in results if result.error is not None]
    if not failures:
        return
    target, error = max(failures, key=lambda result: result[1].exit_code)
    remainder = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
    raise type(error)(
        f"not done: {target}{remainder}: {error.message}", code=error.code, hint=error.hint, detail=error.detail
    )


def _document(result: StepResult) -> dict[str, Any]:
    return {**to_plain(result.step, PlanStep), "ok": result.ok, "error": result.error}


def print_outcome(results: Sequence[StepResult]) -> None:
    """Print the results of a plan, and set the exit code.

    Raises:
        HyperpodError: The worst error.
    """
    if invocation().as_json:
        print_json({"results": list(map(_document, results))})
    open_steps = [result.step for result in results if not result.done and result.error is None]
    if not invocation().as_json:
        for step in open_steps:
            if step.state in {"waits", "blocked"}:
                status = "not done" if step.is_drift else NOT_KNOWN
                print(printable(f"{status}: {step.target}: {step.reason}"), file=sys.stderr)
    _raise_worst(results)
    if any(step.is_drift for step in open_steps):
        click.get_current_context().exit(1)


Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_PLAN = """\
Show what 'hpj admin apply' would change to mount an FSx for Lustre file system in the spaces of a Studio domain. Change nothing.

In mode shared, all users share one folder. In mode per-user, each user profile has its own folder. The plan covers existing profiles and spaces, and
the domain's defaults for new ones. Files are never moved: the content of a folder is available again when the folder is mounted again. A profile named with
--profile keeps its mode when the mode of the domain changes, until 'hpj admin destroy --profile'.
"""
_APPLY = """\
Make the changes that 'hpj admin plan' shows, after confirmation.

Each step has its own result. A step that fails does not stop the others. You can run the command again, and several people can run it at once: it
continues from the actual state. The exit code is 0 if everything is up to date, 1 if a step is waiting or blocked, and otherwise that of the worst error.
"""
_STATUS = """\
Show the mode in force, who mounts what, and what differs from that mode. Change nothing.

With --partition-mode, compare with that mode instead.

The exit code is 0 if everything is up to date, 1 if something differs or is waiting, and 2 if the desired state is not possible. Folders are included
only if they can be checked (--mounted-at).
"""


def common_options(function: Decorated) -> Decorated:
    """Options for the domain and the file system."""
    for option in (
        click.option(
            "--region",
            metavar="REGION",
            callback=aws_name,
            help="AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio.",
        ),
        click.option(
            "--profile",
            "profiles",
            multiple=True,
            metavar="NAME",
            help="Include only this user profile, not the settings of the domain. Repeatable.",
        ),
        click.option("--file-system", metavar="ID", callback=aws_name, help="File system id, instead of --cluster."),
        click.option("--cluster", metavar="NAME", callback=aws_name, help="HyperPod cluster whose file system to use."),
        click.option("--domain", metavar="ID", callback=aws_name, help="Domain id. Default: the domain of this space."),
    ):
        function = option(function)
    return function


def _desired_options(function: Decorated, *, is_mode_required: bool = True) -> Decorated:
    """Options for the desired state."""
    for option in (
        click.option(
            "--lifecycle-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings (TOML) of the scripts that run when a space starts. Default: scripts are not changed.",
        ),
        *FOLDER_OPTIONS,
        click.option("--take-over", is_flag=True, help="Also change settings that someone else made."),
        click.option(
            "--shared-path",
            default="/shared",
            show_default=True,
            metavar="PATH",
            help="In mode shared: folder that all users share.",
        ),
        click.option(
            "--partition-mode",
            "mode",
            type=click.Choice(["shared", "per-user"]),
            required=is_mode_required,
            help="One folder for all users, or one for each user profile."
            + ("" if is_mode_required else " Default: the mode in force."),
        ),
    ):
        function = option(function)
    return common_options(function)


@click.command(
    "plan",
    cls=HpjCommand,
    help=_PLAN,
    examples=(
        "hpj admin plan --domain d-abc123 --cluster ml-cluster --partition-mode per-user",
        "hpj admin plan --domain d-abc123 --file-system fs-0123456789abcdef0 --partition-mode shared --json",
        "hpj admin plan --domain d-abc123 --cluster ml-cluster --partition-mode shared --lifecycle-file lifecycle.toml",
    ),
)
@_desired_options
def plan(mode: Mode, **options: Any) -> None:
    """Print the plan."""
    request = build_request(mode, options)
    _, storage_plan = with_services(lambda services: _plan(services, request))
    show(storage_plan)
    raise_on_error(list(storage_plan.findings))


@click.command(
    "apply",
    cls=HpjCommand,
    help=_APPLY,
    examples=(
        "hpj admin apply --domain d-abc123 --cluster ml-cluster --partition-mode per-user",
        "hpj admin apply --domain d-abc123 --cluster ml-cluster --partition-mode shared --profile alice --yes",
    ),
)
@_desired_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def apply(mode: Mode, yes: bool, **options: Any) -> None:
    """Apply a plan."""
    carry_out(build_request(mode, options), yes)


@click.command(
    "status",
    cls=HpjCommand,
    help=_STATUS,
    examples=(
        "hpj admin status --domain d-abc123 --cluster ml-cluster",
        "hpj admin status --domain d-abc123 --cluster ml-cluster --partition-mode shared",
    ),
)
@partial(_desired_options, is_mode_required=False)
def status(mode: Mode | None, **options: Any) -> None:
    """Print the mode in force, and what is not as it is to be."""
    # Without a mode, any will do: the one in force replaces it.
    request = replace(build_request(mode or "shared", options), in_force=mode is None)
    actual, storage_plan = with_services(lambda services: _plan(services, request))
    mounts = find_mounts(actual.holders, actual.file_system.name)
    if invocation().as_json:
        print_json({**to_plain(storage_plan), "in_force": mounts})
    else:
        print(f"mode: {mounts.mode}")
        for line in _mount_lines(mounts):
            print(printable(line))
        show(storage_plan, drift=True)
    raise_on_error(list(storage_plan.findings))
    if storage_plan.drift:
        click.get_current_context().exit(1)


def _mount_lines(mounts: StorageMounts) -> Iterator[str]:
    labels = {"shared": "shared", "per-user": "own folder", "none": "not mounted"}
    for group in mounts.groups:
        label = f"{labels[group.kind]} {group.path}" if group.path else labels[group.kind]
        more = group.count - len(group.names)
        yield f"{label}: {', '.join(group.names)}" + (f" and {more} more" if more else "")
    yield f"new profiles: {mounts.new_profiles or 'not mounted'}"


def build_request(mode: Mode | None, options: dict[str, Any]) -> StorageRequest:
    """The request from the options.

    Raises:
        InvalidInputError: The domain is missing, the shared folder is invalid, or the folder options do not fit together.
    """
    domain = options["domain"]
    if domain is None:
        studio = find_studio()
        domain = studio.domain_id if studio else None
    if domain is None:
        raise InvalidInputError(
            "no Studio domain is given",
            hint="use --domain d-...; 'aws sagemaker list-domains' lists them",
            detail={"field": "domain"},
        )
    shared_path = options.get("shared_path", "/shared")
    if not is_folder(shared_path):
        raise InvalidInputError(
            f"--shared-path: '{shared_path[:60]}' is not a valid folder path",
            hint="use a slash and then letters, digits, dots and dashes, without a slash at the end, such as /shared",
            detail={"field": "shared_path"},
        )
    profiles = frozenset(options["profiles"]) or None
    desired = DesiredState(mode, shared_path, profiles, options.get("take_over", False))
    return StorageRequest(
        domain,
        desired,
        options["cluster"],
        options["file_system"],
        options["region"],
        _provisioner_options(options),
        _lifecycle(mode, options.get("lifecycle_file")),
    )


def _lifecycle(mode: Mode | None, path: Path | None) -> LifecycleFile | None:
    """The desired lifecycle configurations: `destroy` removes ours."""
    if mode is None:
        return NOTHING
    return None if path is None else read_lifecycle_file(path)


async def _plan(services: Hyperpod, request: StorageRequest) -> tuple[ActualState, StoragePlan]:
    async with slow_steps("asking AWS") as steps, _reconciler(services, request, steps) as reconciler:
        return await reconciler.plan()


@asynccontextmanager
async def _reconciler(services: Hyperpod, request: StorageRequest, steps: Steps) -> AsyncIterator[Reconciler]:
    def on_progress(done: int, total: int) -> None:
        steps.text = f"read {done} of {total} profiles and spaces"

    async with open_reconciler(services, request, on_progress) as reconciler:
        yield reconciler


def carry_out(request: StorageRequest, yes: bool) -> None:
    """Plan, confirm, apply, and print the results.

    Args:
        request: The request.
        yes: Whether to skip the confirmation.

    Raises:
        InvalidInputError: There is no terminal for the confirmation.
        RefusedError: The plan cannot be applied.
        HyperpodError: The worst error; see `aws.errors`.
    """
    actual, storage_plan = make_plan(request)
    steps_to_do = [step for step in storage_plan.steps if step.can_be_done]
    if steps_to_do and not (yes or confirmed(len(steps_to_do))):
        return
    print_outcome(apply_steps(request, actual, storage_plan))


def make_plan(request: StorageRequest, *, is_quiet: bool = False) -> tuple[ActualState, StoragePlan]:
    """The actual state and the plan; prints it as text unless quiet.

    Raises:
        RefusedError: The plan cannot be applied.
        HyperpodError: See `Reconciler.plan`.
    """
    actual, storage_plan = with_services(lambda services: _plan(services, request))
    raise_on_error(list(storage_plan.findings))
    if not (is_quiet or invocation().as_json):
        show(storage_plan)
    return actual, storage_plan


def apply_steps(request: StorageRequest, actual: ActualState, storage_plan: StoragePlan) -> list[StepResult]:
    """Apply the steps of a plan and print each result, in the plan's order."""
    steps_to_do = [step for step in storage_plan.steps if step.can_be_done]
    if not steps_to_do:
        return [StepResult(step, False) for step in storage_plan.steps]

    async def work(services: Hyperpod) -> list[StepResult]:
        result_by_target: dict[str, StepResult] = {}
        async with slow_steps("changing") as steps, _reconciler(services, request, steps) as reconciler:
            async for result in reconciler.apply(actual, storage_plan):
                result_by_target[result.step.target] = result
                started = [step for step in steps_to_do if step.target in result_by_target]
                steps.next(f"{len(started)} of {format_steps(len(steps_to_do))}")
                steps.clear()
                if result.done or result.error:
                    print_result(result)
        targets = [step.target for step in storage_plan.steps if step.target in result_by_target]
        return [result_by_target.pop(target) for target in dict.fromkeys(targets)] + list(result_by_target.values())

    return with_services(work)


# --------------------------------------------------------------------------------------------------
# ``hpj admin destroy``: remove a domain's settings; the data only after two confirmations.

_MAX_BLOCKED = 3
"""Maximum number of reasons in an error."""

_DESTROY = """\
Remove what 'hpj admin apply' set up, and nothing else.

Folders and their content are kept; the plan lists them. With --delete-data, they are permanently deleted with all their content. This applies only to folders that
'hpj admin apply' gave to profiles, that no one mounts afterwards, and that no running application has open. If any part cannot be done, nothing is
done. If the command is interrupted, run it again.

The exit code is 0 if nothing is left, 1 if a step is waiting or blocked, and otherwise that of the worst error.
"""


def _with_provisioner(function: Any) -> Any:
    for option in PROVISIONER_OPTIONS:
        function = option(function)
    return common_options(function)


@click.command(
    "destroy",
    cls=HpjCommand,
    help=_DESTROY,
    examples=(
        "hpj admin destroy --domain d-abc123 --cluster ml-cluster",
        "hpj admin destroy --domain d-abc123 --cluster ml-cluster --delete-data fs-0123456789abcdef0 --folders slurm",
    ),
)
@_with_provisioner
@click.option(
    "--delete-data", metavar="ID", help="Also delete the folders. ID is the file system id, to prevent accidents."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def destroy(yes: bool, delete_data: str | None, **options: Any) -> None:
    """Take back what was set."""
    request = build_request(None, options)
    if delete_data is None:
        if request.folders.by != "none":
            raise InvalidInputError(
                "--folders and --mounted-at can be used only with --delete-data",
                hint="leave out --folders and --mounted-at; folders are kept",
                detail={"field": "folders"},
            )
        carry_out(request, yes)
        return
    if request.folders.by == "none":
        raise InvalidInputError(
            "--delete-data needs a place where folders can be deleted",
            hint="use --mounted-at if the whole file system is mounted here, otherwise --folders slurm or kubernetes",
            detail={"field": "folders"},
        )
    _delete_with_data(request, yes, delete_data)


def _delete_with_data(request: StorageRequest, yes: bool, confirmed_name: str) -> None:
    """First the lists, then the folders, and their tags last, so that an interrupted run can be repeated."""
    marked = replace(request, wanted=replace(request.wanted, without_data=True))
    actual, storage_plan = make_plan(marked)
    _check_named(actual, confirmed_name)
    _check_claim(actual)
    _check_all(storage_plan)
    folders = [step for step in storage_plan.deletions if step.can_be_done]
    count = sum(step.can_be_done for step in storage_plan.steps) + len(folders)
    if count and not (yes or confirmed(count, _question(folders))):
        return
    _check_same(storage_plan, make_plan(marked, is_quiet=True)[1])
    results = apply_steps(marked, actual, storage_plan)
    if folders and _is_done(results):
        results += _delete_folders(marked, actual, storage_plan)
    if _is_done(results):
        with_services(lambda services: _unmark(services, request, results))
    print_outcome(results)


async def _unmark(services: Hyperpod, request: StorageRequest, results: list[StepResult]) -> None:
    """Remove the tags; failures become results too."""
    request = replace(request, folders=ProvisionerOptions())
    async with open_reconciler(services, request) as reconciler:
        actual, storage_plan = await reconciler.plan()
        raise_on_error(list(storage_plan.findings))
        _check_claim(actual)
        last = {result.step.target: result async for result in reconciler.apply(actual, storage_plan)}
    results += [result for result in last.values() if not _is_done([result])]


def _delete_folders(request: StorageRequest, actual: ActualState, storage_plan: StoragePlan) -> list[StepResult]:
    """Delete the folders of a plan and print each result; see `Reconciler.delete`."""
    steps_to_delete = [step for step in storage_plan.deletions if step.can_be_done]

    async def work(services: Hyperpod) -> Mapping[str, HyperpodError | None]:
        async with slow_steps("deleting"), open_reconciler(services, request) as reconciler:
            return await reconciler.delete(actual, steps_to_delete)

    ended = with_services(work)
    results = [StepResult(step, ended[step.path] is None, ended[step.path]) for step in steps_to_delete]
    for result in results:
        print_result(result)
    return results


def _is_done(results: Sequence[StepResult]) -> bool:
    return all(result.done or (result.error is None and not result.step.is_drift) for result in results)


def _check_named(actual: ActualState, confirmed_name: str) -> None:
    name = actual.file_system.name
    if confirmed_name != name:
        raise InvalidInputError(
            f"--delete-data names '{confirmed_name[:60]}', but the file system is {name}",
            hint=f"nothing was deleted; to delete its folders, use --delete-data {name}",
            detail={"field": "delete_data"},
        )


def _check_claim(actual: ActualState) -> None:
    """Check that no other apply is in progress on the domain. Leftovers of an interrupted `destroy` do not count.

    Raises:
        RefusedError: An apply is in progress, or was interrupted.
    """
    if actual.claim is not None and actual.claim != claim_text(DesiredState(None)):
        raise RefusedError(
            f"another apply to this domain has not finished: {actual.claim}",
            code="superseded",
            hint="wait until it finishes, run the same apply again, or run destroy without --delete-data",
        )


def _check_same(shown_plan: StoragePlan, now: StoragePlan) -> None:
    """Check that the plan is still the one that was shown: the confirmation may have taken long.

    Raises:
        RefusedError: It has changed.
    """
    if (shown_plan.steps, shown_plan.deletions) != (now.steps, now.deletions):
        raise RefusedError(
            "the state has changed since the plan was shown, so nothing was done",
            code="changed_meanwhile",
            hint="run this again and check the new plan",
        )


def _check_all(storage_plan: StoragePlan) -> None:
    """Check that all steps can be done, so that nothing is deleted while others wait.

    Raises:
        RefusedError: A step cannot.
    """
    steps = (*storage_plan.steps, *storage_plan.deletions)
    blocked_steps = [step for step in steps if step.is_drift and not step.can_be_done]
    blocked_steps += [step for step in storage_plan.deletions if step.before == NOT_KNOWN]
    if blocked_steps:
        blocked_text = "; ".join(f"{step.target}: {step.reason}" for step in blocked_steps[:_MAX_BLOCKED])
        remainder = f"; and {len(blocked_steps) - _MAX_BLOCKED} more" if len(blocked_steps) > _MAX_BLOCKED else ""
        raise RefusedError(
            f"nothing was changed because these steps are blocked: {blocked_text}{remainder}",
            code="data_in_use",
            hint="remove the cause, or leave out --delete-data to keep the folders",
        )


def _question(folders: Sequence[DeletionStep]) -> str | None:
    """The question about folders to delete; None without folders."""
    if not folders:
        return None
    paths = ", ".join(step.path for step in folders)
    return f"Permanently delete {paths} with all content?"

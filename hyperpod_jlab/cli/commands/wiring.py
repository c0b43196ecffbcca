"""``hpj admin plan``, ``apply``, ``status`` and ``destroy``: a file system and the people of a Studio domain."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperpod_jlab.admin.applying import Result
from hyperpod_jlab.admin.lifecycle.file import NOTHING, LifecycleFile, read_lifecycle_file
from hyperpod_jlab.admin.modes import is_folder
from hyperpod_jlab.admin.plan import NOT_KNOWN, Mode, Plan, Step, Wanted
from hyperpod_jlab.admin.there import There
from hyperpod_jlab.admin.wiring import Wirer, Wiring
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.folder_options import FOLDER_OPTIONS, folder_place
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import Steps, slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.finding import refuse_on_error
from hyperpod_jlab.services.folder_keepers import FolderPlace
from hyperpod_jlab.services.open_wirer import open_wirer

if TYPE_CHECKING:
    from hyperpod_jlab.services.hyperpod import Hyperpod

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_SIGNS = {"done": "=", "to do": "+", "waits": "~", "blocked": "!"}
_WORDS = {"done": "as wanted", "to do": "to do", "waits": "waiting", "blocked": "blocked"}
Asked = Callable[[There, Plan], str | None]
"""Looks at a plan: what is asked besides, in words; it raises what stands against it."""

_QUIET = 5
"""Steps that are as wanted already, up to which each is shown."""

_PLAN = """\
Say what is to be done so that the people of a Studio domain have a file system of FSx for Lustre, and change nothing.

In mode shared all have one folder of it; in mode per-user each user profile has a folder of its own. Profiles and spaces that are there are changed, and
the domain's defaults for those to come. Nothing is moved: what lies in a folder is there again once it is mounted again. A profile that is named by
--profile keeps its mode when the domain's changes, until 'hpj admin destroy --profile' takes it away.
"""
_APPLY = """\
Do what 'hpj admin plan' says, after asking.

Each step has its own result, and one that fails leaves the others. It may be run again, by several people at once too: it goes on from what it finds.
The exit code is 0 when all is as wanted, 1 when a step waits or is blocked, and else that of the worst error.
"""
_STATUS = """\
Say what is not as it is to be, and change nothing.

The exit code is 0 when all is as wanted, 1 when something is not or waits, 2 when it cannot be at all. Folders count only where somebody can look at
them (--mounted-at).
"""


def common_options(function: Decorated) -> Decorated:
    """Options that say which domain and which file system."""
    for option in (
        click.option(
            "--region",
            metavar="REGION",
            callback=aws_name,
            help="AWS region. Default: $AWS_REGION, or that of the AWS configuration or of Studio.",
        ),
        click.option(
            "--profile",
            "profiles",
            multiple=True,
            metavar="NAME",
            help="Only this user profile, and nothing of the domain's own. May be given several times.",
        ),
        click.option(
            "--file-system",
            metavar="ID",
            callback=aws_name,
            help="The file system, in place of --cluster.",
        ),
        click.option(
            "--cluster",
            metavar="NAME",
            callback=aws_name,
            help="The HyperPod cluster whose file system it is.",
        ),
        click.option(
            "--domain",
            metavar="ID",
            callback=aws_name,
            help="The domain's id. Default: this space's.",
        ),
    ):
        function = option(function)
    return function


def _wanted(function: Decorated) -> Decorated:
    """Options that say what is to be there."""
    for option in (
        click.option(
            "--lifecycle-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="What scripts are to do when a space starts (TOML). Default: they are left alone.",
        ),
        *FOLDER_OPTIONS,
        click.option("--take-over", is_flag=True, help="Change also what somebody else has set."),
        click.option(
            "--shared-path",
            default="/shared",
            show_default=True,
            metavar="PATH",
            help="The folder that all have in mode shared.",
        ),
        click.option(
            "--partition-mode",
            "mode",
            type=click.Choice(["shared", "per-user"]),
            required=True,
            help="One folder for all, or one for each user profile.",
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
@_wanted
def plan(mode: Mode, **options: Any) -> None:
    """Print the plan."""
    wiring, region = wiring_of(mode, options)
    place = folder_place(options)
    _, made = with_services(lambda services: _planned(services, wiring, region, place))
    _show(made)
    refuse_on_error(list(made.findings))


@click.command(
    "apply",
    cls=HpjCommand,
    help=_APPLY,
    examples=(
        "hpj admin apply --domain d-abc123 --cluster ml-cluster --partition-mode per-user",
        "hpj admin apply --domain d-abc123 --cluster ml-cluster --partition-mode shared --profile alice --yes",
    ),
)
@_wanted
@click.option("--yes", is_flag=True, help="Do not ask.")
def apply(mode: Mode, yes: bool, **options: Any) -> None:
    """Apply a plan."""
    wiring, region = wiring_of(mode, options)
    carry_out(wiring, region, yes, folder_place(options))


@click.command(
    "status",
    cls=HpjCommand,
    help=_STATUS,
    examples=("hpj admin status --domain d-abc123 --cluster ml-cluster --partition-mode shared",),
)
@_wanted
def status(mode: Mode, **options: Any) -> None:
    """Print what is not as it is to be."""
    wiring, region = wiring_of(mode, options)
    place = folder_place(options)
    _, made = with_services(lambda services: _planned(services, wiring, region, place))
    _show(made, drift=True)
    refuse_on_error(list(made.findings))
    if made.drift:
        click.get_current_context().exit(1)


def wiring_of(mode: Mode | None, options: dict[str, Any]) -> tuple[Wiring, str | None]:
    """What was named, and the region.

    Raises:
        InvalidInputError: Nobody says which domain, or the shared folder is none.
    """
    domain = options["domain"]
    if domain is None:
        studio = find_studio()
        domain = studio.domain_id if studio else None
    if domain is None:
        raise InvalidInputError(
            "nobody says which domain",
            hint="name it: --domain d-...; 'aws sagemaker list-domains' lists them",
            detail={"field": "domain"},
        )
    shared_path = options.get("shared_path", "/shared")
    if not is_folder(shared_path):
        raise InvalidInputError(
            f"--shared-path: '{shared_path[:60]}' is no folder of a file system",
            hint="letters, digits, dots and dashes after a slash, and no slash at the end: such as /shared",
            detail={"field": "shared_path"},
        )
    profiles = frozenset(options["profiles"]) or None
    wanted = Wanted(mode, shared_path, profiles, options.get("take_over", False))
    wiring = Wiring(
        domain,
        wanted,
        options["cluster"],
        options["file_system"],
        lifecycle=_lifecycle(mode, options.get("lifecycle_file")),
    )
    return wiring, options["region"]


def _lifecycle(mode: Mode | None, path: Path | None) -> LifecycleFile | None:
    """What is wanted of lifecycle configurations: `destroy` takes ours away."""
    if mode is None:
        return NOTHING
    return None if path is None else read_lifecycle_file(path)


async def _planned(
    services: Hyperpod, wiring: Wiring, region: str | None, place: FolderPlace
) -> tuple[There, Plan]:
    async with (
        slow_steps("asking AWS") as steps,
        _wirer(services, wiring, region, place, steps) as wirer,
    ):
        return await wirer.plan()


@asynccontextmanager
async def _wirer(
    services: Hyperpod, wiring: Wiring, region: str | None, place: FolderPlace, steps: Steps
) -> AsyncIterator[Wirer]:
    def told(done: int, total: int) -> None:
        steps.text = f"read {done} of {total} profiles and spaces"

    async with open_wirer(services, wiring, region, place, told) as wirer:
        yield wirer


def carry_out(
    wiring: Wiring,
    region: str | None,
    yes: bool,
    place: FolderPlace,
    asked: Asked | None = None,
) -> None:
    """Plan, ask, and do it.

    Args:
        wiring: What is wanted.
        region: The domain's region.
        yes: Whether nobody is asked.
        place: Who looks after folders.
        asked: Looks at the plan before anybody is asked, and gives what is asked besides, if anything.

    Raises:
        InvalidInputError: Nobody can be asked.
        RefusedError: The plan cannot be done at all.
        HyperpodError: The worst of what has failed; see `aws.errors`.
    """
    there, made = with_services(lambda services: _planned(services, wiring, region, place))
    refuse_on_error(list(made.findings))
    todo = [step for step in made.steps if step.can_be_done]
    if not invocation().as_json:
        _show(made)
    more = None if asked is None else asked(there, made)
    if todo and not (yes or _confirmed(len(todo), more)):
        print("nothing was done", file=sys.stderr)
        return

    async def work(services: Hyperpod) -> list[Result]:
        found: dict[str, Result] = {}
        async with (
            slow_steps("changing") as steps,
            _wirer(services, wiring, region, place, steps) as wirer,
        ):
            async for result in wirer.apply(there, made):
                found[result.step.target] = result
                begun = [step for step in todo if step.target in found]
                steps.next(f"{len(begun)} of {_steps(len(todo))}")
                steps.clear()
                if not invocation().as_json and (result.done or result.error):
                    _tell(result)
        # In the plan's order, whichever was done first.
        order = [step.target for step in made.steps if step.target in found]
        return [found.pop(target) for target in dict.fromkeys(order)] + list(found.values())

    results = with_services(work) if todo else [Result(step, False) for step in made.steps]
    if invocation().as_json:
        print_json({"results": [result.to_dict() for result in results]})
    left = [one.step for one in results if not one.done and one.error is None]
    if not invocation().as_json:
        for step in left:
            if step.state in {"waits", "blocked"}:
                word = "not done" if step.is_drift else NOT_KNOWN
                print(printable(f"{word}: {step.target}: {step.reason}"), file=sys.stderr)
    _raise_worst(results)
    if any(step.is_drift for step in left):
        click.get_current_context().exit(1)


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _confirmed(count: int, more: str | None) -> bool:
    """Whether the admin wants it, and says so once more where there is more to ask.

    Raises:
        InvalidInputError: Nobody can be asked.
    """
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            f"nothing is changed without your word; to do: {_steps(count)}",
            code="not_confirmed",
            hint="add --yes to do them; 'hpj admin plan' shows them",
        )
    wanted = click.confirm(f"Do {_steps(count)}?", err=True)
    return wanted and (more is None or click.confirm(more, err=True))


def _show(made: Plan, *, drift: bool = False) -> None:
    if invocation().as_json:
        print_json(made.to_dict())
        return
    done = [step for step in made.steps if step.state == "done"]
    for step in made.steps:
        if step.state != "done" or (not drift and len(done) <= _QUIET):
            print(printable(_line(step)))
    errors = [finding for finding in made.findings if finding.level == "error"]
    if not (drift or errors):
        for statement in made.statements:
            print(printable(f"{statement.topic}: {statement.text}"))
    counts = {
        word: sum(step.state == state for step in made.steps) for state, word in _WORDS.items()
    }
    print(", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no steps")
    for finding in made.findings:
        # The first error is what the command ends with.
        if finding not in errors[:1]:
            print(printable(f"{finding.level}: {finding.message}"), file=sys.stderr)
            if finding.hint:
                print(printable(f"hint: {finding.hint}"), file=sys.stderr)


def _line(step: Step) -> str:
    change = step.after if step.state == "done" else f"{step.before} -> {step.after}"
    return f"{_SIGNS[step.state]} {step.target}: {change}" + (
        f" ({step.reason})" if step.reason else ""
    )


def _tell(result: Result) -> None:
    if result.error is None:
        print(printable(f"{result.step.target}: {result.step.after}"))
    else:
        print(printable(f"error: {result.step.target}: {result.error.message}"), file=sys.stderr)


def _raise_worst(results: list[Result]) -> None:
    """Raise the worst error; all were told already."""
    failed = [(one.step.target, one.error) for one in results if one.error is not None]
    if not failed:
        return
    target, error = max(failed, key=lambda one: one[1].exit_code)
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    raise type(error)(
        f"not done: {target}{more}: {error.message}",
        code=error.code,
        hint=error.hint,
        detail=error.detail,
    )

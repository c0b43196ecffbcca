"""``hpj admin plan``, ``apply``, ``status`` and ``destroy``: a file system and the people of a Studio domain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperpod_jlab.admin.applying import Result
from hyperpod_jlab.admin.lifecycle.file import NOTHING, LifecycleFile, read_lifecycle_file
from hyperpod_jlab.admin.modes import is_folder
from hyperpod_jlab.admin.plan import Mode, Plan, Wanted
from hyperpod_jlab.admin.there import There
from hyperpod_jlab.admin.wiring import Wirer, Wiring
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.folder_options import FOLDER_OPTIONS, folder_place
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.plan_output import conclude, confirmed, show, steps_words, tell
from hyperpod_jlab.cli.slow_steps import Steps, slow_steps
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.finding import refuse_on_error
from hyperpod_jlab.services.folder_keepers import FolderPlace
from hyperpod_jlab.services.open_wirer import open_wirer

if TYPE_CHECKING:
    from hyperpod_jlab.services.hyperpod import Hyperpod

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

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
    show(made)
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
    show(made, drift=True)
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


def carry_out(wiring: Wiring, region: str | None, yes: bool, place: FolderPlace) -> None:
    """Plan, ask, do it, and say what became of it.

    Args:
        wiring: What is wanted.
        region: The domain's region.
        yes: Whether nobody is asked.
        place: Who looks after folders.

    Raises:
        InvalidInputError: Nobody can be asked.
        RefusedError: The plan cannot be done at all.
        HyperpodError: The worst of what has failed; see `aws.errors`.
    """
    there, made = planned(wiring, region, place)
    todo = [step for step in made.steps if step.can_be_done]
    if todo and not (yes or confirmed(len(todo))):
        return
    conclude(results_of(wiring, region, place, there, made))


def planned(
    wiring: Wiring, region: str | None, place: FolderPlace, *, quiet: bool = False
) -> tuple[There, Plan]:
    """What is there and the plan, which is shown to people unless it is to be quiet.

    Raises:
        RefusedError: The plan cannot be done at all.
        HyperpodError: See `Wirer.plan`.
    """
    there, made = with_services(lambda services: _planned(services, wiring, region, place))
    refuse_on_error(list(made.findings))
    if not (quiet or invocation().as_json):
        show(made)
    return there, made


def results_of(
    wiring: Wiring, region: str | None, place: FolderPlace, there: There, made: Plan
) -> list[Result]:
    """Do the steps of a plan, telling people of each; in the plan's order, whichever was done first."""
    todo = [step for step in made.steps if step.can_be_done]
    if not todo:
        return [Result(step, False) for step in made.steps]

    async def work(services: Hyperpod) -> list[Result]:
        found: dict[str, Result] = {}
        async with (
            slow_steps("changing") as steps,
            _wirer(services, wiring, region, place, steps) as wirer,
        ):
            async for result in wirer.apply(there, made):
                found[result.step.target] = result
                begun = [step for step in todo if step.target in found]
                steps.next(f"{len(begun)} of {steps_words(len(todo))}")
                steps.clear()
                if result.done or result.error:
                    tell(result)
        order = [step.target for step in made.steps if step.target in found]
        return [found.pop(target) for target in dict.fromkeys(order)] + list(found.values())

    return with_services(work)

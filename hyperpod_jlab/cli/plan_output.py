"""Plans of an admin on the terminal: what is to be done, whether it is wanted, and what became of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from hyperpod_jlab.admin.applying import Result
from hyperpod_jlab.admin.plan import NOT_KNOWN, Plan, Step
from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.model.errors import InvalidInputError

_SIGNS = {"done": "=", "to do": "+", "waits": "~", "blocked": "!"}
_WORDS = {"done": "as wanted", "to do": "to do", "waits": "waiting", "blocked": "blocked"}
_QUIET = 5
"""Steps that are as wanted already, up to which each is shown."""


def steps_words(count: int) -> str:
    """Such as ``3 steps``."""
    return "1 step" if count == 1 else f"{count} steps"


def confirmed(count: int, more: str | None = None) -> bool:
    """Whether the admin wants it, and says so once more where there is more to ask.

    Raises:
        InvalidInputError: Nobody can be asked.
    """
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            f"nothing is changed without your word; to do: {steps_words(count)}",
            code="not_confirmed",
            hint="add --yes to do them; 'hpj admin plan' shows them",
        )
    wanted = click.confirm(f"Do {steps_words(count)}?", err=True)
    if wanted and (more is None or click.confirm(more, err=True)):
        return True
    print("nothing was done", file=sys.stderr)
    return False


def show(made: Plan, *, drift: bool = False) -> None:
    """Print a plan; of drift only what is not as wanted."""
    if invocation().as_json:
        print_json(made.to_dict())
        return
    done = [step for step in made.steps if step.state == "done"]
    for step in (*made.steps, *made.deletions):
        if step.state != "done" or (not drift and len(done) <= _QUIET):
            print(printable(_line(step)))
    errors = [finding for finding in made.findings if finding.level == "error"]
    if not (drift or errors):
        for statement in made.statements:
            print(printable(f"{statement.topic}: {statement.text}"))
    counts = {
        word: sum(step.state == state for step in (*made.steps, *made.deletions))
        for state, word in _WORDS.items()
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


def tell(result: Result) -> None:
    """Say what became of a step, to people."""
    if invocation().as_json:
        return
    if result.error is None:
        print(printable(f"{result.step.target}: {result.step.after}"))
    else:
        print(printable(f"error: {result.step.target}: {result.error.message}"), file=sys.stderr)


def _raise_worst(results: Sequence[Result]) -> None:
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


def conclude(results: Sequence[Result]) -> None:
    """Say what became of a plan, and leave with its exit code.

    Raises:
        HyperpodError: The worst of what has failed.
    """
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

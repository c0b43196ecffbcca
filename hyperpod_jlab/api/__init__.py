"""The public Python API: submit code from a notebook or a script, and control the run.

    run = hyperpod_jlab.submit(train, args=(0.1,), nodes=2, processes_per_node=2)
    for line in run.logs(follow=True):
        print(line)
    run.result()

Nothing here blocks the kernel except `Run.wait`, `Run.result` and following a log.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperpod_jlab.api.background import background
from hyperpod_jlab.api.run import Run, check_flag, check_number, check_text, kind_of
from hyperpod_jlab.clusters.configuration import current_folder
from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.core.nested import merge
from hyperpod_jlab.core.options import SpecOption, known_options, option_name, to_spec_data
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.listing import RunFilter, check_states
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request

__all__ = ["Run", "get", "runs", "submit"]


def submit(
    what: Callable[..., Any] | str | os.PathLike[str] | None = None,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    command: str | None = None,
    cluster: str | None = None,
    run_id: str | None = None,
    spec: Mapping[str, Any] | None = None,
    accept_cost: bool = False,
    **options: Any,
) -> Run:
    """Submit a function, a notebook, a Python file or a command; returns at once.

    Args:
        what: A function, or the path of a ``.ipynb`` or ``.py`` file.
        args: The function's arguments, or the values of ``sys.argv[1:]``.
        kwargs: The function's keyword arguments.
        command: A shell command, instead of `what`.
        cluster: The cluster's name; default: the configured one.
        run_id: A run id of your own: the same id again returns the same run.
        spec: Further fields of the spec, as nested data; options override them.
        accept_cost: Confirms a cost over the limit of the configuration (``cost.confirm_over``).
        options: The spec's options by name, as on the command line: ``nodes=2``, ``time_limit="2h"``, ``env={"K": "V"}``.

    Raises:
        InvalidInputError: An argument is invalid.
        RefusedError: The cluster refuses the run.
    """
    check_text(command, "command", "a shell command as text")
    check_text(cluster, "cluster", "a cluster's name")
    check_text(run_id, "run_id", "a run id")
    check_flag(accept_cost, "accept_cost")
    call, source = _source(what, args, kwargs, command)
    data = merge(dict(spec or {}), _options(options))
    data["source"] = {**source, **data.get("source", {})}
    if call is None:
        data["args"] = [str(argument) for argument in args]
    secrets = {
        name: os.environ[name]
        for name, reference in data.get("environment", {}).get("secrets", {}).items()
        if not reference and name in os.environ
    }
    checked = parse(JobSpec, data)
    hyperpod = _hyperpod()
    request = Request(
        checked,
        cluster=cluster,
        run_id=run_id,
        base=current_folder(),
        call=call,
        secrets=secrets,
        accept_cost=accept_cost,
    )
    return Run(hyperpod, background.call(hyperpod.submitter.submit(request)))


def get(run_id: str) -> Run:
    """The run with this id.

    Raises:
        InvalidInputError: The id is invalid.
        NotFoundError: The run does not exist.
    """
    check_text(run_id, "run_id", "a run id", optional=False)
    run = Run(_hyperpod(), run_id)
    background.call(_hyperpod().runs.get(run_id))
    return run


def runs(
    *, limit: int | None = 20, cluster: str | None = None, state: str | Sequence[str] = (), all_users: bool = False
) -> list[Run]:
    """Runs, newest first.

    Args:
        limit: Maximum number; None for all.
        cluster: Only runs of this cluster.
        state: Only runs in this state, or in one of these.
        all_users: Include other users' runs on a shared partition.

    Raises:
        InvalidInputError: An argument is invalid.
    """
    check_number(limit, "limit", 1)
    check_text(cluster, "cluster", "a cluster's name")
    requested_states: Any = state
    for state_name in requested_states if isinstance(requested_states, list | tuple | set) else [requested_states]:
        check_text(state_name, "state", "a state's name", optional=False)
    states = check_states([state] if isinstance(state, str) else list(state))
    run_filter = RunFilter(cluster=cluster, states=states, everyone=all_users, limit=limit)
    hyperpod = _hyperpod()
    listing = background.call(hyperpod.runs.list(run_filter))
    return [Run(hyperpod, run.run_id) for run in listing.runs]


@functools.cache
def _hyperpod() -> Hyperpod:
    return Hyperpod()


def _source(
    target: Callable[..., Any] | str | os.PathLike[str] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    command: str | None,
) -> tuple[Any, dict[str, Any]]:
    """The call (for a function) and the source's data."""
    if (target is None) == (command is None):
        raise InvalidInputError(
            "give exactly one thing to run",
            code="no_source",
            hint="a function, the path of a .ipynb or .py file, or command='...'",
        )
    _check_call(target, args, kwargs)
    if callable(target):
        from hyperpod_jlab.capture import FunctionCall

        module = getattr(target, "__module__", None) or "__main__"
        qualname = getattr(target, "__qualname__", None) or type(target).__qualname__
        source = {"kind": "function", "module": module, "qualname": qualname}
        return FunctionCall(target, tuple(args), dict(kwargs or {})), source
    if kwargs:
        raise InvalidInputError("kwargs are for functions", hint="give arguments in args")
    if command is not None:
        return None, {"kind": "command", "command": command}
    path = os.fspath(target) if target is not None else ""
    kinds = {".ipynb": "notebook", ".py": "script"}
    kind = kinds.get(Path(path).suffix, "native")
    return None, {"kind": kind, "path": path}


def _check_call(source: object, args: object, kwargs: object) -> None:
    """Raise a clear error where Python would raise a TypeError."""
    if source is not None and not callable(source) and not isinstance(source, (str, os.PathLike)):
        raise InvalidInputError(
            f"{kind_of(source)} cannot be run",
            code="no_source",
            hint="give a function, the path of a .ipynb or .py file, or command='...'",
        )
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise InvalidInputError(
            f"args must be a tuple or a list, not {kind_of(args)}",
            code="invalid_args",
            hint="for one argument write args=(x,)",
            detail={"field": "args"},
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InvalidInputError(
            f"kwargs must be a dict, not {kind_of(kwargs)}",
            code="invalid_args",
            hint="write kwargs={'name': value}",
            detail={"field": "kwargs"},
        )


def _options(options: dict[str, Any]) -> dict[str, Any]:
    if "env" in options and not isinstance(options["env"], Mapping):
        raise InvalidInputError("env must be a dict of names and values", detail={"field": "env"})
    result = dict(options)
    if isinstance(result.get("secret"), (str, list, tuple)):
        names = [result["secret"]] if isinstance(result["secret"], str) else result["secret"]
        result["secret"] = dict.fromkeys(names, "")
    if "after" in result:
        run_refs = result["after"] if isinstance(result["after"], (list, tuple)) else [result["after"]]
        result["after"] = [run.run_id if isinstance(run, Run) else run for run in run_refs]
    options_known = known_options()
    for entry in options_known:
        name = option_name(entry.option.flag)
        if entry.option.repeat == "list" and isinstance(result.get(name), str):
            result[name] = [result[name]]
    data, unknown = to_spec_data(options_known, result)
    if unknown:
        raise InvalidInputError(
            f"unknown option '{unknown[0]}'",
            code="unknown_option",
            hint=_unknown_hint(unknown[0], options_known),
            detail={"field": unknown[0]},
        )
    return data


def _unknown_hint(name: str, options: Sequence[SpecOption]) -> str | None:
    """The option that was probably meant: that of the spec's field of this name, or one that is spelled nearly so."""
    for entry in options:
        if entry.path[-1] == name:
            return f"did you mean '{option_name(entry.option.flag)}'?"
    return nearest_hint(name, [option_name(entry.option.flag) for entry in options])

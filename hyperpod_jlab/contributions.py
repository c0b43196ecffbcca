"""What a folder adds to the faces: routes of the REST API, logs that are followed, commands of ``hpj``, and checks of the doctor on AWS.

A folder lists them as ``ROUTES``, ``FOLLOWS``, ``COMMANDS`` and ``CHECKS`` in its ``__init__``, which imports nothing else. The server and the command line collect them from all
folders, so neither names one: a feature is added with its folder, and removed with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple

Action = Literal["read", "write", "execute"]
Verb = Literal["get", "post"]

_FOLDERS = ("run", "clusters", "features", "admin", "server", "cli")
_PARAMETER = re.compile(r"\{(\w+)\}")

# An ARN has a slash, which a proxy on the way may have decoded.
_PATTERNS = {"path": ".+", "cluster": "(?:arn(?::|%3A)[^/]+cluster/)?[^/]+"}


class Route(NamedTuple):
    """One request of the REST API.

    Attributes:
        verb: The HTTP method.
        path: The path under the API's prefix; ``{name}`` stands for one part of it, ``{path}`` for any number.
        action: What the authorizer is asked for.
        function: ``module:function`` in the folder. Its parameters and its result are the request's and the answer's.
        statuses: The HTTP statuses of success.
        reads: Whether it changes nothing, so that it ends when the client has gone. GET always does.
    """

    verb: Verb
    path: str
    action: Action
    function: str
    statuses: tuple[int, ...] = (200,)
    reads: bool = False

    @property
    def pattern(self) -> str:
        """The path as a regular expression with named groups."""
        return _PARAMETER.sub(_group, self.path.replace(".", r"\."))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(_PARAMETER.findall(self.path))


class Command(NamedTuple):
    """One command of ``hpj``.

    Attributes:
        name: The name on the command line. The function has the same, with underscores.
        help: One line for ``hpj --help``.
        section: The section of ``hpj --help``.
        rank: The place in the section; lower comes first.
        module: The module in the folder.
    """

    name: str
    help: str
    section: str
    rank: int
    module: str = "commands"


class Follow(NamedTuple):
    """Logs that the log socket follows.

    Attributes:
        field: The field of the message ``subscribe`` that names them, such as ``run_id``.
        function: ``module:function`` in the folder. It is given the services and the message, and returns the lines in batches.
    """

    field: str
    function: str


def routes() -> tuple[Route, ...]:
    """The routes of all folders; `Route.function` begins with the full name of the folder."""
    return tuple(
        route._replace(function=f"{package}.{route.function}")
        for package, listed in _listed("ROUTES")
        for route in listed
    )


def follows() -> dict[str, str]:
    """What the log socket follows: the full name of the function by the field of the message."""
    return {follow.field: f"{package}.{follow.function}" for package, listed in _listed("FOLLOWS") for follow in listed}


def commands() -> tuple[Command, ...]:
    """The commands of all folders in the order of their ranks; `Command.module` is a full name."""
    found = [
        command._replace(module=f"{package}.{command.module}")
        for package, listed in _listed("COMMANDS")
        for command in listed
    ]
    return tuple(sorted(found, key=lambda command: command.rank))


def checks() -> tuple[str, ...]:
    """The functions that return the steps of ``hpj doctor --aws``, with full names: ``module:function``."""
    return tuple(f"{package}.{check}" for package, listed in _listed("CHECKS") for check in listed)


def _listed(name: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for package in _packages():
        yield package, getattr(import_module(package), name, ())


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    """The folders that may list something: those of `_FOLDERS`, and the folders in them."""
    found = []
    for folder in _FOLDERS:
        package = f"{__package__}.{folder}"
        found.append(package)
        inside = iter_modules(import_module(package).__path__)
        found += sorted(f"{package}.{one.name}" for one in inside if one.ispkg)
    return tuple(found)


def _group(match: re.Match[str]) -> str:
    name = match.group(1)
    return f"(?P<{name}>{_PATTERNS.get(name, '[^/]+')})"

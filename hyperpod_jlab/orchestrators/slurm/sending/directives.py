"""The ``#SBATCH`` lines of a user's own script, as far as we must know what they say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hyperpod_jlab.model.errors import InvalidInputError

_SHORT = {
    "A": "account",
    "a": "array",
    "D": "chdir",
    "e": "error",
    "J": "job-name",
    "N": "nodes",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
}
"""Short options whose meaning matters here (man sbatch)."""

_SENDS_NOTHING = frozenset({"test-only", "help", "usage", "version"})


def directives(script: bytes) -> dict[str, str]:
    """The options by their long names, less dashes; a switch has an empty value. Of an option that is given twice the last one counts.

    As sbatch does, lines are read up to the first that is neither blank nor a comment (man sbatch).

    Raises:
        InvalidInputError: It is a heterogeneous job, which has several of everything, or one of its lines keeps sbatch from sending it.
    """
    found: dict[str, str] = {}
    for line in _lines(script):
        words = _words(line)
        if words[:1] in (["hetjob"], ["packjob"]):
            raise InvalidInputError(
                "heterogeneous jobs cannot be sent from here",
                code="unsupported",
                hint="send it with sbatch, or split it into several scripts",
                detail={"field": "source"},
            )
        found.update(_options(words))
    sends_nothing = _SENDS_NOTHING & found.keys()
    if sends_nothing:
        raise InvalidInputError(
            f"the script says --{min(sends_nothing)}, with which sbatch sends nothing",
            code="sends_nothing",
            hint="take the line out; --dry-run shows what would be sent",
            detail={"field": "source"},
        )
    return found


def _lines(script: bytes) -> Iterator[str]:
    for number, raw in enumerate(script.decode("utf-8", "surrogateescape").split("\n")):
        line = raw.rstrip("\r")
        if line.startswith("#SBATCH") and line[7:8].isspace():
            yield line[8:]
        elif number > 0 and line.strip() and not line.startswith("#"):
            return


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote that never ends; sbatch says so itself
        return line.split()


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        elif word.startswith("-") and len(word) > 1:
            name, value = _SHORT.get(word[1], word[1]), word[2:]
            equals = value
        else:
            continue
        if not equals and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        yield name, value

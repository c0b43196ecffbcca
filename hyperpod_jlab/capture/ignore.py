"""Ignore files in gitignore's syntax, for any folder, with or without git. `pathspec` parses the patterns."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""The POSIX character classes, which pathspec does not support."""


class IgnoreFile:
    """The rules of one ignore file; paths are relative to its folder."""

    def __init__(self, text: str) -> None:
        self._rules = [rule for line in text.splitlines() if (rule := _rule(line)) is not None]

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Whether the path itself is ignored; None when no rule matches."""
        name = f"{path}/" if folder else path
        for regex, ignores in reversed(self._rules):
            # A pattern's only group is the slash after the folder that it matches, which may be a
            # parent of the path.
            for match in regex.finditer(name):
                if match.lastindex is None or match.end(1) == len(name):
                    return ignores
        return None


def _rule(line: str) -> tuple[re.Pattern[str], bool] | None:
    """A line's expression, and whether it ignores; None if it matches nothing, as in git."""
    # The import is slow, and most projects have no such file.
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    line = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], ""), line)
    # git treats more stars as two, and a/** as everything in a without a itself; pathspec does not.
    line = re.sub(r"(?<=/)\*\*(/? *)$", r"**/*\1", re.sub(r"\*{3,}", "**", line))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a bracket inside brackets
            pattern = GitIgnoreSpecPattern(line)
    except (GitIgnorePatternError, re.error):
        return None
    if pattern.include is None or pattern.regex is None:
        return None
    return pattern.regex, pattern.include


class IgnoreTree:
    """All ignore files of a tree, by folder; the nearest one with a matching rule decides, as in git."""

    def __init__(self) -> None:
        self._files: dict[str, list[IgnoreFile]] = {}
        self._folders: dict[str, bool] = {}

    def add(self, folder: str, text: str) -> None:
        """Add the file of a folder (relative to the root, empty for the root itself)."""
        self._files.setdefault(folder, []).append(IgnoreFile(text))
        self._folders = {}

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Whether a path, or a folder above it, is ignored: rules cannot re-include files of an ignored folder."""
        slash = path.find("/")
        while slash >= 0:
            parent = path[:slash]
            if parent not in self._folders:
                self._folders[parent] = self._decide(parent, folder=True)
            if self._folders[parent]:
                return True
            slash = path.find("/", slash + 1)
        return self._decide(path, folder=folder)

    def _decide(self, path: str, *, folder: bool) -> bool:
        base = path.rpartition("/")[0]
        while True:
            inner = path[len(base) + 1 :] if base else path
            for file in reversed(self._files.get(base, [])):
                decision = file.decide(inner, folder=folder)
                if decision is not None:
                    return decision
            if not base:
                return False
            base = base.rpartition("/")[0]


def build_tree(files: Iterable[tuple[str, str]]) -> IgnoreTree:
    """Build an `IgnoreTree` from files, each with its folder and its text."""
    tree = IgnoreTree()
    for folder, text in files:
        tree.add(folder, text)
    return tree

"""Tasks for Code Editor (VS Code's ``.vscode/tasks.json``): what is open in the editor is sent to a cluster by a key press.

The file's form is VS Code's, version 2.0.0. It may have comments, which JSON has not: into such a file tasks are put, but none is taken out.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import ConflictError, InvalidInputError

# --------------------------------------------------------------------------------------------------
# JSON with comments and commas at the end, as editors have it: read, and put into without touching the rest.

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])")
_MARK = re.compile(rf"{_STRING}|[\[\]{{}}]")


def loads(text: str) -> Any:
    """What the text says.

    Raises:
        json.JSONDecodeError: It is no JSON even without its comments.
    """
    return json.loads(_plain(text))


def append(text: str, key: str, values: Sequence[Any], indent: int | str) -> str:
    """Put values at the end of the list that the outermost object has under a key; all else stays as it is, letter by letter.

    Args:
        text: An object, with a list under the key.
        key: The key.
        values: What comes into the list; at least one.
        indent: How the file is indented.
    """
    plain = _plain(text)
    start = _place(plain, key)
    end = json.JSONDecoder().raw_decode(plain, start)[1] - 1
    bare = _without(_COMMENT, text)[:end].rstrip()
    told = text[:end].rstrip()
    comma = "" if bare[-1] == "," or len(bare) == start + 1 else ","
    step = " " * indent if isinstance(indent, int) else indent
    added = ",\n".join(json.dumps(one, indent=indent, ensure_ascii=False) for one in values)
    lines = "".join(f"\n{2 * step}{line}" for line in added.split("\n"))
    return f"{told[: len(bare)]}{comma}{told[len(bare) :]}{lines}\n{step}{text[end:]}"


def _plain(text: str) -> str:
    """The text as plain JSON, in which all stands where it stood."""
    return _without(_LAST_COMMA, _without(_COMMENT, text))


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text with blanks for what is found outside of strings."""
    return pattern.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def _place(plain: str, key: str) -> int:
    """Where the list under a key of the outermost object begins; the last one, as JSON has it."""
    depth, place = 0, -1
    for found in _MARK.finditer(plain):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
        elif depth == 1 and json.loads(found[0]) == key:
            behind = re.compile(r"\s*:\s*\[").match(plain, found.end())
            place = behind.end() - 1 if behind else place
    return place


PLACE = Path(".vscode", "tasks.json")
"""Where the file lies in a project."""

_VERSION = "2.0.0"
_TASKS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("HyperPod: run this file", ("submit", "${file}", "--follow"), True),
    ("HyperPod: show what would run", ("submit", "${file}", "--dry-run"), True),
    ("HyperPod: follow the last run", ("logs", "--follow", "last"), False),
    ("HyperPod: why does the last run wait?", ("why", "last"), False),
    ("HyperPod: cancel the last run", ("cancel", "last"), False),
)
"""Label, words for ``hpj``, and whether it takes a cluster."""
_AT_ONCE = 99
"""How often a task may run at once. By itself the editor allows one: while the log of a run is followed, no other file could be sent."""


@dataclass(frozen=True)
class Written:
    """What became of the file.

    Attributes:
        path: The file.
        added: Labels of the tasks that were put in.
        replaced: Labels of those that took the place of others of that label.
        kept: Labels of tasks that were there already, and stay as they are.
    """

    path: Path
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def tasks(cluster: str | None = None) -> list[dict[str, Any]]:
    """The tasks. They start ``hpj`` itself and no shell, so a file may be called as it likes.

    Args:
        cluster: The cluster that files are sent to; None: the configured one.
    """
    where = () if cluster is None else ("--cluster", cluster)
    return [
        {
            "label": label,
            "type": "process",
            "command": "hpj",
            "args": [*words, *(where if sends else ())],
            "problemMatcher": [],
            "presentation": {"panel": "dedicated" if sends else "shared", "clear": False},
            "runOptions": {"instanceLimit": _AT_ONCE},
        }
        for label, words, sends in _TASKS
    ]


def tasks_text(cluster: str | None = None) -> str:
    """The whole file with only these tasks."""
    return _text({"version": _VERSION, "tasks": tasks(cluster)}, 2)


def write_tasks(project: Path, cluster: str | None = None, *, replace: bool = False) -> Written:
    """Put the tasks into a project's file, beside those that are there.

    Args:
        project: The project's folder.
        cluster: See `tasks`.
        replace: Whether tasks of the same labels make way.

    Raises:
        ConflictError: What is there is no list of tasks, or has comments and a task to be replaced, so that there would be loss. `detail.text` is what to
            paste.
        InvalidInputError: It cannot be read or written.
    """
    path = project / PLACE
    try:
        if not project.is_dir():
            raise InvalidInputError(f"{project} is not a folder", detail={"field": "folder"})
        before = _read(path)
        if before is None:
            path.parent.mkdir(exist_ok=True)
            _write(path, tasks_text(cluster))
            return Written(path, added=tuple(one["label"] for one in tasks(cluster)))
        found = _parsed(path, before, cluster)
        told = _merge(path, found["tasks"], tasks(cluster), replace=replace)
        if told.added or told.replaced:
            _write(path, _merged(before, found, told, cluster))
    except OSError as error:
        raise InvalidInputError(
            f"{error.filename or path} cannot be read or written: {error.strerror}",
            hint="to print the tasks: hpj init code-editor --print",
            detail={"field": "folder"},
        ) from error
    return told


def _merge(
    path: Path, there: list[Any], ours: Sequence[dict[str, Any]], *, replace: bool
) -> Written:
    """Put our tasks into the list that is there."""
    labels = [one.get("label") if isinstance(one, dict) else None for one in there]
    added, replaced, kept = [], [], []
    for task in ours:
        label = str(task["label"])
        if label not in labels:
            there.append(task)
            added.append(label)
        elif replace and there[labels.index(label)] != task:
            there[labels.index(label)] = task
            replaced.append(label)
        else:
            kept.append(label)
    return Written(path, tuple(added), tuple(replaced), tuple(kept))


def _merged(before: str, found: dict[str, Any], told: Written, cluster: str | None) -> str:
    """The file's new text."""
    if not before.strip() or _has_no_comments(before):
        return _text(found, _indent(before))
    if told.replaced or not {"tasks", "version"} <= loads(before).keys():
        raise _conflict(told.path, "its comments would be lost", cluster)
    return append(before, "tasks", found["tasks"][-len(told.added) :], _indent(before))


def _has_no_comments(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def _read(path: Path) -> str | None:
    if path.is_symlink():
        raise InvalidInputError(
            f"{path} is a link, whose target is not changed",
            hint="to print the tasks: hpj init code-editor --print",
            detail={"field": "folder"},
        )
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _parsed(path: Path, text: str, cluster: str | None) -> dict[str, Any]:
    if not text.strip():
        return {"version": _VERSION, "tasks": []}
    try:
        found = loads(text)
    except json.JSONDecodeError as error:
        why = f"line {error.lineno}: {error.msg}"
        raise _conflict(path, why, cluster) from error
    if not isinstance(found, dict):
        raise _conflict(path, "it is not an object", cluster)
    if found.get("version", _VERSION) != _VERSION:
        raise _conflict(path, f"it is of version {found['version']}, not {_VERSION}", cluster)
    if not isinstance(found.setdefault("tasks", []), list):
        raise _conflict(path, "its tasks are not a list", cluster)
    found.setdefault("version", _VERSION)
    return found


def _conflict(path: Path, why: str, cluster: str | None) -> ConflictError:
    return ConflictError(
        f"{path} was not changed ({why})",
        code="tasks_cannot_be_merged",
        hint="paste the tasks into its list; print them with: hpj init code-editor --print",
        detail={"text": tasks_text(cluster)},
    )


def _text(document: dict[str, Any], indent: int | str) -> str:
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


def _indent(text: str) -> int | str:
    """How the file is indented: by its first line that is."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found.group(1) if found else 2


def _write(path: Path, text: str) -> None:
    """Write it whole or not at all."""
    new = path.with_name(f".tasks-{secrets.token_hex(6)}.json")
    try:
        new.write_bytes(text.encode("utf-8", "surrogateescape"))
        if path.exists():
            new.chmod(path.stat().st_mode & 0o777)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)

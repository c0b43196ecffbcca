"""Tasks for Code Editor (VS Code's ``.vscode/tasks.json``): a shortcut submits the open file to a cluster.

The file's format is VS Code's, version 2.0.0. It may have comments, which JSON lacks: tasks are added to such a file, but none is removed.
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
# JSON with comments and trailing commas, as editors write it: parse it, and add to it without
# changing the rest.

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])")
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]")


def loads(text: str) -> Any:
    """Parse the text.

    Raises:
        json.JSONDecodeError: It is invalid even without its comments.
    """
    return json.loads(_to_plain_json(text))


def append(text: str, key: str, values: Sequence[Any], indent: int | str) -> str:
    """Append values to the list under a key of the outermost object; the rest of the text is unchanged.

    Args:
        text: An object, with a list under the key.
        key: The key.
        values: The values; at least one.
        indent: The file's indentation.
    """
    plain = _to_plain_json(text)
    start = _list_start(plain, key)
    end = json.JSONDecoder().raw_decode(plain, start)[1] - 1
    uncommented = _blank_matches(_COMMENT, text)[:end].rstrip()
    before_bracket = text[:end].rstrip()
    comma = "" if uncommented[-1] == "," or len(uncommented) == start + 1 else ","
    indent_text = " " * indent if isinstance(indent, int) else indent
    added = ",\n".join(json.dumps(value, indent=indent, ensure_ascii=False) for value in values)
    lines = "".join(f"\n{2 * indent_text}{line}" for line in added.split("\n"))
    return f"{before_bracket[: len(uncommented)]}{comma}{before_bracket[len(uncommented) :]}{lines}\n{indent_text}{text[end:]}"


def _to_plain_json(text: str) -> str:
    """The text as plain JSON of the same length, so that positions stay valid."""
    return _blank_matches(_TRAILING_COMMA, _blank_matches(_COMMENT, text))


def _blank_matches(pattern: re.Pattern[str], text: str) -> str:
    """The text with matches outside of strings replaced by blanks."""
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)


def _list_start(plain: str, key: str) -> int:
    """The start of the list under a key of the outermost object; the last one if the key repeats, as in JSON."""
    depth, start = 0, -1
    for match in _TOKEN.finditer(plain):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
        elif depth == 1 and json.loads(match[0]) == key:
            list_start = re.compile(r"\s*:\s*\[").match(plain, match.end())
            start = list_start.end() - 1 if list_start else start
    return start


TASKS_FILE = Path(".vscode", "tasks.json")
"""The file's path in a project."""

_VERSION = "2.0.0"
_TASKS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("HyperPod: run this file", ("submit", "${file}", "--follow"), True),
    ("HyperPod: show what would run", ("submit", "${file}", "--dry-run"), True),
    ("HyperPod: follow the last run", ("logs", "--follow", "last"), False),
    ("HyperPod: why does the last run wait?", ("why", "last"), False),
    ("HyperPod: cancel the last run", ("cancel", "last"), False),
)
"""Label, arguments of ``hpj``, and whether it takes a cluster."""
_MAX_FILES = 99
"""Concurrent instances of a task. The editor's default is one: while the log of a run is followed, no other file could be submitted."""


@dataclass(frozen=True)
class WriteResult:
    """The result of writing the file.

    Attributes:
        path: The file.
        added: Labels of the new tasks.
        replaced: Labels of the tasks that replaced others of the same label.
        kept: Labels of existing tasks that are unchanged.
    """

    path: Path
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def tasks(cluster: str | None = None) -> list[dict[str, Any]]:
    """The tasks. They start ``hpj`` directly without a shell, so file names need no quoting.

    Args:
        cluster: The cluster for the files; None: the configured one.
    """
    cluster_args = () if cluster is None else ("--cluster", cluster)
    return [
        {
            "label": label,
            "type": "process",
            "command": "hpj",
            "args": [*arguments, *(cluster_args if sends else ())],
            "problemMatcher": [],
            "presentation": {"panel": "dedicated" if sends else "shared", "clear": False},
            "runOptions": {"instanceLimit": _MAX_FILES},
        }
        for label, arguments, sends in _TASKS
    ]


def tasks_text(cluster: str | None = None) -> str:
    """The whole file with only these tasks."""
    return _text({"version": _VERSION, "tasks": tasks(cluster)}, 2)


def write_tasks(project: Path, cluster: str | None = None, *, replace: bool = False) -> WriteResult:
    """Add the tasks to a project's file, beside existing ones.

    Args:
        project: The project's folder.
        cluster: See `tasks`.
        replace: Whether to replace tasks of the same labels.

    Raises:
        ConflictError: The existing file is not a list of tasks, or has comments and a task to replace, so that data would be lost. `detail.text` is the
            text to paste.
        InvalidInputError: It cannot be read or written.
    """
    path = project / TASKS_FILE
    try:
        if not project.is_dir():
            raise InvalidInputError(f"{project} is not a folder", detail={"field": "folder"})
        existing_text = _read(path)
        if existing_text is None:
            path.parent.mkdir(exist_ok=True)
            _write(path, tasks_text(cluster))
            return WriteResult(path, added=tuple(task["label"] for task in tasks(cluster)))
        document = _parse(path, existing_text, cluster)
        result = _merge(path, document["tasks"], tasks(cluster), replace=replace)
        if result.added or result.replaced:
            _write(path, _merged_text(existing_text, document, result, cluster))
    except OSError as error:
        raise InvalidInputError(
            f"{error.filename or path} cannot be read or written: {error.strerror}",
            hint="to print the tasks: hpj init code-editor --print",
            detail={"field": "folder"},
        ) from error
    return result


def _merge(
    path: Path, existing: list[Any], own_tasks: Sequence[dict[str, Any]], *, replace: bool
) -> WriteResult:
    """Merge our tasks into the existing list."""
    labels = [
        existing_task.get("label") if isinstance(existing_task, dict) else None
        for existing_task in existing
    ]
    added, replaced, kept = [], [], []
    for task in own_tasks:
        label = str(task["label"])
        if label not in labels:
            existing.append(task)
            added.append(label)
        elif replace and existing[labels.index(label)] != task:
            existing[labels.index(label)] = task
            replaced.append(label)
        else:
            kept.append(label)
    return WriteResult(path, tuple(added), tuple(replaced), tuple(kept))


def _merged_text(
    existing_text: str, document: dict[str, Any], result: WriteResult, cluster: str | None
) -> str:
    """The file's new text."""
    if not existing_text.strip() or _has_no_comments(existing_text):
        return _text(document, _detect_indent(existing_text))
    if result.replaced or not {"tasks", "version"} <= loads(existing_text).keys():
        raise _conflict(result.path, "its comments would be lost", cluster)
    return append(
        existing_text,
        "tasks",
        document["tasks"][-len(result.added) :],
        _detect_indent(existing_text),
    )


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


def _parse(path: Path, text: str, cluster: str | None) -> dict[str, Any]:
    if not text.strip():
        return {"version": _VERSION, "tasks": []}
    try:
        document = loads(text)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}: {error.msg}"
        raise _conflict(path, reason, cluster) from error
    if not isinstance(document, dict):
        raise _conflict(path, "its content is not a JSON object", cluster)
    if document.get("version", _VERSION) != _VERSION:
        raise _conflict(path, f"its version is {document['version']}, not {_VERSION}", cluster)
    if not isinstance(document.setdefault("tasks", []), list):
        raise _conflict(path, "its tasks are not a list", cluster)
    document.setdefault("version", _VERSION)
    return document


def _conflict(path: Path, reason: str, cluster: str | None) -> ConflictError:
    return ConflictError(
        f"{path} was not changed: {reason}",
        code="tasks_cannot_be_merged",
        hint="add the tasks to the list `tasks` of this file; print them with: hpj init code-editor --print",
        detail={"text": tasks_text(cluster)},
    )


def _text(document: dict[str, Any], indent: int | str) -> str:
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


def _detect_indent(text: str) -> int | str:
    """The file's indentation, from its first indented line."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match.group(1) if match else 2


def _write(path: Path, text: str) -> None:
    """Write it atomically."""
    temporary = path.with_name(f".tasks-{secrets.token_hex(6)}.json")
    try:
        temporary.write_bytes(text.encode("utf-8", "surrogateescape"))
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""The kernel's knowledge of the current cell: its exact text, id and notebook, and the earlier inputs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MAGIC = "%%hyperpod"


@dataclass(frozen=True)
class KernelCell:
    """A cell that is being run as a job.

    Attributes:
        text: Its exact text, including the magic's line.
        id: Its id in the notebook, if the front end sends it.
        notebook: The notebook's file, or None when there is none.
        inputs: All inputs of this kernel; the last one is the cell itself.
        names: The user's names in the kernel.
    """

    text: str
    id: str | None
    notebook: Path | None
    inputs: tuple[str, ...]
    names: frozenset[str]


def kernel_cell(shell: InteractiveShell, line: str, body: str) -> KernelCell:
    """The current cell, from IPython's arguments to a magic."""
    parent: Any = getattr(shell, "get_parent", dict)() or {}
    sent = parent.get("content", {}).get("code")
    inputs = [str(text) for text in shell.history_manager.input_hist_raw[1:]]  # type: ignore[union-attr]
    texts = [text for text in (sent, *inputs[-1:]) if isinstance(text, str)]
    text = restore_exact_text(texts, line, body)
    if not inputs or restore_exact_text(inputs[-1:], line, body).strip() != text.strip():
        inputs.append(text)  # inputs without history, or from within another cell
    identity = parent.get("metadata", {}).get("cellId")
    return KernelCell(
        text=text,
        id=identity if isinstance(identity, str) else None,
        notebook=_notebook(shell.user_ns),
        inputs=tuple(inputs),
        names=frozenset(shell.user_ns),
    )


def restore_exact_text(sent: Iterable[str], line: str, body: str) -> str:
    """The cell as its author wrote it, so that its lines keep their numbers; reassembled when the original is unknown.

    Args:
        sent: Texts that the cell may come from.
        line: The text after the magic.
        body: The text below it.
    """
    for text in sent:
        lines = text.split("\n")
        index = next((n for n, line_text in enumerate(lines) if line_text.lstrip().startswith(MAGIC)), None)
        if index is None or any(line_text.strip() and not line_text.startswith("%%") for line_text in lines[:index]):
            continue
        if "\n".join(lines[index + 1 :]).strip() == body.strip():
            # Another magic above it, such as %%time, applies to the kernel and not to the job.
            preceding_lines = ["" if line_text.strip() else line_text for line_text in lines[:index]]
            return "\n".join([*preceding_lines, *lines[index:]])
    return f"{MAGIC} {line}".rstrip() + f"\n{body}"


def _notebook(names: dict[str, Any]) -> Path | None:
    """The notebook's file: from VS Code, from Jupyter's session, or the same name in this folder."""
    for path in _candidate_paths(names.get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME")):
        if path.suffix == ".ipynb" and path.is_file():
            return path
    return None


def _candidate_paths(*candidates: object) -> Iterator[Path]:
    for text in candidates:
        if isinstance(text, str) and text:
            path = Path(text)
            yield path
            with contextlib.suppress(FileNotFoundError):  # the folder no longer exists; the command itself reports that
                yield Path.cwd() / path.name.removeprefix("RTC:")

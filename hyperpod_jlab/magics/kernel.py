"""What a kernel knows of the cell that it runs: its exact text, its id, its notebook, what ran before."""

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
        text: Its exact text, the magic's line included.
        id: Its id in the notebook, where the front end says it.
        notebook: The notebook's file, or None when there is none.
        inputs: All that was run in this kernel, the cell itself being the last.
        names: The names that the user has in the kernel.
    """

    text: str
    id: str | None
    notebook: Path | None
    inputs: tuple[str, ...]
    names: frozenset[str]


def kernel_cell(shell: InteractiveShell, line: str, body: str) -> KernelCell:
    """The cell that is being run, given what IPython hands to a magic."""
    parent: Any = getattr(shell, "get_parent", dict)() or {}
    sent = parent.get("content", {}).get("code")
    inputs = [str(text) for text in shell.history_manager.input_hist_raw[1:]]  # type: ignore[union-attr]
    texts = [text for text in (sent, *inputs[-1:]) if isinstance(text, str)]
    text = restore_exact_text(texts, line, body)
    if not inputs or restore_exact_text(inputs[-1:], line, body).strip() != text.strip():
        inputs.append(text)  # what runs without history, or from within another cell
    identity = parent.get("metadata", {}).get("cellId")
    return KernelCell(
        text=text,
        id=identity if isinstance(identity, str) else None,
        notebook=_notebook(shell.user_ns),
        inputs=tuple(inputs),
        names=frozenset(shell.user_ns),
    )


def restore_exact_text(sent: Iterable[str], line: str, body: str) -> str:
    """The cell as its author wrote it, so that its lines keep their numbers; put together again when nobody knows it.

    Args:
        sent: Texts that the cell may come from.
        line: What stands behind the magic.
        body: What stands below it.
    """
    for text in sent:
        lines = text.split("\n")
        index = next(
            (n for n, line_text in enumerate(lines) if line_text.lstrip().startswith(MAGIC)), None
        )
        if index is None or any(
            line_text.strip() and not line_text.startswith("%%") for line_text in lines[:index]
        ):
            continue
        if "\n".join(lines[index + 1 :]).strip() == body.strip():
            # Another magic above it, such as %%time, is the kernel's business and not the job's.
            preceding_lines = [
                "" if line_text.strip() else line_text for line_text in lines[:index]
            ]
            return "\n".join([*preceding_lines, *lines[index:]])
    return f"{MAGIC} {line}".rstrip() + f"\n{body}"


def _notebook(names: dict[str, Any]) -> Path | None:
    """The notebook's file: as VS Code says it, as Jupyter's session says it, or the same name in this folder."""
    for path in _candidate_paths(
        names.get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME")
    ):
        if path.suffix == ".ipynb" and path.is_file():
            return path
    return None


def _candidate_paths(*candidates: object) -> Iterator[Path]:
    for text in candidates:
        if isinstance(text, str) and text:
            path = Path(text)
            yield path
            with contextlib.suppress(
                FileNotFoundError
            ):  # that folder is gone, as the command itself will say
                yield Path.cwd() / path.name.removeprefix("RTC:")

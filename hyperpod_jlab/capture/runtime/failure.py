"""What happens when the user's code fails: a traceback without the runner's frames, and a record of it."""

from __future__ import annotations

import builtins
import os
import sys
import time
import traceback
import types
from typing import Mapping

from . import records

MAX_MESSAGE = 8_000
MAX_TRACEBACK = 200_000

_EVENT_LOOP = os.path.join(os.path.dirname(os.__file__), "asyncio") + os.sep


class SourceLocations:
    """The files whose frames are the user's own cells, with their numbers."""

    def __init__(self, cell_numbers: Mapping[str, int] | None = None) -> None:
        self.cell_numbers = dict(cell_numbers or {})

    def innermost(self, error: BaseException) -> tuple[int | None, int | None, str | None]:
        """``(cell, line, file)`` of the last frame that lies in a cell; of the last frame of all, without a cell, when none does."""
        if isinstance(error, SyntaxError) and error.filename in self.cell_numbers:
            return self.cell_numbers[error.filename], error.lineno, error.filename
        location: tuple[int | None, int, str] | None = None
        for frame, line in traceback.walk_tb(error.__traceback__):
            file = frame.f_code.co_filename
            if file in self.cell_numbers:
                location = self.cell_numbers[file], line, file
            elif location is None or location[0] is None:
                location = None, line, file
        return location or (None, None, None)


_hidden_paths = [records.PACKAGE + os.sep, os.path.join(records.CODE, "main.py"), "<decorator-gen"]


def hide(*paths: str) -> None:
    """Leave the frames of files that begin with these paths out of tracebacks: they run the cells."""
    _hidden_paths.extend(paths)


def is_runtime_file(file: str) -> bool:
    """Whether a source file belongs to the runner."""
    return file.startswith(tuple(_hidden_paths))


def trim_traceback(error: BaseException, locations: SourceLocations) -> None:
    """Take the runner's frames out of an exception's traceback, and out of those of its causes."""
    pending: list[BaseException | None] = [error]
    seen_ids: set[int] = set()
    while pending:
        error_item = pending.pop()
        if error_item is None or id(error_item) in seen_ids:
            continue
        seen_ids.add(id(error_item))
        error_item.__traceback__ = _trimmed(error_item.__traceback__, locations)
        pending += [error_item.__cause__, error_item.__context__]
        pending += list(getattr(error_item, "exceptions", None) or ()) if _is_group(error_item) else []


def _is_group(error: BaseException) -> bool:
    group = getattr(builtins, "BaseExceptionGroup", None)  # Python 3.11 and newer
    return group is not None and isinstance(error, group)


def _trimmed(trace: types.TracebackType | None, locations: SourceLocations) -> types.TracebackType | None:
    frames = []
    while trace is not None:
        if not is_runtime_file(trace.tb_frame.f_code.co_filename):
            frames.append(trace)
        trace = trace.tb_next
    # An event loop's own frames lead to the cells, or to one that can't be compiled; they tell nobody anything.
    if all(link.tb_frame.f_code.co_filename.startswith(_EVENT_LOOP) for link in frames):
        return None
    first = next(
        (index for index, link in enumerate(frames) if link.tb_frame.f_code.co_filename in locations.cell_numbers), 0
    )
    traceback: types.TracebackType | None = None
    for link in reversed(frames[first:]):
        traceback = types.TracebackType(traceback, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return traceback


def release_frames(error: BaseException, locations: SourceLocations) -> None:
    """Make ready for an exception to end the process: record it, and have Python print it as the user's own.

    The exception then goes on through the interpreter, so that exit codes, signals, ``sys.excepthook`` of other libraries, threads
    and ``atexit`` are what they are in any Python program.
    """
    trim_traceback(error, locations)
    if _is_failure(error):
        write_record(error, locations)
    hook = sys.excepthook

    def format_traceback(kind: type[BaseException], value: BaseException, trace: types.TracebackType | None) -> None:
        if value is error:
            trim_traceback(value, locations)
            trace = value.__traceback__
        hook(kind, value, trace)

    sys.excepthook = format_traceback


def _is_failure(error: BaseException) -> bool:
    return not (isinstance(error, SystemExit) and error.code in (None, 0))


def write_record(error: BaseException, locations: SourceLocations) -> None:
    """Write ``rank-G.error.json`` of this attempt. A disk that can't take it must not hide the error itself."""
    folder = records.attempt_folder()
    if folder is None:
        return
    cell, line, file = locations.innermost(error)
    document = {
        "time": time.time(),
        "rank": records.rank(),
        "node_rank": records.number("NODE_RANK"),
        "local_rank": records.number("LOCAL_RANK"),
        "type": type_name(error),
        "message": shorten(safe_str(error), MAX_MESSAGE),
        "traceback": shorten(error_text(error), MAX_TRACEBACK),
        "cell": cell,
        "line": line if cell is not None else None,
        "file": relative(file),
    }
    try:
        name = f"rank-{records.rank()}.error.json"
        records.write_json(os.path.join(folder, name), document)
    except OSError as problem:
        print(f"hyperpod: the error record cannot be written: {problem}", file=sys.stderr)


def type_name(error: BaseException) -> str:
    """An exception's type as a traceback names it."""
    kind = type(error)
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def safe_str(error: BaseException) -> str:
    """An exception's message; exceptions whose own ``__str__`` fails exist."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - user code, and this must not hide the error it belongs to
        return f"<no message: {type(problem).__name__}>"


def error_text(error: BaseException) -> str:
    """An exception's traceback as text."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def shorten(text: str, max_length: int) -> str:
    """Keep both ends of a text that is too long. Half of a pair of surrogates, as in names of files that are no UTF-8, becomes ``?``."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= max_length:
        return text
    half = max_length // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def relative(file: str | None) -> str | None:
    """A file's path as seen from the bundle, when it lies in it."""
    if file is None:
        return None
    root = records.BUNDLE + os.sep
    return file[len(root) :] if file.startswith(root) else file

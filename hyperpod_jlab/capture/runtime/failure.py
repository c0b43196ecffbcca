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


class Places:
    """The files whose frames are the user's own cells, with their numbers."""

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        self.numbers = dict(numbers or {})

    def innermost(self, error: BaseException) -> tuple[int | None, int | None, str | None]:
        """``(cell, line, file)`` of the last frame that lies in a cell; of the last frame of all, without a cell, when none does."""
        if isinstance(error, SyntaxError) and error.filename in self.numbers:
            return self.numbers[error.filename], error.lineno, error.filename
        found: tuple[int | None, int, str] | None = None
        for frame, line in traceback.walk_tb(error.__traceback__):
            file = frame.f_code.co_filename
            if file in self.numbers:
                found = self.numbers[file], line, file
            elif found is None or found[0] is None:
                found = None, line, file
        return found or (None, None, None)


def is_ours(file: str) -> bool:
    """Whether a source file belongs to the runner."""
    return file.startswith(records.PACKAGE + os.sep) or file == os.path.join(
        records.CODE, "main.py"
    )


def trim(error: BaseException, places: Places) -> None:
    """Take the runner's frames out of an exception's traceback, and out of those of its causes."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _trimmed(one.__traceback__, places)
        pending += [one.__cause__, one.__context__]
        pending += list(getattr(one, "exceptions", None) or ()) if _is_group(one) else []


def _is_group(error: BaseException) -> bool:
    group = getattr(builtins, "BaseExceptionGroup", None)  # Python 3.11 and newer
    return group is not None and isinstance(error, group)


def _trimmed(trace: types.TracebackType | None, places: Places) -> types.TracebackType | None:
    kept = []
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    # An event loop's own frames lead to the cells, or to one that can't be compiled; they tell nobody anything.
    if all(one.tb_frame.f_code.co_filename.startswith(_EVENT_LOOP) for one in kept):
        return None
    first = next(
        (at for at, one in enumerate(kept) if one.tb_frame.f_code.co_filename in places.numbers), 0
    )
    made: types.TracebackType | None = None
    for one in reversed(kept[first:]):
        made = types.TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


def let_go(error: BaseException, places: Places) -> None:
    """Make ready for an exception to end the process: record it, and have Python print it as the user's own.

    The exception then goes on through the interpreter, so that exit codes, signals, ``sys.excepthook`` of other libraries, threads
    and ``atexit`` are what they are in any Python program.
    """
    trim(error, places)
    if _is_failure(error):
        write_record(error, places)
    hook = sys.excepthook

    def shown(
        kind: type[BaseException], value: BaseException, trace: types.TracebackType | None
    ) -> None:
        if value is error:
            trim(value, places)
            trace = value.__traceback__
        hook(kind, value, trace)

    sys.excepthook = shown


def _is_failure(error: BaseException) -> bool:
    return not (isinstance(error, SystemExit) and error.code in (None, 0))


def write_record(error: BaseException, places: Places) -> None:
    """Write ``rank-G.error.json`` of this attempt. A disk that can't take it must not hide the error itself."""
    folder = records.attempt_folder()
    if folder is None:
        return
    cell, line, file = places.innermost(error)
    document = {
        "time": time.time(),
        "rank": records.rank(),
        "node_rank": records.number("NODE_RANK"),
        "local_rank": records.number("LOCAL_RANK"),
        "type": type_name(error),
        "message": shorten(str_of(error), MAX_MESSAGE),
        "traceback": shorten(text_of(error), MAX_TRACEBACK),
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


def str_of(error: BaseException) -> str:
    """An exception's message; exceptions whose own ``__str__`` fails exist."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - user code, and this must not hide the error it belongs to
        return f"<no message: {type(problem).__name__}>"


def text_of(error: BaseException) -> str:
    """An exception's traceback as text."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def shorten(text: str, longest: int) -> str:
    """Keep both ends of a text that is too long."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def relative(file: str | None) -> str | None:
    """A file's path as seen from the bundle, when it lies in it."""
    if file is None:
        return None
    root = records.BUNDLE + os.sep
    return file[len(root) :] if file.startswith(root) else file

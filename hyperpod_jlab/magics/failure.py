"""Every error as the user of a notebook sees it: one message and a hint, without a stack trace."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hyperpod_jlab.cli.failure import RunEndedError, show_origin, translate
from hyperpod_jlab.cli.invocation import InterruptionError
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.errors import HyperpodError


class MagicError(HyperpodError):
    """An error of a magic; IPython shows it by its own words.

    Args:
        error: What went wrong.
        as_json: Whether to show it as one line of JSON.
    """

    def __init__(self, error: HyperpodError, *, as_json: bool = False) -> None:
        super().__init__(error.message, code=error.code, hint=error.hint, detail=error.detail)
        self._as_json = as_json
        self._plain = isinstance(error, (InterruptionError, RunEndedError))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        if self._as_json:
            return [json.dumps(self.to_dict(), default=str)]
        return list(self._lines())

    def _lines(self) -> Iterator[str]:
        start = "" if self._plain else "error: "
        yield f"{start}{printable(self.message)} [{self.code}]"
        for finding in self.detail.get("findings", [])[1:]:
            yield f"error: {printable(finding['message'])} [{finding['code']}]"
        if self.hint:
            yield f"hint: {printable(self.hint)}"


def magic_error(error: BaseException, *, as_json: bool) -> MagicError:
    """The error to raise for any exception of a command."""
    show_origin(error)
    return MagicError(translate(error), as_json=as_json)

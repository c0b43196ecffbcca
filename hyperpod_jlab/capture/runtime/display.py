"""What a notebook shows: values at the end of cells, ``display``, and a stand-in for ``IPython.display`` where there is no IPython."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
import types
from typing import Any

from . import records


def show(value: Any) -> None:
    """Show the value of a cell's last expression, once for the whole job: rank 0 prints it."""
    if value is not None and records.rank() == 0:
        _print(value)


def display(*values: Any, **_: Any) -> None:
    """Print values as a notebook would show them in text. Every rank that calls it prints, as with ``print``."""
    for value in values:
        _print(value)


def _print(value: Any) -> None:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a faulty repr does not end a notebook, so it does not end a job
        traceback.print_exc()
        return
    print(text)


class DisplayHandle:
    """Stands in for IPython's HTML, Image and the like."""

    def __init__(self, data: Any = None, *_: Any, **__: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object>"


def _do_nothing(*_: Any, **__: Any) -> None:
    """What has no effect outside of a notebook."""


_DISPLAY_NAMES = [
    "Audio",
    "Code",
    "FileLink",
    "FileLinks",
    "HTML",
    "IFrame",
    "Image",
    "JSON",
    "Javascript",
    "Latex",
    "Markdown",
    "Math",
    "Pretty",
    "SVG",
    "TextDisplayObject",
    "Video",
    "YouTubeVideo",
]
_IGNORED_NAMES = [
    "clear_output",
    "set_matplotlib_close",
    "set_matplotlib_formats",
    "update_display",
]


def offer_ipython() -> None:
    """Let ``from IPython.display import display`` work where IPython is not installed."""
    if "IPython" in sys.modules or importlib.util.find_spec("IPython") is not None:
        return
    parent = types.ModuleType("IPython", "A stand-in: IPython is not installed here.")
    child = types.ModuleType("IPython.display", parent.__doc__)
    names: dict[str, Any] = {"display": display}
    names.update((name, type(name, (DisplayHandle,), {})) for name in _DISPLAY_NAMES)
    names.update((name, _do_nothing) for name in _IGNORED_NAMES)
    child.__dict__.update(names)
    parent.__dict__.update(
        __path__=[],
        __version__="0",
        display=child,
        get_ipython=_do_nothing,
        version_info=(0, 0, 0),
    )
    sys.modules["IPython"] = parent
    sys.modules["IPython.display"] = child


def draw_bars_as_text() -> None:
    """Let ``tqdm.notebook`` draw its bars as text: the widgets that it makes need a notebook."""
    if importlib.util.find_spec("tqdm") is None:
        return
    tqdm = importlib.import_module("tqdm")
    bars = types.ModuleType("tqdm.notebook", "A stand-in: a job has no notebook to draw in.")
    bars.__dict__.update(
        tnrange=tqdm.trange, tqdm=tqdm.tqdm, tqdm_notebook=tqdm.tqdm, trange=tqdm.trange
    )
    sys.modules["tqdm.notebook"] = bars
    setattr(tqdm, "notebook", bars)  # noqa: B010 - to mypy a module takes no new names

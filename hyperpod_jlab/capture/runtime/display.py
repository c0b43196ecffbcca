"""What a notebook shows: values at the end of cells, ``display``, figures, and a stand-in for ``IPython.display`` where there is no IPython."""

from __future__ import annotations

import base64
import contextlib
import importlib
import importlib.util
import io
import os
import pprint
import sys
import traceback
import types
import uuid
from typing import Any

from . import records
from .imports import after_import
from .recorder import Recorder

BACKEND = f"module://{__package__}.figures"

_METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "application/pdf": "_repr_pdf_",
    "image/jpeg": "_repr_jpeg_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}
_NEEDS_KERNEL = "application/vnd.jupyter.widget-view+json"
_WIDTH = 79

recorder = Recorder()


def show(value: Any) -> None:
    """Show the value of a cell's last expression. The log has it once for the whole job, from rank 0."""
    if value is not None:
        _show(value, "execute_result", quiet=records.rank() != 0)


def display(
    *values: Any,
    include: Any = None,
    exclude: Any = None,
    metadata: Any = None,
    transient: Any = None,
    display_id: Any = None,
    raw: bool = False,
    clear: bool = False,
    **_: Any,
) -> Any:
    """Show values as a notebook does; the arguments are those of IPython. Every rank that calls it prints their text, as with ``print``."""
    del include, exclude, transient
    if clear:
        clear_output(wait=True)
    if display_id is True:
        display_id = uuid.uuid4().hex
    for value in values:
        if raw:
            publish_display_data(value, metadata, transient={"display_id": display_id})
        else:
            _show(value, "display_data", metadata=metadata, display_id=display_id)
    return DisplayHandle(display_id) if display_id is not None else None


def update_display(value: Any, *, display_id: str, **_: Any) -> None:
    """Show a value in place of the one that has this id."""
    _show(value, "update", display_id=display_id, quiet=True)


def publish_display_data(
    data: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    source: Any = None,
    *,
    transient: dict[str, Any] | None = None,
    update: bool = False,
    **_: Any,
) -> None:
    """Show a value whose forms are given by MIME type."""
    del source
    kind = "update" if update else "display_data"
    identity = (transient or {}).get("display_id")
    _publish(dict(data), dict(metadata or {}), kind, display_id=identity, quiet=update)


def clear_output(wait: bool = False) -> None:
    """Take back what the cell has shown so far; the log keeps it."""
    recorder.clear(bool(wait))


class DisplayHandle:
    """What has been displayed, and can be replaced."""

    def __init__(self, display_id: str | None = None) -> None:
        self.display_id = display_id or uuid.uuid4().hex

    def __repr__(self) -> str:
        return f"<DisplayHandle display_id={self.display_id}>"

    def display(self, value: Any, **options: Any) -> None:
        """Show a value."""
        display(value, display_id=self.display_id, **options)

    def update(self, value: Any, **options: Any) -> None:
        """Show another value in its place."""
        update_display(value, display_id=self.display_id, **options)


def _show(value: Any, kind: str, *, metadata: dict[str, Any] | None = None, **options: Any) -> None:
    try:
        bundle = _mime_bundle(value)
    except Exception:  # noqa: BLE001 - a faulty repr does not end a notebook, so it does not end a job
        traceback.print_exc()
        return
    if bundle is not None:
        _publish(bundle[0], {**bundle[1], **(metadata or {})}, kind, **options)


def _publish(data: dict[str, Any], metadata: dict[str, Any], kind: str, **options: Any) -> None:
    widget = data.pop(_NEEDS_KERNEL, None)
    if widget is not None:
        data["text/plain"] = (
            f"{data.get('text/plain', '')}\n[a widget needs a kernel, which a job does not have]"
        )
    for name, form in data.items():
        if isinstance(form, (bytes, bytearray, memoryview)):
            data[name] = base64.b64encode(form).decode("ascii")
    recorder.output(kind, data, metadata, **{name: one for name, one in options.items() if one})


def _mime_bundle(value: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """A value's forms by MIME type, and their metadata; None when it has shown itself."""
    if _is_plain(value):
        return {"text/plain": repr(value)}, {}
    if _is_figure(value):
        return {"text/plain": repr(value), "image/png": _draw(value)}, {}
    # Its import takes a moment: other ranks than 0 do without, unless the notebook has imported it.
    if "IPython.core.formatters" in sys.modules or (records.rank() == 0 and _has_ipython()):
        data, metadata = _ipython_formatter().format(value)
        return (dict(data), dict(metadata)) if data else None
    return _own_forms(value)


def _is_plain(value: Any) -> bool:
    """Whether IPython would format the value as its `repr`, so that IPython need not be imported."""
    if type(value) in (list, tuple):
        return len(value) < 20 and all(map(_is_scalar, value)) and len(repr(value)) < _WIDTH
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    if type(value) in (str, bytes):
        return len(value) < _WIDTH
    return type(value) in (bool, int, float, complex)


def _own_forms(value: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """As IPython's formatters do, for where they are not installed."""
    data: dict[str, Any] = {"text/plain": _plain(value)}
    metadata: dict[str, Any] = {}
    if isinstance(value, type):
        return data, metadata
    shows_itself = getattr(value, "_ipython_display_", None)
    if callable(shows_itself):
        # It may ask for IPython, as plotly does: then its forms follow.
        with contextlib.suppress(Exception):
            shows_itself()
            return None
    makers = {kind: getattr(value, name, None) for kind, name in _METHODS.items()}
    for kind, make in makers.items():
        form = _called(make)
        if isinstance(form, tuple):
            form, metadata[kind] = form
        if form is not None:
            data[kind] = form
    bundle = _called(getattr(value, "_repr_mimebundle_", None), include=None, exclude=None)
    if isinstance(bundle, tuple):
        bundle, more = bundle
        metadata.update(more)
    data.update(bundle or {})
    return data, metadata


def _called(method: Any, **arguments: Any) -> Any:
    if not callable(method):
        return None
    try:
        return method(**arguments)
    except NotImplementedError:
        return None
    except Exception:  # noqa: BLE001 - as IPython: this form is missing, the others are shown
        traceback.print_exc()
        return None


def _plain(value: Any) -> str:
    text = repr(value)
    if len(text) > _WIDTH and type(value) in (dict, list, tuple, set, frozenset):
        return pprint.pformat(value, width=_WIDTH, sort_dicts=False)
    return text


def _has_ipython() -> bool:
    try:
        return importlib.util.find_spec("IPython") is not None
    except ValueError:  # our stand-in has no spec
        return False


def _ipython_formatter() -> Any:
    return importlib.import_module("IPython.core.formatters").DisplayFormatter()


def _is_figure(value: Any) -> bool:
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def _draw(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.canvas.print_figure(
        buffer,
        format="png",
        dpi=figure.dpi,
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        bbox_inches="tight",
    )
    return buffer.getvalue()


def show_figures() -> None:
    """Show the figures that a cell has drawn, at its end, if they are drawn for the notebook."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    backend = sys.modules.get(f"{__package__}.figures")
    is_ours = pyplot is not None and backend is not None and pyplot.rcParams["backend"] == BACKEND
    if is_ours and pyplot is not None and pyplot.get_fignums():
        pyplot.show()


def draw_inline() -> None:
    """Let libraries draw and show for a notebook, as in a kernel, once they are imported."""
    # plotly needs both for it.
    if _has_ipython() and importlib.util.find_spec("nbformat") is not None:
        os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype+notebook")
    if "MPLBACKEND" not in os.environ:
        after_import("matplotlib", use_backend)
    after_import("pandas", _limit_columns)
    for name in ("IPython.core.display_functions", "IPython.core.display"):
        after_import(name, _take_over)


def use_backend(matplotlib: Any) -> None:
    """Let matplotlib draw for the notebook."""
    matplotlib.rcParams["backend"] = BACKEND


def _limit_columns(pandas: Any) -> None:
    """Outside of a kernel pandas takes the width of a terminal, which a job does not have."""
    if pandas.get_option("display.max_columns") == 0:
        pandas.set_option("display.max_columns", 20)


def _take_over(module: Any) -> None:
    for function in (display, update_display, publish_display_data, clear_output):
        if hasattr(module, function.__name__):
            setattr(module, function.__name__, function)


class StandIn:
    """Stands in for IPython's HTML, Image and the like."""

    kind: str | None = None

    def __init__(self, data: Any = None, url: Any = None, filename: Any = None, **_: Any) -> None:
        if filename is None and isinstance(data, str) and self.kind == "image/png":
            filename, data = data, None
        if isinstance(filename, (str, os.PathLike)):  # a number would be a descriptor
            with open(filename, "rb") as file:
                data = file.read()
        self.data = data
        self.url = url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        del include, exclude
        if self.kind is None or self.data is None:
            return {"text/plain": f"{self!r}\n[not shown: IPython is not installed on the node]"}
        data = self.data
        if self.kind == "image/png" and isinstance(data, bytes) and data[:2] == b"\xff\xd8":
            return {"image/jpeg": data}
        if self.kind.startswith("text") and isinstance(data, bytes):
            data = data.decode("utf-8", "replace")
        return {self.kind: f"$\\displaystyle {data}$" if type(self).__name__ == "Math" else data}


def _do_nothing(*_: Any, **__: Any) -> None:
    """What has no effect outside of a notebook."""


_KINDS: dict[str, str | None] = {
    "Audio": None,
    "Code": None,
    "FileLink": None,
    "FileLinks": None,
    "HTML": "text/html",
    "IFrame": None,
    "Image": "image/png",
    "JSON": "application/json",
    "Javascript": "application/javascript",
    "Latex": "text/latex",
    "Markdown": "text/markdown",
    "Math": "text/latex",
    "Pretty": "text/plain",
    "SVG": "image/svg+xml",
    "TextDisplayObject": None,
    "Video": None,
    "YouTubeVideo": None,
}
_IGNORED_NAMES = ["set_matplotlib_close", "set_matplotlib_formats"]


def offer_ipython() -> None:
    """Let ``from IPython.display import display`` work where IPython is not installed."""
    if "IPython" in sys.modules or _has_ipython():
        return
    parent = types.ModuleType("IPython", "A stand-in: IPython is not installed here.")
    child = types.ModuleType("IPython.display", parent.__doc__)
    names: dict[str, Any] = {
        name: type(name, (StandIn,), {"kind": kind}) for name, kind in _KINDS.items()
    }
    names.update((name, _do_nothing) for name in _IGNORED_NAMES)
    for function in (display, update_display, publish_display_data, clear_output):
        names[function.__name__] = function
    names["DisplayHandle"] = DisplayHandle
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

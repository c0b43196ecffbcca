"""The backend of matplotlib: figures become outputs of their cell, as with ``%matplotlib inline``. matplotlib imports it by its name."""

from __future__ import annotations

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

from .display import display

__all__ = ["FigureCanvas", "FigureManager", "show"]


def show(*_: object, **__: object) -> None:
    """Show all open figures, and close them."""
    managers = Gcf.get_all_fig_managers()
    try:
        for manager in managers:
            display(manager.canvas.figure)
    finally:
        Gcf.destroy_all()

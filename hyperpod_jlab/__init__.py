"""Write code in a notebook, run it on a SageMaker HyperPod cluster, read it back where you wrote it.

This module stays light: it is imported by every kernel, by every ``hpj`` call and by the Jupyter
server at start-up, so whatever costs time is imported inside the function that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from hyperpod_jlab.api import Run, get, runs, submit

__all__ = ["Run", "__version__", "get", "runs", "submit"]


def __getattr__(name: str) -> Any:
    """The public API and the version, imported when somebody asks for them (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("hyperpod_jlab")
    if name in __all__:
        from hyperpod_jlab import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext hyperpod_jlab``: the magics ``%%hyperpod`` and ``%hyperpod``."""
    from hyperpod_jlab import magics

    magics.load_ipython_extension(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Tell JupyterLab where the prebuilt front end lies (used by development installs)."""
    return [{"src": "labextension", "dest": "hyperpod_jlab"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Tell Jupyter Server which application to load."""
    from hyperpod_jlab.server.app import HyperPodApp

    return [{"module": "hyperpod_jlab.server.app", "app": HyperPodApp}]

"""The IPython magics: ``%%hyperpod`` runs a cell as a job, ``%hyperpod`` is ``hpj`` in the kernel.

They build on the command line: the same options, commands and messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """The hook of ``%load_ext hyperpod_jlab``."""
    from hyperpod_jlab.magics.extension import HyperpodMagics, install_completer

    shell.register_magics(HyperpodMagics)
    install_completer(shell)

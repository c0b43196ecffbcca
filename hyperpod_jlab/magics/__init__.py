"""The magics of IPython: ``%%hyperpod`` runs a cell as a job, ``%hyperpod`` is ``hpj`` in the kernel.

They stand on the command line: the same options, the same commands, the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%load_ext hyperpod_jlab`` does."""
    from hyperpod_jlab.magics.extension import HyperpodMagics, install_completer

    shell.register_magics(HyperpodMagics)
    install_completer(shell)

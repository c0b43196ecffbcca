"""The interpreters of the server's kernels."""

from __future__ import annotations

import shutil
import sys

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel


class KernelPythons:
    """Finds the Python that a notebook's kernel runs in."""

    def __init__(self, specs: KernelSpecManager) -> None:
        self._specs = specs

    def python(self, name: str) -> str | None:
        """Path of the interpreter of the kernel with this name; None if the server has no such kernel."""
        try:
            command = self._specs.get_kernel_spec(name).argv
        except NoSuchKernel:
            return None
        if not command or command[0] in {"python", f"python{sys.version_info[0]}"}:
            return sys.executable  # as jupyter_client starts it
        return shutil.which(command[0])

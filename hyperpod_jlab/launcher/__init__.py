"""The launcher: a small program of ours that starts on each node, whatever the orchestrator.

It runs under the nodes' own Python (3.8 or newer) with nothing but the standard library, so nothing here imports the rest of the package.
"""

from __future__ import annotations

from .assemble import assemble_modules, launcher_source

__all__ = ["assemble_modules", "launcher_source"]

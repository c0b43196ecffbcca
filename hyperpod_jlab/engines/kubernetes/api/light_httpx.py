"""httpx without its command line, which imports rich and pygments where these are installed: half of the time of all imports of a submit."""

from __future__ import annotations

import sys
from types import ModuleType

_COMMAND_LINE = "httpx._main"

_is_imported_here = _COMMAND_LINE not in sys.modules
if _is_imported_here:
    sys.modules[_COMMAND_LINE] = ModuleType(_COMMAND_LINE)  # httpx takes it for not installed

import httpx  # noqa: E402 - see above

if _is_imported_here:
    del sys.modules[_COMMAND_LINE]

__all__ = ["httpx"]

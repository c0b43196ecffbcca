"""httpx without its command line, which imports rich and pygments if they are installed: half of a submit's import time."""

from __future__ import annotations

import sys
from types import ModuleType

_COMMAND_LINE = "httpx._main"

_is_imported_here = _COMMAND_LINE not in sys.modules
if _is_imported_here:
    sys.modules[_COMMAND_LINE] = ModuleType(_COMMAND_LINE)  # httpx treats it as not installed

import httpx  # noqa: E402 - see above

if _is_imported_here:
    del sys.modules[_COMMAND_LINE]

__all__ = ["httpx"]

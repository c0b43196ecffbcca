"""Addresses in messages."""

from __future__ import annotations

import re

USER_INFO = re.compile(r"(?<=://)[^/\s\"'<>]*@")
"""Name and password in an address, as proxies and endpoints of an environment have them."""


def without_passwords(text: object) -> str:
    """What somebody else's library says, without names and passwords in addresses that it repeats."""
    return USER_INFO.sub("***@", str(text))

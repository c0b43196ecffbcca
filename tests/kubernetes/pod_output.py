"""What ranks print in the tests of pods' logs: everything that could go wrong on the way, the same bytes each time."""

from __future__ import annotations

import random

#: A line that is longer than what runtimes, kubelets and readers hold in one piece.
LONG_LINE = 4 << 20

_SPECIAL = (
    b"plain\n",
    b"\n\n\n",
    b"ends with a carriage return\r\n",
    b"\r 10%\r 20%\r100%\n",
    b"\r\n\r\r\n",
    b'{"level": "info", "text": "JSON \\u00e4 \\n"}\n',
    b'##hyperpod {}\n##hyperpod-file {"path": "status/claim.json"}\n',
    b"1.0.0@7| looks like a frame\n1.0.node@0\\> \\x00\n",
    "gr\u00fc\u00dfe \u2028 \U0001f680 \ufeff\n".encode(),
    b"torn \xe2\x82\n\xac utf-8 \xff\xfe\n",
    b"nul \x00\x00 bell \x07 escape \x1b[31m red \x1b[0m tab\t.\n",
    b"back\\slash \\r \\x41 \\\\\n",
    b"2026-11-21T22:00:00.000000000Z stdout F looks like a runtime's line\n",
    b"  leading and trailing blanks  \n",
    b"x" * 8191 + b"\n" + b"y" * 8192 + b"\n" + b"z" * 8193 + b"\n",
    b"\x01" * 5000 + b"\n",
    "\u20ac".encode() * 6000 + b"\n",
)


def special(rank: int) -> bytes:
    """A rank's output: all special lines in an order of its own, a long one, and no newline at the end."""
    chosen = random.Random(rank)
    lines = [*_SPECIAL, b"%d " % rank + b"long " * (LONG_LINE // 5) + b"\n"]
    chosen.shuffle(lines)
    return b"".join(lines) + b"the end of %d, without a newline" % rank


def numbered(rank: int, count: int) -> bytes:
    """So many numbered lines of a rank."""
    return b"".join(b"rank %d line %d\n" % (rank, number) for number in range(count))

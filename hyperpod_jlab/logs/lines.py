"""From bytes to lines: where pieces end, and what a piece looks like as text.

A piece is what is shown as one line: a whole line, or a part of one. A line longer than `PIECE` bytes is cut into several, a
line that is not finished yet may be shown as far as it is. All of it works on offsets in a buffer, so that whoever only
passes text on never pays for an object a line.
"""

from __future__ import annotations

PIECE = 16 * 1024
"""The most bytes of a line in one piece, its newline not counted."""


def whole(data: bytes, begin: int, end: int) -> int:
    """How far ``data[begin:end]`` can be taken in pieces that no later byte can change."""
    newline = data.rfind(b"\n", begin, end)
    at = begin if newline < 0 else newline + 1
    while end - at > PIECE:
        at = cut(data, at, at + PIECE)
    return at


def piece_ends(data: bytes, begin: int, end: int) -> list[int]:
    """The ends of the pieces in ``data[begin:end]``, newlines included; the last one is `end`."""
    ends: list[int] = []
    find, append = data.find, ends.append
    at = begin
    while at < end:
        newline = find(b"\n", at, end)
        stop = end if newline < 0 else newline
        while stop - at > PIECE:
            at = cut(data, at, at + PIECE)
            append(at)
        at = end if newline < 0 else newline + 1
        append(at)
    return ends


def cut(data: bytes, begin: int, end: int) -> int:
    """The last index up to `end` that does not tear a UTF-8 character (or `end`, when these bytes are no UTF-8)."""
    for back in range(1, min(4, end - begin + 1)):
        byte = data[end - back]
        if byte < 0x80:
            return end
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if length <= back else end - back
    return end


def texts(data: bytes, begin: int, end: int, *, collapse: bool) -> list[str]:
    """The pieces of ``data[begin:end]`` as text, without newlines; bytes that are no UTF-8 become U+FFFD.

    Args:
        data: The buffer.
        begin: First byte of the first piece.
        end: End of the last piece.
        collapse: Show of a progress bar, which goes back with a carriage return, only what it showed last.
    """
    if begin >= end:
        return []
    stop = end - 1 if data[end - 1] == 0x0A else end
    body = data[begin:stop]
    if len(body) > PIECE and max(map(len, body.split(b"\n"))) > PIECE:
        shown = []
        at = begin
        for after in piece_ends(data, begin, end):
            last = after - 1 if data[after - 1] == 0x0A else after
            shown.append(data[at:last].decode("utf-8", "replace"))
            at = after
    else:
        shown = body.decode("utf-8", "replace").split("\n")
    if collapse and b"\r" in body:
        shown = [last_state(text) if "\r" in text else text for text in shown]
    return shown


def last_state(text: str) -> str:
    """What a line that goes back with carriage returns shows in the end."""
    kept = text.rstrip("\r")
    return kept[kept.rfind("\r") + 1 :]

"""Text of others that a terminal may get: a job's lines keep their colours, and nothing else in them reaches the terminal as a command.

What a terminal does on command is more than moving its cursor: it fills the clipboard, types answers into the shell, hides what was shown.
"""

from __future__ import annotations

import re

RESET_STYLE = "\x1b[0m"
_MAX_STYLE_LENGTH = 64
_MAX_STYLES = 16
_RESETS = (RESET_STYLE, "\x1b[m")
_STYLE = re.compile(rf"\x1b\[[0-9:;]{{0,{_MAX_STYLE_LENGTH}}}m")
_HIDDEN = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COMMAND = re.compile(
    # Any escape sequence but a style: strings such as those of operating system commands, whole; control sequences; those of two characters.
    rf"\x1b(?!\[[0-9:;]{{0,{_MAX_STYLE_LENGTH}}}m)(?:"
    r"[\]PX^_][^\n\x07\x18\x1a\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]"
    # Controls in their 8-bit form, overrides of the direction of writing, and bytes that Python carries along as half characters.
    rf"|(?P<hidden>{_HIDDEN.pattern})"
)
_MAX_INCOMPLETE = 256
_INCOMPLETE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\n\x07\x18\x1a\x1b\x9c]*\x1b?)$")
_CONTROLS = bytes([*range(9), 11, 12, *range(14, 32), 127])
_WIDE = (
    re.compile(rb"\xc2[\x80-\x9f]"),
    re.compile(rb"\xe2\x80[\xaa-\xae]"),
    re.compile(rb"\xe2\x81[\xa6-\xa9]"),
)
_RETURN = re.compile(r"\r(?!\n|$)")


def printable(text: str) -> str:
    """Text on one line without control characters, so that a name or a message cannot move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def printable_lines(text: str) -> str:
    """Text like `printable` makes it, but still over as many lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def terminal_text(text: str) -> str:
    """Text of several lines as a terminal may show it: tabs, newlines and colours stay, and the colours end with the text.

    Other escape sequences and control characters are left out. What would be invisible and yet do something is shown as its escape: a
    carriage return within a line, an 8-bit control, an override of the direction of writing.
    """
    safe = keep_styles(_RETURN.sub(r"\\r", text).replace("\r", ""))
    return safe + RESET_STYLE if _is_open(safe) else safe


def terminal_json(text: str) -> str:
    """The same JSON, with those characters as escapes that a terminal would take for commands; JSON itself escapes only the old ones."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def keep_styles(text: str) -> str:
    """A text of which only styles (``ESC [ ... m``) are left of all that commands a terminal; carriage returns stay."""
    return _COMMAND.sub(_kept_part, text)


def is_plain(data: bytes) -> bool:
    """Whether bytes of a log hold nothing that `styled` would change or keep as a style. Quick: it is asked of whole logs."""
    if len(data.translate(None, _CONTROLS)) != len(data):
        return False
    return data.isascii() or not any(pattern.search(data) for pattern in _WIDE)


def keep_styles_of_lines(lines: list[str]) -> list[str]:
    """Whole lines like `styled` makes them, each of which ends its own styles."""
    safe_lines = keep_styles("\n".join(lines)).split("\n")
    return [line + RESET_STYLE if _is_open(line) else line for line in safe_lines]


def _is_open(line: str) -> bool:
    """Whether a line's last style goes on behind it."""
    start = line.rfind("\x1b")
    return start >= 0 and not line.startswith(_RESETS, start)


class TerminalLine:
    """One line that comes in pieces: a sequence that is torn between two is put together, and its styles go on.

    Each piece ends its styles, so that what stands behind it, such as another rank's line, keeps its own.
    """

    def __init__(self) -> None:
        self._styles: list[str] = []
        self._incomplete = ""

    def add(self, text: str, *, is_new: bool, last: bool) -> str:
        """A piece as a terminal may show it.

        Args:
            text: The piece.
            is_new: Whether it replaces what was shown of the line.
            last: Whether the line ends with it; if not, a sequence may go on in the next one.
        """
        text = text if is_new else self._incomplete + text
        self._incomplete = ""
        incomplete = None if last else _INCOMPLETE.search(text, max(0, len(text) - _MAX_INCOMPLETE))
        if incomplete is not None:
            text, self._incomplete = text[: incomplete.start()], incomplete.group()
        previous_styles = "".join(self._styles)
        safe = keep_styles(text)
        for style in _STYLE.findall(safe):
            self._styles = [] if style in _RESETS else [*self._styles, style]
        self._styles = self._styles[-_MAX_STYLES:]
        return previous_styles + safe + (RESET_STYLE if self._styles else "")


def _kept_part(match: re.Match[str]) -> str:
    hidden = match["hidden"]
    return _escape(hidden) if hidden else ""


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()

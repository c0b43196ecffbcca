"""Sanitizing others' text for a terminal: a job's lines keep their colours, and no other control sequence reaches the terminal.

Control sequences do more than move the cursor: they fill the clipboard, type answers into the shell, hide output.
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
    # Any escape sequence except styles: whole strings such as operating system commands; control
    # sequences; two-character sequences.
    rf"\x1b(?!\[[0-9:;]{{0,{_MAX_STYLE_LENGTH}}}m)(?:"
    r"[\]PX^_][^\n\x07\x18\x1a\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]"
    # 8-bit control characters, overrides of the text direction, and bytes that Python represents as
    # surrogates.
    rf"|(?P<hidden>{_HIDDEN.pattern})"
)
_MAX_INCOMPLETE = 256
_INCOMPLETE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\n\x07\x18\x1a\x1b\x9c]*\x1b?)$")
_CONTROLS = bytes([*range(9), 11, 12, *range(14, 32), 127])
_WIDE = (re.compile(rb"\xc2[\x80-\x9f]"), re.compile(rb"\xe2\x80[\xaa-\xae]"), re.compile(rb"\xe2\x81[\xa6-\xa9]"))
_RETURN = re.compile(r"\r(?!\n|$)")


def printable(text: str) -> str:
    """The text on one line without control characters, so that a name or message cannot move the cursor."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def printable_lines(text: str) -> str:
    """The text as `printable` returns it, but with its line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def terminal_text(text: str) -> str:
    """A text of several lines for a terminal: tabs, newlines and colours stay, and colours end with the text.

    Removes other escape sequences and control characters. Shows invisible but effective characters as their escapes: a carriage return
    within a line, an 8-bit control, an override of the text direction.
    """
    safe = keep_styles(_RETURN.sub(r"\\r", text).replace("\r", ""))
    return safe + RESET_STYLE if _is_open(safe) else safe


def terminal_json(text: str) -> str:
    """The same JSON, with terminal control characters escaped; JSON itself only escapes the ASCII ones."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def keep_styles(text: str) -> str:
    """The text with styles (``ESC [ ... m``) as its only control sequences; carriage returns stay."""
    return _COMMAND.sub(_kept_part, text)


def is_plain(data: bytes) -> bool:
    """Whether log bytes contain nothing that `keep_styles` would change, and no styles. Fast: it is called on whole logs."""
    if len(data.translate(None, _CONTROLS)) != len(data):
        return False
    return data.isascii() or not any(pattern.search(data) for pattern in _WIDE)


def keep_styles_of_lines(lines: list[str]) -> list[str]:
    """Whole lines as `keep_styles` returns them; each ends its own styles."""
    safe_lines = keep_styles("\n".join(lines)).split("\n")
    return [line + RESET_STYLE if _is_open(line) else line for line in safe_lines]


def _is_open(line: str) -> bool:
    """Whether a line's last style continues after it."""
    start = line.rfind("\x1b")
    return start >= 0 and not line.startswith(_RESETS, start)


class TerminalLine:
    """One line that arrives in pieces: joins a sequence that is split between two pieces, and continues its styles.

    Each piece ends its styles, so that other text after it, such as another rank's line, is not affected.
    """

    def __init__(self) -> None:
        self._styles: list[str] = []
        self._incomplete = ""

    def add(self, text: str, *, is_new: bool, last: bool) -> str:
        """A piece as a terminal may show it.

        Args:
            text: The piece.
            is_new: Whether it replaces the line's earlier text.
            last: Whether the line ends with it; if not, a sequence may continue in the next piece.
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

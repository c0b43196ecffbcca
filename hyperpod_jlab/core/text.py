"""Text of others that a terminal may get: a job's lines keep their colours, and nothing else in them reaches the terminal as a command.

What a terminal does on command is more than moving its cursor: it fills the clipboard, types answers into the shell, hides what was shown.
"""

from __future__ import annotations

import re

END_OF_STYLE = "\x1b[0m"
_LONGEST_STYLE = 64
_MOST_STYLES = 16
_RESETS = (END_OF_STYLE, "\x1b[m")
_STYLE = re.compile(rf"\x1b\[[0-9:;]{{0,{_LONGEST_STYLE}}}m")
_HIDDEN = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COMMAND = re.compile(
    # Any escape sequence but a style: strings such as those of operating system commands, whole; control sequences; those of two characters.
    rf"\x1b(?!\[[0-9:;]{{0,{_LONGEST_STYLE}}}m)(?:"
    r"[\]PX^_][^\n\x07\x18\x1a\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]"
    # Controls in their 8-bit form, overrides of the direction of writing, and bytes that Python carries along as half characters.
    rf"|(?P<hidden>{_HIDDEN.pattern})"
)
_LONGEST_TORN = 256
_TORN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\n\x07\x18\x1a\x1b\x9c]*\x1b?)$")
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
        character if character.isprintable() else _escaped(character) for character in text
    )


def printable_lines(text: str) -> str:
    """Text like `printable` makes it, but still over as many lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def terminal_text(text: str) -> str:
    """Text of several lines as a terminal may show it: tabs, newlines and colours stay, and the colours end with the text.

    Other escape sequences and control characters are left out. What would be invisible and yet do something is shown as its escape: a
    carriage return within a line, an 8-bit control, an override of the direction of writing.
    """
    shown = styled(_RETURN.sub(r"\\r", text).replace("\r", ""))
    return shown + END_OF_STYLE if _is_open(shown) else shown


def terminal_json(text: str) -> str:
    """The same JSON, with those characters as escapes that a terminal would take for commands; JSON itself escapes only the old ones."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def styled(text: str) -> str:
    """A text of which only styles (``ESC [ ... m``) are left of all that commands a terminal; carriage returns stay."""
    return _COMMAND.sub(_left, text)


def is_plain(data: bytes) -> bool:
    """Whether bytes of a log hold nothing that `styled` would change or keep as a style. Quick: it is asked of whole logs."""
    if len(data.translate(None, _CONTROLS)) != len(data):
        return False
    return data.isascii() or not any(pattern.search(data) for pattern in _WIDE)


def styled_lines(lines: list[str]) -> list[str]:
    """Whole lines like `styled` makes them, each of which ends its own styles."""
    shown = styled("\n".join(lines)).split("\n")
    return [line + END_OF_STYLE if _is_open(line) else line for line in shown]


def _is_open(line: str) -> bool:
    """Whether a line's last style goes on behind it."""
    at = line.rfind("\x1b")
    return at >= 0 and not line.startswith(_RESETS, at)


class Line:
    """One line that comes in pieces: a sequence that is torn between two is put together, and its styles go on.

    Each piece ends its styles, so that what stands behind it, such as another rank's line, keeps its own.
    """

    def __init__(self) -> None:
        self._styles: list[str] = []
        self._torn = ""

    def piece(self, text: str, *, anew: bool, last: bool) -> str:
        """A piece as a terminal may show it.

        Args:
            text: The piece.
            anew: Whether it replaces what was shown of the line.
            last: Whether the line ends with it; if not, a sequence may go on in the next one.
        """
        text = text if anew else self._torn + text
        self._torn = ""
        torn = None if last else _TORN.search(text, max(0, len(text) - _LONGEST_TORN))
        if torn is not None:
            text, self._torn = text[: torn.start()], torn.group()
        before = "".join(self._styles)
        shown = styled(text)
        for style in _STYLE.findall(shown):
            self._styles = [] if style in _RESETS else [*self._styles, style]
        self._styles = self._styles[-_MOST_STYLES:]
        return before + shown + (END_OF_STYLE if self._styles else "")


def _left(match: re.Match[str]) -> str:
    hidden = match["hidden"]
    return _escaped(hidden) if hidden else ""


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()

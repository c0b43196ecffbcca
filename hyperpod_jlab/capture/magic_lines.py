"""Cells as IPython compiles them, and those of their magics that matter before a submit."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from hyperpod_jlab.capture.runtime.cell_text import pip_arguments, strip_leading
from hyperpod_jlab.capture.secrets import looks_secret
from hyperpod_jlab.launcher.parsing import parse_with_retry

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_MAGIC = re.compile(r"^[ \t]*[%!]|=[ \t]*[%!]|\?[ \t]*$", re.MULTILINE)
_MAX_READ = 5_000_000
_MAX_LINE = 4_000
_AUTOMAGIC = re.compile(r"(?:cat|cd|conda|cp|env|ls|mkdir|mv|pip|rm|run|time|timeit|uv)[ \t][^\r\n]*\s*")
"""A cell of one line that is no Python needs no percent sign."""
_VARIABLE = re.compile(r"([^\s=]+)\s*(?:=|\s)\s*(.*)", re.DOTALL)


@dataclass(frozen=True)
class CellFacts:
    """What a cell needs, as far as it is known before the submit.

    Attributes:
        problem: The line and the message of a syntax error in this Python, or None.
        pip_lines: Arguments of pip in ``%pip`` and ``!pip`` lines.
        secrets: Line and name of variables that ``%env`` sets to a likely secret.
    """

    problem: tuple[int, str] | None = None
    pip_lines: tuple[str, ...] = ()
    secrets: tuple[tuple[int, str], ...] = ()


def to_python(text: str) -> tuple[str, int]:
    """A cell as the Python that IPython makes of it, and the number of lines before that Python. Plain Python needs no IPython."""
    stripped, lines_before = strip_leading(text)
    if _parse(stripped)[0] is None and not _takes_long(stripped):
        from IPython.core.inputtransformer2 import TransformerManager

        sign = "%" if _AUTOMAGIC.fullmatch(stripped) else ""
        try:
            manager = TransformerManager()  # type: ignore[no-untyped-call]
            return manager.transform_cell(sign + stripped), lines_before
        except (SyntaxError, RuntimeError):
            pass  # compiling it says what is wrong
    return stripped, lines_before


def _takes_long(text: str) -> bool:
    """Whether a hostile text would keep IPython busy: it reads a cell once for each magic, and a line before ``?`` by its square."""
    if len(text) * len(_MAGIC.findall(text)) > _MAX_READ:
        return True
    return any(len(line) > _MAX_LINE and line.endswith("?") for line in text.split("\n"))


def inspect_cell(text: str) -> CellFacts:
    """Inspect a cell without running it."""
    python, lines_before = to_python(text)
    tree, problem = _parse("\n" * lines_before + python)
    if tree is None:
        return CellFacts(problem)
    pip_lines: list[str] = []
    secrets: list[tuple[int, str]] = []
    for magic in ast.walk(tree):
        match magic:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=method), args=[*arguments]
            ):
                texts = [one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                command = "pip " + texts[-1] if texts[:1] == ["pip"] else texts[0] if texts else ""
                pip = pip_arguments(command)
                if method in {"system", "run_line_magic"} and pip is not None:
                    pip_lines.append(pip)
                if texts[:1] in (["env"], ["set_env"]):
                    variable = _VARIABLE.fullmatch(texts[-1])
                    if variable is not None and looks_secret(variable[1], variable[2]):
                        secrets.append((magic.lineno, variable[1]))
    return CellFacts(None, tuple(pip_lines), tuple(secrets))


def _parse(text: str) -> tuple[ast.Module | None, tuple[int, str] | None]:
    """The syntax tree, or the line and the message of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            flags = _FLAGS | ast.PyCF_ONLY_AST
            tree = parse_with_retry(lambda: compile(text, "<cell>", "exec", flags, dont_inherit=True))
            compile(text, "<cell>", "exec", _FLAGS, dont_inherit=True)
        except SyntaxError as error:
            return None, (error.lineno or 1, error.msg)
        except (ValueError, RecursionError, MemoryError) as error:
            return None, (1, str(error) or "it is nested too deeply")
    return tree, None

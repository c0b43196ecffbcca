"""What a cell's Python asks of the runner, read from its text without running it."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from hyperpod_jlab.launcher.parsing import steadily

_LOOP_NAMES = {"create_task", "ensure_future", "get_running_loop", "nest_asyncio"}
_AWAIT = re.compile(r"^\s*(?:[^#\n]*[\s=(])?await\s|^\s*async\s+(?:for|with)\b", re.MULTILINE)


@dataclass(frozen=True)
class Facts:
    """What one cell asks of the runner.

    Attributes:
        problem: Why this Python does not compile it, with its line, or None.
        needs_loop: Whether it needs a running event loop, as there is one in a notebook.
        imports_ipython: Whether it imports ``IPython`` or ``IPython.display``.
        draws_bars: Whether it uses ``tqdm.notebook``.
        uses_get_ipython: Line where it calls ``get_ipython()`` without catching that there is none, or None.
    """

    problem: tuple[int, str] | None = None
    needs_loop: bool = False
    imports_ipython: bool = False
    uses_get_ipython: int | None = None
    draws_bars: bool = False


def inspect_cell(text: str) -> Facts:
    """Read a cell's Python, after its magics were replaced."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            only_tree = flags | ast.PyCF_ONLY_AST
            tree = steadily(lambda: compile(text, "<cell>", "exec", only_tree, dont_inherit=True))
            code = compile(text, "<cell>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            return Facts((error.lineno or 1, error.msg), needs_loop=bool(_AWAIT.search(text)))
        except (ValueError, RecursionError, MemoryError) as error:
            return Facts((1, str(error)))
    awaits = bool(code.co_flags & inspect.CO_COROUTINE)
    return Facts(
        needs_loop=awaits or _wants_loop(tree),
        imports_ipython=any(_is_ipython(node) for node in ast.walk(tree)),
        draws_bars=any(_is_notebook_bar(node) for node in ast.walk(tree)),
        uses_get_ipython=next(_bare_get_ipython(tree), None),
    )


def _wants_loop(tree: ast.AST) -> bool:
    """Whether code that runs outside of any coroutine names something that needs a running loop."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.AsyncFunctionDef):
            continue
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        if name in _LOOP_NAMES:
            return True
        pending.extend(ast.iter_child_nodes(node))
    return False


def _is_ipython(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name in {"IPython", "IPython.display"} for alias in node.names)
    return isinstance(node, ast.ImportFrom) and node.module in {"IPython", "IPython.display"}


def _is_notebook_bar(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name == "tqdm.notebook" for alias in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    names = {alias.name for alias in node.names}
    return node.module == "tqdm.notebook" or (
        node.module == "tqdm" and bool(names & {"notebook", "tnrange", "tqdm_notebook"})
    )


def _bare_get_ipython(tree: ast.AST) -> Iterator[int]:
    """Lines of calls that no ``try`` guards: a notebook tells by it whether it runs in IPython."""
    if isinstance(tree, ast.Try | ast.TryStar):
        return
    if (
        isinstance(tree, ast.Call)
        and isinstance(tree.func, ast.Name)
        and tree.func.id == "get_ipython"
    ):
        yield tree.lineno
    for node in ast.iter_child_nodes(tree):
        yield from _bare_get_ipython(node)

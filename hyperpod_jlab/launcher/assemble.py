"""Assembling the launcher, and other programs that travel: their parts, in order, as one readable file that needs nothing beside it.

The parts are modules here, so that each has one idea and can be checked by itself; a bundle holds the one file made of them. Their imports of
each other fall away (names are unique over all parts), and those of the standard library come first.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from pathlib import Path

from .parsing import parse_with_retry

PARTS = (
    "contract",
    "errors",
    "heartbeat",
    "system",
    "bundle_files",
    "mlflow_variables",
    "plan",
    "claims",
    "rendezvous",
    "environment",
    "logs",
    "streams",
    "tracebacks",
    "processes",
    "open_files",
    "resources",
    "metric_lines",
    "alarms",
    "other_nodes",
    "webhook",
    "metrics",
    "agent",
    "ranks",
    "environments",
    "preparation",
    "node",
    "commands",
)
"""The parts, each standing only on those before it."""

_BANNER = "# " + "-" * 78

_IMPORT = re.compile(r"^(?:import .*|from \S+ import (?:\([^)]*\)|.*))$", re.MULTILINE)


@functools.lru_cache(maxsize=1)
def launcher_source() -> bytes:
    """The launcher's bytes, to be put into a bundle as ``launcher.py``."""
    return assemble_modules(Path(__file__).parent, PARTS)


def assemble_modules(folder: Path, parts: Sequence[str]) -> bytes:
    """One program of several modules of a folder, which import each other relatively, have no name twice, and need only the standard library.

    Args:
        folder: Where they lie.
        parts: Their names, each standing only on those before it.
    """
    imports: set[str] = set()
    bodies = []
    docs = ""
    for name in parts:
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        tree = _head(text)
        doc, own_imports, body = _split_module(text, tree)
        imports |= own_imports
        docs = docs or doc
        title = ast.get_docstring(tree) or name
        banner = f"{_BANNER}\n# {title.splitlines()[0]}\n{_BANNER}"
        bodies.append(body if name == parts[0] else f"{banner}\n\n{body}")
    head = f"#!/usr/bin/env python3\n{docs}\n\nfrom __future__ import annotations\n"
    import_lines = "\n".join(sorted(imports))
    return (f"{head}\n{import_lines}\n\n" + "\n\n".join(bodies)).encode()


def _split_module(text: str, tree: ast.Module) -> tuple[str, set[str], str]:
    """From a part and the tree of its head: its docstring, its imports of the standard library (one name a line), and all the rest."""
    lines = text.splitlines()
    imports: set[str] = set()
    removed_lines: set[int] = set()
    for index, node in enumerate(tree.body):
        is_doc = index == 0 and isinstance(node, ast.Expr)
        if isinstance(node, ast.Import):
            imports |= {f"import {alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module != "__future__":
                imports |= {f"from {node.module} import {alias.name}" for alias in node.names}
        elif not is_doc:
            continue
        removed_lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    first = tree.body[0]
    doc = "\n".join(lines[first.lineno - 1 : first.end_lineno])
    remainder = "\n".join(line for number, line in enumerate(lines, 1) if number not in removed_lines)
    return doc, imports, remainder.strip("\n") + "\n"


def _head(text: str) -> ast.Module:
    """A part up to its last import, as a tree: to parse all of every part would take a fifth of the time of a submit."""
    end = max((match.end() for match in _IMPORT.finditer(text)), default=len(text))
    try:
        return parse_with_retry(lambda: ast.parse(text[:end]))
    except SyntaxError:  # a text that only looks like an import
        return parse_with_retry(lambda: ast.parse(text))

"""A name of our own stands in a docstring in single backticks: it must exist. Names of others stand in double ones."""

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "hyperpod_jlab"
QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for file in PACKAGE.rglob("*.py"):
        if "labextension" not in file.parts:
            yield file.relative_to(PACKAGE.parent), ast.parse(file.read_text())


def names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=alias):
                yield from name.split(".")
                yield alias or name


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Also the texts below constants and attributes."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                yield line, text


def test_names_in_docstrings_exist():
    known = {*dir(builtins)}
    texts = []
    for file, module in modules():
        known |= {file.stem, *file.parts, *names(module)}
        texts += [(f"{file}:{line}", text) for line, text in docstrings(module)]
    assert len(texts) > 3000
    unknown = [
        f"{place}: {match[1]}"
        for place, text in texts
        for match in QUOTED.finditer(text)
        if not known.issuperset(match[1].split("."))
    ]
    assert unknown == []

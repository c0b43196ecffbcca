"""Check the house rules that no linter has: short files, short functions, modules named after what they do."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
FOLDERS = (
    "hyperpod_jlab",
    "src",
    "style",
    "scripts",
    "tests",
    "ui-tests",
    "testbed",
    "benchmarks",
    "examples",
    "cloudformation",
    "lifecycle-configs",
)
BUILT = {"node_modules", "labextension", "__pycache__"}
CODE_SUFFIXES = {".py", ".ts", ".tsx", ".sh", ".css"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "misc", "common"}


def source_files() -> Iterator[Path]:
    """Every source file of ours that is there, without what was built or installed."""
    for folder in map(Path, FOLDERS):
        for path in sorted(folder.rglob("*")):
            if path.suffix in CODE_SUFFIXES and BUILT.isdisjoint(path.parts) and path.is_file():
                yield path


def long_functions(path: Path, text: str) -> Iterator[str]:
    """Functions of 50 lines and more, their docstring not counted."""
    for node in ast.walk(ast.parse(text, str(path))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.end_lineno is None:
            continue
        lines = node.end_lineno - node.lineno + 1
        first = node.body[0]
        if ast.get_docstring(node) is not None and first.end_lineno is not None:
            lines -= first.end_lineno - first.lineno + 1
        if lines >= MAX_FUNCTION_LINES:
            yield f"{path}:{node.lineno}: {node.name}() has {lines} lines, {MAX_FUNCTION_LINES} is too many"


def problems_of(path: Path) -> Iterator[str]:
    """What a file does wrong."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{path}: {lines} lines, more than {MAX_FILE_LINES}"
    if path.stem.lower() in NAMES_THAT_SAY_NOTHING:
        yield f"{path}: the name says nothing; split it by feature"
    if path.suffix == ".py":
        yield from long_functions(path, text)


def main() -> int:
    problems = [problem for path in source_files() for problem in problems_of(path)]
    print("\n".join(problems) if problems else "All files keep the house rules.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

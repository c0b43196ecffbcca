"""Check the house rules that no linter has: short files, short functions, modules named after what they do."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
CODE_SUFFIXES = {".py", ".ts", ".tsx", ".sh", ".css"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "misc", "common"}


def tracked_files() -> list[Path]:
    """What git has or would take: nothing that is ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [path for name in names if name and (path := Path(name)).is_file()]


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
    if path.suffix not in CODE_SUFFIXES:
        return
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{path}: {lines} lines, more than {MAX_FILE_LINES}"
    if path.stem.lower() in NAMES_THAT_SAY_NOTHING:
        yield f"{path}: the name says nothing; split it by feature"
    if path.suffix == ".py":
        yield from long_functions(path, text)


def main() -> int:
    problems = [problem for path in tracked_files() for problem in problems_of(path)]
    print("\n".join(problems) if problems else "All files keep the house rules.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

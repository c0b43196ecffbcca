"""Check the house rule that no linter has: modules are named after what they do."""

import sys
from pathlib import Path

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


def main() -> int:
    problems = [
        f"{path}: the name says nothing; name it after what it does"
        for folder in map(Path, FOLDERS)
        for path in sorted(folder.rglob("*"))
        if path.suffix in CODE_SUFFIXES and BUILT.isdisjoint(path.parts) and path.stem.lower() in NAMES_THAT_SAY_NOTHING
    ]
    print("\n".join(problems) if problems else "All files keep the house rules.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

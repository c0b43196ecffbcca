"""Print the package's requirements and those of the extras named, one a line (for uv and pip alike)."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for name in sys.argv[1:] for line in extras[name])]:
        print(line)


if __name__ == "__main__":
    main()

"""Check that a wheel holds what it should, and nothing of the workshop."""

import sys
import zipfile
from pathlib import Path

DATA = ".data/data/"
WANTED = (
    "hyperpod_jlab/__init__.py",
    "hyperpod_jlab/py.typed",
    f"{DATA}etc/jupyter/jupyter_server_config.d/hyperpod_jlab.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/install.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/package.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/schemas/hyperpod_jlab/plugin.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/static/style.js",
    "licenses/LICENSE",
)
CACHES = {"__pycache__", ".ruff_cache", ".mypy_cache"}
UNWANTED = ("tests/", "testbed/", "node_modules/", "benchmarks/", ".map", ".pyc", ".ts", ".stamp")


def problems_of(names: list[str]) -> list[str]:
    """What is missing from a wheel's list of files, and what is too much."""
    missing = [f"missing: {end}" for end in WANTED if not any(n.endswith(end) for n in names)]
    extra = [f"unwanted: {n}" for n in names for bit in UNWANTED if bit in n]
    # Everything beside the modules that git has in the package has to come along, templates and the like.
    package = Path("hyperpod_jlab")
    data = [
        path
        for path in package.rglob("*")
        if path.is_file()
        and path.relative_to(package).parts[0] != "labextension"
        and CACHES.isdisjoint(path.parts)
    ]
    left_out = [f"left out: {path}" for path in data if path.as_posix() not in names]
    return missing + extra + left_out


def main() -> int:
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    problems = problems_of(names)
    if problems:
        print("\n".join(problems))
        return 1
    print(f"    {wheel.name}: {len(names)} files, {wheel.stat().st_size / 1024:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

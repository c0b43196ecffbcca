"""Check that a wheel holds what it should, nothing of the workshop, and that its front end stays small."""

import gzip
import sys
import zipfile
from pathlib import Path

DATA = ".data/data/"
WANTED = (
    "hyperpod_jlab/__init__.py",
    "hyperpod_jlab/py.typed",
    f"{DATA}etc/jupyter/jupyter_server_config.d/hyperpod_jlab.json",
    f"{DATA}etc/jupyter/jupyter_jupyter_scheduler_config.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/install.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/package.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/schemas/hyperpod_jlab/plugin.json",
    f"{DATA}share/jupyter/labextensions/hyperpod_jlab/static/style.js",
    "licenses/LICENSE",
)
MAX_FRONT_END_KB = 250
"""What a browser loads of the front end at most, compressed."""
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
        if path.is_file() and path.relative_to(package).parts[0] != "labextension" and CACHES.isdisjoint(path.parts)
    ]
    left_out = [f"left out: {path}" for path in data if path.as_posix() not in names]
    return missing + extra + left_out


def compressed_kb(content: bytes) -> float:
    """How much of a file goes over the wire, in kB."""
    return len(gzip.compress(content)) / 1000


def front_end_kb(archive: zipfile.ZipFile) -> float:
    """The same of all that a browser can load of the front end."""
    static = "/labextensions/hyperpod_jlab/static/"
    # No browser loads the list of licences.
    names = [name for name in archive.namelist() if static in name and name.endswith(".js")]
    return sum(compressed_kb(archive.read(name)) for name in names)


def main() -> int:
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        front_end = front_end_kb(archive)
    problems = problems_of(names)
    if front_end > MAX_FRONT_END_KB:
        problems.append(f"the front end has {front_end:.0f} kB gzip, more than {MAX_FRONT_END_KB}")
    if problems:
        print("\n".join(problems))
        return 1
    print(
        f"    {wheel.name}: {len(names)} files, {wheel.stat().st_size / 1024:.0f} kB; "
        f"front end {front_end:.0f} kB gzip (limit {MAX_FRONT_END_KB})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

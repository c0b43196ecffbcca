"""What an image of Studio has, and what an admin lays onto the partition: made once, kept in the cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TREE = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hyperpod-jlab"


def studio_python() -> Path:
    """A folder that is ``/opt/conda`` in a space."""
    constraints = TREE / "requirements" / "constraints.txt"
    made_of = constraints.read_bytes() + (HERE / "conda.sh").read_bytes() + sys.version.encode()
    folder = CACHE / f"studio-{hashlib.sha256(made_of).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "studio.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "made").exists():
            return folder / "conda"
        (folder / "conda").mkdir(parents=True, exist_ok=True)
        python = Path(sys.base_prefix) / "bin" / "python3"
        words: list[str | Path] = [HERE / "conda.sh", folder / "conda", python, TREE / ".venv/bin/uv", constraints]
        _order(["unshare", "--mount", "bash", *words])
        (folder / "made").touch()
    return folder / "conda"


def wheel(folder: Path) -> Path:
    """The wheel of this tree."""
    words: list[str | Path] = ["-m", "build", "--wheel", "--no-isolation", "--outdir", folder, TREE]
    _order([sys.executable, *words])
    return next(folder.glob("*.whl"))


def packages(made: Path, folder: Path, *, everything: bool = False) -> str:
    """A folder of wheels, as an admin makes it; the SHA-256 of its list."""
    how = ["--all"] if everything else []
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    done = _order([TREE / "lifecycle-configs" / "make-package.sh", *how, made, folder, version])
    return done.split()[-1]


def _order(words: list[str | Path]) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, env={**os.environ, "PATH": path}
    )
    if done.returncode != 0:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def client_packages(folder: Path, *more: str) -> None:
    """Slurm's client and munge as Debian packages, of the versions of this machine, with their list."""
    names = ("slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2", *more)
    versions = [_order(["dpkg-query", "-W", "-f", "${Version}", name]) for name in names]
    wanted = [f"{name}={version}" for name, version in zip(names, versions, strict=True)]
    kept = CACHE / f"slurm-client-{hashlib.sha256(' '.join(wanted).encode()).hexdigest()[:12]}"
    if not (kept / "SHA256SUMS").exists():
        kept.mkdir(parents=True, exist_ok=True)
        _order(["bash", "-c", 'cd "$0" && apt-get -qq download "$@"', kept, *wanted])
        _order(["bash", "-c", 'cd "$0" && sha256sum -- *.deb >SHA256SUMS', kept])
    _order(["cp", "-r", kept, folder])

"""Adding to the user's configuration file: only at its end, so that nothing that stands there, comments included, is changed."""

from __future__ import annotations

import os
import stat
import tempfile
import tomllib
from pathlib import Path

from hyperpod_jlab.model.errors import ConflictError, InvalidInputError
from hyperpod_jlab.services.configuration import config_files, load_settings
from hyperpod_jlab.storage.atomic import storage_errors


def user_file() -> Path:
    """The configuration file that is the user's own: ``$HYPERPOD_CONFIG``, else that in the home folder."""
    return config_files()[-1]


def add_cluster(name: str, block: str) -> Path:
    """Add a cluster's table to the user's configuration file, which need not be there; it is replaced in one step, once it is sure that it can be read.

    Args:
        name: The cluster's name in the configuration.
        block: Its table in TOML.

    Returns:
        The file.

    Raises:
        ConflictError: The configuration has a cluster of this name.
        InvalidInputError: The file could not be read after that, as when it has its clusters in another form; then it stays as it is.
        StorageError: The file cannot be written.
    """
    path = user_file().resolve()
    _refuse_known(name)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        gap = "" if not old else "\n" if old.endswith("\n") else "\n\n"
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, mode)
                file.write(old + gap + block)
            _check(old, gap + block, Path(temporary), path)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink()
            raise
    return path


def _refuse_known(name: str) -> None:
    known = [path for path in config_files() if path.exists()]
    if name in load_settings(known).clusters:
        raise ConflictError(
            f"the configuration has a cluster '{name}' already",
            code="cluster_exists",
            hint="give it another name: hpj config add NAME --hyperpod CLUSTER",
            detail={"cluster": name},
        )


def _check(old: str, block: str, written: Path, path: Path) -> None:
    """Refuse what could not be read, or not as it is meant."""
    try:
        before, added = tomllib.loads(old), tomllib.loads(block)
        clusters = {**before.get("clusters", {}), **added["clusters"]}
        if tomllib.loads(old + block) != {**before, "clusters": clusters}:
            raise _refused(path, "it would be read in another way", block)
        load_settings([*config_files()[:-1], written])
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, str(error), block) from error
    except InvalidInputError as error:
        if error.code == "cannot_add":
            raise
        raise _refused(path, error.message.replace(str(written), str(path)), block) from error


def _refused(path: Path, why: str, block: str) -> InvalidInputError:
    return InvalidInputError(
        f"the cluster cannot be added to the end of {path}: {why}",
        code="cannot_add",
        hint="add it with an editor; its table is in the detail, and printed by: hpj config add NAME --dry-run",
        detail={"path": str(path), "config": block},
    )

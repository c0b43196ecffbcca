"""Reading ``--spec FILE``: the spec as JSON or TOML."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.storage import descent


def read_spec_file(path: Path) -> dict[str, Any]:
    """The spec's data from a file.

    Raises:
        InvalidInputError: It cannot be read, or is neither JSON nor TOML with an object on top.
    """
    try:
        text = descent.read_named(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, "is not UTF-8 text") from error
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error
    looks_json = path.suffix == ".json" or (path.suffix != ".toml" and text.lstrip()[:1] == "{")
    try:
        data = json.loads(text) if looks_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if looks_json else "TOML"
        raise _refused(path, f"is no {kind}: {error}") from error
    if not isinstance(data, dict):
        raise _refused(path, "holds no object")
    return data


def _refused(path: Path, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}: {problem}",
        code="invalid_spec_file",
        hint="a spec file is JSON or TOML with the fields of a run's spec, as in: hpj show RUN --json",
        detail={"field": "spec", "path": str(path)},
    )

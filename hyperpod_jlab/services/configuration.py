"""Reading the configuration: TOML files, later over earlier."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from hyperpod_jlab.model.config import Settings
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.validation import parse
from hyperpod_jlab.services.partition_choice import choose_partition
from hyperpod_jlab.storage.partition import Partition

_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


def config_files() -> list[Path]:
    """The configuration files in the order in which they count; ``$HYPERPOD_CONFIG`` stands alone."""
    alone = os.environ.get("HYPERPOD_CONFIG")
    if alone:
        return [Path(alone)]
    home = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return [Path("/etc/hyperpod-jlab/config.toml"), Path(home) / "hyperpod-jlab" / "config.toml"]


def load_settings(files: list[Path] | None = None) -> Settings:
    """Read and merge the configuration.

    Raises:
        InvalidInputError: A file is no TOML (with line and column), or has an unknown or wrong key; ``$HYPERPOD_CONFIG`` does not exist.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    merged: dict[str, Any] = {}
    for path in config_files() if files is None else files:
        found.append((path, _read(path)))
        merged = _merge(merged, found[-1][1])
    try:
        settings = parse(Settings, merged, code="invalid_config")
    except InvalidInputError as error:
        raise _in_file(found, error) from error
    if settings.default_cluster not in settings.clusters:
        raise _in_file(
            found,
            InvalidInputError(
                f"default_cluster: there is no cluster '{settings.default_cluster}'",
                code="invalid_config",
                hint="add it under [clusters], or name another: " + ", ".join(settings.clusters),
                detail={"field": "default_cluster"},
            ),
        )
    return settings


def _in_file(
    found: list[tuple[Path, dict[str, Any]]], error: InvalidInputError
) -> InvalidInputError:
    """The error with the file that its field stands in: the last one that goes as far down to it as any."""

    def depth(data: Any) -> int:
        steps = 0
        for name in str(error.detail["field"]).split("."):
            if not isinstance(data, dict) or name not in data:
                break
            data, steps = data[name], steps + 1
        return steps

    path, _ = max(reversed(found), key=lambda one: depth(one[1]))
    return InvalidInputError(
        f"{path}: {error.message}",
        code=error.code,
        hint=error.hint,
        detail={**error.detail, "path": str(path)},
    )


def find_partition(settings: Settings) -> Partition:
    """The storage partition that runs go to (see `services.partition_choice`)."""
    return choose_partition(settings).partition


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("HYPERPOD_CONFIG") == str(path):
            raise _broken(path, "there is no such file ($HYPERPOD_CONFIG names it)") from None
        return {}
    except OSError as error:
        raise _broken(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _broken(path, "is not UTF-8 text") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line, column = (int(found.group(1)), int(found.group(2))) if found else _end_of(text)
        words = _LINE.sub("", str(error)).removesuffix("(at end of document)").strip()
        raise InvalidInputError(
            f"{path}, line {line}, column {column}: {words}",
            code="invalid_config",
            hint="mend the file; it is TOML",
            detail={"path": str(path), "line": line, "column": column},
        ) from error


def _end_of(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1


def _broken(path: Path, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}: {problem}", code="invalid_config", detail={"path": str(path)}
    )


def _merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        before = merged.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        merged[key] = _merge(before, value) if both else value  # type: ignore[arg-type]
    return merged

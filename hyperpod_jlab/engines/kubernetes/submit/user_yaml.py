"""A user's YAML as the API server would read it, with the place of what is wrong; and nothing that a text of a few lines could blow up to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.kubernetes.submit.code import MOST_BYTES as MOST_OBJECT

MOST_BYTES = 1 << 20
"""Of a file; what comes of it may be larger, by references (`object_size`)."""
_MOST_NODES = 100_000
_DEEPEST = 100


def documents(data: bytes, name: str) -> list[Any]:
    """The documents of a file, as JSON would have them; empty ones are left out.

    Texts that only YAML of old takes for times or numbers in base 60 (``12:30``) stay texts, as for kubectl. References are followed.

    Args:
        data: The file's bytes.
        name: The file's name, for errors.

    Raises:
        InvalidInputError: It is no YAML (``detail`` has ``line`` and ``column``, from 1), or too large.
    """
    if len(data) > MOST_BYTES:
        raise _wrong(name, f"has {len(data)} bytes; the limit of a manifest is {MOST_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _wrong(name, "is not UTF-8 text", line=line) from error
    import yaml

    try:
        found = list(yaml.load_all(text, Loader=_loader()))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = " ".join(str(word) for word in (error.context, error.problem) if word)
        if mark is None:
            raise _wrong(name, words) from error
        raise _wrong(name, words, line=mark.line + 1, column=mark.column + 1) from error
    except yaml.YAMLError as error:
        position = int(getattr(error, "position", 0) or 0)
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        words = "it contains a character that YAML does not allow"
        raise _wrong(name, words, line=line, column=column) from error
    except RecursionError as error:
        raise _wrong(name, f"is nested deeper than {_DEEPEST} levels") from error
    counter = _Counter(name)
    return [counter.plain(one, 0) for one in found if one is not None]


class _Counter:
    """Counts what a document is once its references are followed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes = 0
        self._letters = 0

    def plain(self, value: Any, depth: int) -> Any:
        """The value with its references written out."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise _wrong(
                self._name, f"has more than {_MOST_NODES} values after its references are resolved"
            )
        if depth > _DEEPEST:
            raise _wrong(
                self._name, f"is nested deeper than {_DEEPEST} levels, or refers to itself"
            )
        if isinstance(value, dict):
            return {_key(key): self.plain(one, depth + 1) for key, one in value.items()}
        if isinstance(value, list):
            return [self.plain(one, depth + 1) for one in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise _wrong(self._name, "contains a number that JSON does not have (.inf or .nan)")
        if isinstance(value, str):
            self._letters += len(value)
            if self._letters > MOST_OBJECT:
                raise _wrong(
                    self._name,
                    f"has more than {MOST_OBJECT:,} bytes after its references are resolved, which is the limit of the cluster",
                )
        if isinstance(value, str | int | float | bool | None):
            return value
        raise _wrong(
            self._name, f"contains a value that JSON does not have ({type(value).__name__})"
        )


def _key(key: Any) -> str:
    """A key as text: JSON has no others."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _loader() -> Any:
    """PyYAML's safe loader, less times and numbers in base 60, which refuses keys that come twice."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            letter: [
                (tag, _NUMBERS.get(tag, pattern))
                for tag, pattern in resolvers
                if tag != "tag:yaml.org,2002:timestamp"
            ]
            for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    def mapping(loader: Any, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be text", key.start_mark
                )
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key.value[:60]!r}", key.start_mark
                )
            seen.add(key.value)
        return yaml.SafeLoader.construct_mapping(loader, node, deep)

    def construct(loader: Any, node: Any) -> Iterator[dict[Any, Any]]:
        made: dict[Any, Any] = {}
        yield made
        made.update(mapping(loader, node))

    Loader.add_constructor("tag:yaml.org,2002:map", construct)
    return Loader


_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(
        r"[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z"
    ),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9_]+|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}


def _wrong(
    name: str, words: str, *, line: int | None = None, column: int | None = None
) -> InvalidInputError:
    place = f", line {line}" if line is not None else ""
    place += f", column {column}" if column is not None else ""
    detail: dict[str, Any] = {"field": "source"}
    if line is not None:
        detail |= {"line": line, "column": column}
    return InvalidInputError(f"{name}{place}: {words}", code="invalid_source", detail=detail)

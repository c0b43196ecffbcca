"""Parses a user's YAML as the API server would, with error locations and protection against exponential expansion."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.kubernetes.submit.object_size import MAX_MANIFEST_BYTES as MOST_OBJECT

MAX_BYTES = 1 << 20
"""Maximum file size; references may make the result larger (`object_bytes`)."""
_MAX_NODES = 100_000
_DEEPEST = 100


def documents(data: bytes, name: str) -> list[Any]:
    """The documents of a file, as JSON-like values; empty ones are left out.

    Text that only old YAML versions read as times or base 60 numbers (``12:30``) stays text, as in
    kubectl. References are expanded.

    Args:
        data: The file's bytes.
        name: The file's name, for errors.

    Raises:
        InvalidInputError: The file is not valid YAML (``detail`` has ``line`` and ``column``, from
            1), or too large.
    """
    if len(data) > MAX_BYTES:
        raise _yaml_error(name, f"has {len(data)} bytes; the limit of a manifest is {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _yaml_error(name, "is not UTF-8 text", line=line) from error
    import yaml

    try:
        documents = list(yaml.load_all(text, Loader=_loader()))
    except yaml.MarkedYAMLError as error:
        problem_mark = error.problem_mark or error.context_mark
        problem_text = " ".join(str(part) for part in (error.context, error.problem) if part)
        if problem_mark is None:
            raise _yaml_error(name, problem_text) from error
        raise _yaml_error(name, problem_text, line=problem_mark.line + 1, column=problem_mark.column + 1) from error
    except yaml.YAMLError as error:
        position = int(getattr(error, "position", 0) or 0)
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        problem_text = "it contains a character that YAML does not allow"
        raise _yaml_error(name, problem_text, line=line, column=column) from error
    except RecursionError as error:
        raise _yaml_error(name, f"is nested deeper than {_DEEPEST} levels") from error
    counter = _Counter(name)
    return [counter.to_plain(document, 0) for document in documents if document is not None]


class _Counter:
    """Counts a document's size with references expanded."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes = 0
        self._letters = 0

    def to_plain(self, value: Any, depth: int) -> Any:
        """The value with references expanded."""
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise _yaml_error(self._name, f"has more than {_MAX_NODES} values after its references are resolved")
        if depth > _DEEPEST:
            raise _yaml_error(self._name, f"is nested deeper than {_DEEPEST} levels, or refers to itself")
        if isinstance(value, dict):
            return {_key(key): self.to_plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.to_plain(item, depth + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise _yaml_error(self._name, "contains a number that JSON does not have (.inf or .nan)")
        if isinstance(value, str):
            self._letters += len(value)
            if self._letters > MOST_OBJECT:
                raise _yaml_error(
                    self._name,
                    f"has more than {MOST_OBJECT:,} bytes after its references are resolved, which is the limit of the cluster",
                )
        if isinstance(value, str | int | float | bool | None):
            return value
        raise _yaml_error(self._name, f"contains a value that JSON does not have ({type(value).__name__})")


def _key(key: Any) -> str:
    """A key as text; JSON has no other keys."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _loader() -> Any:
    """PyYAML's safe loader without times and base 60 numbers; it rejects duplicate keys."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            letter: [
                (tag, _NUMBER_TAGS.get(tag, pattern))
                for tag, pattern in resolvers
                if tag != "tag:yaml.org,2002:timestamp"
            ]
            for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    def construct_unique_mapping(loader: Any, node: Any, deep: bool = False) -> Any:
        seen_keys: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be text", key.start_mark)
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen_keys:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value[:60]!r}", key.start_mark)
            seen_keys.add(key.value)
        return yaml.SafeLoader.construct_mapping(loader, node, deep)

    def construct(loader: Any, node: Any) -> Iterator[dict[Any, Any]]:
        result: dict[Any, Any] = {}
        yield result
        result.update(construct_unique_mapping(loader, node))

    Loader.add_constructor("tag:yaml.org,2002:map", construct)
    return Loader


_NUMBER_TAGS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9_]+|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}


def _yaml_error(
    name: str, problem_text: str, *, line: int | None = None, column: int | None = None
) -> InvalidInputError:
    line_text = f", line {line}" if line is not None else ""
    line_text += f", column {column}" if column is not None else ""
    detail: dict[str, Any] = {"field": "source"}
    if line is not None:
        detail |= {"line": line, "column": column}
    return InvalidInputError(f"{name}{line_text}: {problem_text}", code="invalid_source", detail=detail)

"""What an attacker fills the records of a run with, so that reading them takes long: little to write, much to read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.security.attacks import put

HUGE = 10 << 30
"""A size that only holes have."""

LOGS = "logs/attempt-1"
LOG = f"{LOGS}/node-0.rank-0.log"
OUTPUTS = f"{LOGS}/node-0.rank-0.outputs.jsonl"
METRICS = f"{LOGS}/node-0.metrics.jsonl"
RESOURCES = f"{LOGS}/node-0.resources.jsonl"

STREAMED = (
    OUTPUTS,
    METRICS,
    RESOURCES,
    LOG,
    f"{LOGS}/node-0.rank-0.idx",
    f"{LOGS}/node-0.log",
    f"{LOGS}/node-0.activity.json",
)
RECORDS = (
    *STREAMED,
    "submission.json",
    "files.json",
    "code/cells.json",
    "code/notebook.ipynb",
    "result.json",
    "status/claim.json",
    "status/owner.json",
    "status/usage.json",
    "status/attempt-1/claim.json",
    "status/attempt-1/node-0.json",
    "status/attempt-1/rank-0.error.json",
    "status/observations/local.json",
    "status/actions/1-a.json",
)

DEEP = '{"a": ' * 50_000 + "1" + "}" * 50_000
_TIME = 1_795_858_919.0


def hole(path: Path, size: int = HUGE) -> None:
    """A file that takes no space, with the size of a disk."""
    put(path, "")
    os.truncate(path, size)


def holes(bundle: Path) -> None:
    """All records, and many more, are holes."""
    for name in RECORDS:
        hole(bundle / name)
    for number in range(1, 40):
        hole(bundle / LOGS / f"node-{number}.metrics.jsonl", 512 << 20)
        hole(bundle / LOGS / f"node-{number}.rank-0.log")


def long_lines(bundle: Path) -> None:
    """Lines of 60 MB: one text, many small lists, and no end."""
    line = '{"time": 1, "values": {"a": "' + "x" * (60 << 20) + '"}}\n'
    put(bundle / METRICS, line)
    put(bundle / LOG, line)
    put(bundle / RESOURCES, "[]," * (20 << 20))
    put(bundle / f"{LOGS}/node-1.metrics.jsonl", "x" * (60 << 20))
    put(bundle / OUTPUTS, _begin(3) + '{"at": 0, "data": {"a": [' + "[]," * (20 << 20) + "1]}}\n")
    put(bundle / "status/observations/local.json", "[]," * (1 << 20))


def deep(bundle: Path) -> None:
    """Objects in objects in objects."""
    for name in RECORDS:
        put(bundle / name, DEEP + "\n" + DEEP + "\n")


def names(bundle: Path) -> None:
    """Folders of very many names, each of a kind that is looked at."""
    for folder, kind, count in (
        (LOGS, "node-{}.metrics.jsonl", 12_000),
        ("status/observations", "{}.json", 4000),
        ("status/attempt-1", "node-{}.json", 4000),
        ("tasks", "{}", 12_000),
    ):
        (bundle / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (bundle / folder / kind.format(number)).touch()
    for number in range(2, 2000):
        for folder in ("logs", "status"):
            (bundle / folder / f"attempt-{number}").mkdir(parents=True)


def absurd(bundle: Path) -> None:
    """Numbers that make no sense in a record."""
    values = ("1e308", "-1e308", "NaN", "1e400", "9" * 4000, "9" * 5000, "-1", "true", '"x"')
    _lines(
        bundle / METRICS,
        (
            f'{{"time": {moment}, "rank": {rank}, "step": {rank}, "total": {total}, "values": {{"loss": {value}}}}}'
            for moment in (_TIME, *values)
            for rank in (0, 10**9, 2**61, *values)
            for total, value in zip(values, reversed(values), strict=True)
        ),
    )
    _lines(
        bundle / OUTPUTS,
        (
            f'{{"cell": {cell}, "start": {start}, "at": {at}, "to": {at}, "data": {{}}, "end": {start}}}'
            for cell in (3, 10**9, *values)
            for start in (_TIME, *values)
            for at in (0, 2**62, *values)
        ),
    )
    for name in ("attempt-999999", "attempt-999999999"):
        for node in ("0", "999999", "1000000000"):
            put(bundle / f"logs/{name}/node-{node}.metrics.jsonl", (bundle / METRICS).read_text())
            put(bundle / f"logs/{name}/node-{node}.rank-99999.log", "x\n")
        put(bundle / f"status/{name}/claim.json", json.dumps({"time": 1e308}))
    record: dict[str, object] = {"node_rank": 10**9, "node": "n", "started_at": _TIME, "exit_code": 10**30}
    ranks = [{"rank": 10**9, "local_rank": number, "exit_code": 1} for number in range(10_000)]
    put(bundle / "status/attempt-1/node-0.json", json.dumps({**record, "ranks": ranks}))


def quadratic(bundle: Path) -> None:
    """Records that are long in the ways that make a simple reader go over all that it has, again and again."""
    put(bundle / OUTPUTS, "".join(_begin(3 + number % 2) + _updates() for number in range(60)))
    _lines(
        bundle / METRICS,
        (json.dumps({"time": _TIME, "rank": 0, "values": {f"n{number}": 1}}) for number in range(150_000)),
    )
    put(bundle / f"{LOGS}/node-1.metrics.jsonl", "\n" * (16 << 20))
    _lines(
        bundle / RESOURCES,
        (
            json.dumps({"time": _TIME + number, "ranks": [[number * 20 + one, 1, 1] for one in range(20)]})
            for number in range(8000)
        ),
    )
    put(bundle / LOG, "x" * (1 << 20) + "\n" * (4 << 20))
    observation: dict[str, object] = {"time": _TIME, "observer": "o", "state": "ended", "verdict": "FAILED"}
    for number in range(1000):
        put(bundle / f"status/attempt-{number + 1}/claim.json", "{}")
        put(bundle / f"status/observations/{number}.json", json.dumps({**observation, "attempt": number}))


def short_quadratic(path: Path) -> None:
    """As much of it as takes no time to write, in the place of any file."""
    put(path, _begin(3) + _updates(500, 500))


def absurd_numbers(path: Path) -> None:
    """A record, or many of them in lines, in the place of any file."""
    names = ("time", "step", "rank", "cell", "at", "to", "start", "format", "created_at", "nodes")
    values = ("1e308", "1e400", "NaN", "9" * 4000, "-1", str(10**30), "999999")
    lines = ["{" + ", ".join(f'"{name}": {value}' for name in names) + "}" for value in values]
    put(path, "\n".join(lines) + "\n")


FILLINGS: dict[str, Callable[[Path], None]] = {
    "holes": holes,
    "long-lines": long_lines,
    "deep": deep,
    "names": names,
    "absurd": absurd,
    "quadratic": quadratic,
}


def _begin(cell: int) -> str:
    return json.dumps({"cell": cell, "start": _TIME, "at": 0}) + "\n"


def _updates(displays: int = 5000, updates: int = 5000) -> str:
    """One display id, many times: finding 6."""
    put_out = {"output": "display_data", "at": 0, "to": 0, "data": {}, "display_id": "x"}
    update: dict[str, object] = {"output": "update", "at": 0, "data": {}, "display_id": "x"}
    return (json.dumps(put_out) + "\n") * displays + (json.dumps(update) + "\n") * updates


def _lines(path: Path, lines: Iterable[str]) -> None:
    put(path, "".join(f"{line}\n" for line in lines))

"""A program that writes numbered lines to logs in every unpleasant way, and notes what each log's last life holds.

Usage: ``python producer.py FOLDER SEED RANKS LINES ATTEMPTS``.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import time
from pathlib import Path


def awkward(rng: random.Random, number: int) -> bytes:
    kind = rng.randrange(12)
    if kind == 0:
        return b"\n"
    if kind == 1:
        return f"\u00e4\u20ac\U0001f680 {number} ".encode() * rng.randrange(1, 40) + b"\n"
    if kind == 2:
        return b"bar" + b"".join(b"\r%d%%" % step for step in range(rng.randrange(100))) + b"\n"
    if kind == 3:
        return f"{number}\n".encode()
    if kind == 4:
        return b'{"step": %d}\n' % number
    if kind == 5 and rng.random() < 0.1:
        return b"long %d " % number + b"z" * rng.randrange(100_000) + b"\n"
    if kind == 6:
        return rng.randbytes(30) + b"\x00\xff\n"
    return f"line {number} of many, as usual\n".encode()


def write(descriptor: int, data: bytes, rng: random.Random) -> None:
    while data:
        size = len(data) if rng.random() < 0.7 else rng.randrange(1, len(data) + 1)
        done = os.write(descriptor, data[:size])
        data = data[done:]
        if rng.random() < 0.1:
            time.sleep(rng.random() * 0.02)


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    ranks, lines, attempts = (int(text) for text in sys.argv[3:6])
    rng = random.Random(seed)
    for attempt in range(1, attempts + 1):
        logs = folder / "logs" / f"attempt-{attempt}"
        logs.mkdir(parents=True)
        files: dict[int, int] = {}
        for number in range(lines):
            rank = rng.randrange(ranks)
            path = logs / f"node-0.rank-{rank}.log"
            if rank not in files:
                files[rank] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            fate = rng.random()
            if fate < 0.002:
                os.truncate(path, 0)
            elif fate < 0.004:
                path.rename(path.with_name(f"old-{number}"))
                os.close(files[rank])
                files[rank] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            if rng.random() < 0.05:
                with path.with_suffix(".idx").open("ab") as index:
                    index.write(struct.pack("<qq", time.time_ns(), path.stat().st_size))
            write(files[rank], awkward(rng, number), rng)
        for rank, descriptor in files.items():
            if rng.random() < 0.5:
                os.write(descriptor, f"rank {rank} ends without a newline".encode())
            os.close(descriptor)


if __name__ == "__main__":
    main()

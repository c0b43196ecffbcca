"""A stack's functions with 500 user profiles: the package as built, CloudFormation's requests in, its answers at their address.

Each profile has a file system of its own, so each has to be written. AWS is the testbed's on loopback (`bench_admin`), which takes a time for each call
and so many updates of profiles a second. What a function has no time for is the schedule's, which is called as often as it takes.

python benchmarks/bench_admin_lambda.py [--json] [--quick] [--latency SECONDS] [--rate UPDATES-A-SECOND] [--limit SECONDS-OF-A-FUNCTION]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_admin import DOMAIN, FILE_SYSTEM, Domain
from log_fixtures import arguments, report

from tests.admin.lambdas.package import Lambda, unpacked
from tests.admin.lambdas.stack import Bucket, Stack

AWS_S = 900.0
"""What AWS gives a function at most, and our template does."""

_SETTINGS = {"HPJ_DOMAIN_ID": DOMAIN, "HPJ_FILE_SYSTEM_ID": FILE_SYSTEM, "HPJ_PARTITION_MODE": "shared"}
_MOST_LOOKS = 40


class Run:
    """A stack over a domain.

    Args:
        folder: Where the package is unpacked.
        domain: The account's process.
        seconds: The time that a function has.
    """

    def __init__(self, folder: Path, domain: Domain, seconds: float) -> None:
        self._domain, self._seconds = domain, seconds
        self._bucket = Bucket()
        self._function = Lambda(folder, domain.environment, seconds)
        self.rows: list[dict[str, Any]] = []

    def lifetime(self, name: str) -> None:
        """Create a stack, change its folder, and delete it, with the schedule in between."""
        with self._bucket as bucket:
            stack = Stack(self._function, bucket)
            given = {"DomainId": DOMAIN, "FileSystemId": FILE_SYSTEM, "PartitionMode": "shared"}
            given["Reconciled"] = "true"
            self._timed(f"{name}: create", lambda: stack.create(**given))
            self._looks(f"{name}: schedule", "/shared")
            self._timed(f"{name}: change", lambda: stack.update(**given, SharedPath="/all"))
            self._looks(f"{name}: schedule", "/all")
            for _ in range(_MOST_LOOKS):
                answer = self._timed(f"{name}: delete", stack.delete)
                if answer["Status"] == "SUCCESS":
                    return
        raise RuntimeError("it is never deleted")

    def _timed(self, what: str, work: Any) -> dict[str, Any]:
        before, began = self._domain.counts(), time.perf_counter()
        answer: dict[str, Any] = work()
        after = self._domain.counts()
        told = answer.get("Data", {}).get("Left", "-")
        self._row(what, began, before, after, f"{answer['Status']}, left {told}")
        return answer

    def _looks(self, what: str, path: str) -> None:
        """Let the schedule look until nothing is left."""
        self._function.environment = {**self._domain.environment, **_SETTINGS, "HPJ_SHARED_PATH": path}
        for _ in range(_MOST_LOOKS):
            before, began = self._domain.counts(), time.perf_counter()
            told = self._function.invoke("reconcile", {}).result
            counts = {name: told[name] for name in ("changed", "failed", "left")}
            self._row(what, began, before, self._domain.counts(), json.dumps(counts))
            if not told["left"] and not told["failed"]:
                return
        raise RuntimeError("the schedule comes to no end")

    def _row(self, what: str, began: float, before: Any, after: Any, answer: str) -> None:
        row = {
            "what": what,
            "s": round(time.perf_counter() - began, 1),
            "calls": after[0] - before[0],
            "refused": after[1] - before[1],
            "answer": answer,
        }
        self.rows.append(row)


def main() -> None:
    """Measure and print."""
    words = [one for one in sys.argv[1:] if one in {"--json", "--quick"}]
    given = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    latency, rate = float(given.get("--latency", 0.05)), float(given.get("--rate", 5))
    limit = float(given.get("--limit", AWS_S))
    sys.argv[1:] = words
    options = arguments(__doc__)
    count = 50 if options.quick else 500
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as folder:
        package = unpacked(Path(folder))
        domain = Domain(count, latency, rate, lists=True)
        try:
            run = Run(package, domain, limit)
            run.lifetime(f"{rate:g} updates/s, {limit:g} s")
        finally:
            domain.end()
    report(options, f"A stack's functions and {count} user profiles", run.rows)


if __name__ == "__main__":
    main()

"""A real Prometheus with measurements of the past, for tests and demos: Debian's package, installed by ``testbed/install-prometheus.sh``."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

_READY_S = 30.0


@dataclass
class Scraped:
    """What exporters told at certain times.

    Attributes:
        times: When they were asked (Unix seconds), in order.
        families: Values by metric's name and labels, each for its time; None where there was none.
    """

    times: list[float]
    families: dict[str, dict[tuple[tuple[str, str], ...], list[float | None]]] = field(default_factory=dict)

    def gauge(self, name: str, labels: Mapping[str, str], values: Iterable[float | None]) -> None:
        """Add a series; there is a value for each time."""
        known = list(values)
        if len(known) != len(self.times):
            raise ValueError(f"{name} has {len(known)} values for {len(self.times)} times")
        self.families.setdefault(name, {})[tuple(sorted(labels.items()))] = known

    def counter(self, name: str, labels: Mapping[str, str], rate: float) -> None:
        """Add a counter that grows by so much each second."""
        self.gauge(name, labels, ((moment - self.times[0]) * rate for moment in self.times))

    def text(self) -> str:
        """All of it as OpenMetrics. Types are left out: ``promtool`` needs none, and some names are as no counter's may be."""
        lines = []
        for name, series in self.families.items():
            lines.append(f"# TYPE {name} unknown")
            for labels, values in series.items():
                inside = ",".join(f'{key}="{value}"' for key, value in labels)
                lines.extend(
                    f"{name}{{{inside}}} {value!r} {moment:.3f}"
                    for moment, value in zip(self.times, values, strict=True)
                    if value is not None
                )
        return "\n".join([*lines, "# EOF", ""])


class Prometheus:
    """A Prometheus on a port of loopback while it is entered; it scrapes nothing.

    Args:
        scraped: What it knows.
    """

    def __init__(self, scraped: Scraped) -> None:
        for program in ("prometheus", "promtool"):
            if shutil.which(program) is None:
                raise FileNotFoundError(f"no {program}: run testbed/install-prometheus.sh")
        self._scraped = scraped
        self._folder = Path(tempfile.mkdtemp(prefix="hyperpod-prometheus-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        source, data = self._folder / "metrics.txt", self._folder / "data"
        source.write_text(self._scraped.text())
        if self._scraped.families:
            subprocess.run(
                ["promtool", "tsdb", "create-blocks-from", "openmetrics", source, data],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        config = self._folder / "prometheus.yml"
        config.write_text("{}\n")
        log = (self._folder / "log").open("wb")
        with log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={data}",
                    "--storage.tsdb.retention.time=1000d",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        self._await_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _await_ready(self) -> None:
        end = time.monotonic() + _READY_S
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise RuntimeError(f"Prometheus did not start: {(self._folder / 'log').read_text()}")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port

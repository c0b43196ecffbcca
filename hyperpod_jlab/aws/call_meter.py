"""How often this process asks AWS, and for what: the requests of the last minute, by service and operation."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

WINDOW: Final = 60.0
"""Seconds that are counted together."""

_EVENT: Final = "before-send"


@dataclass(frozen=True)
class OperationCalls:
    """Requests of one operation.

    Attributes:
        service: The service by boto3's name, such as ``sagemaker``.
        operation: The operation by the API's name, such as ``DescribeCluster``.
        calls: How many.
    """

    service: str
    operation: str
    calls: int


class CallMeter:
    """Counts requests; may be used from any thread. Each try counts and each page, for so AWS counts them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, str, str]] = deque()
        self._listeners: list[Callable[[], None]] = []
        self.total = 0
        """Requests since the process began."""

    def count(self, client: Any) -> None:
        """Count the requests of a boto3 client from now on."""
        service = str(client.meta.service_model.service_name)

        def sent(event_name: str, **_: Any) -> None:
            # before-send.SERVICE.OPERATION, once for each try; the service has another name there
            self.note(service, event_name.rsplit(".", 1)[1])

        client.meta.events.register(_EVENT, sent)

    def note(self, service: str, operation: str) -> None:
        """One request is sent."""
        with self._lock:
            self._recent.append((time.monotonic(), service, operation))
            self.total += 1
            self._forget()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def last_minute(self) -> list[OperationCalls]:
        """The requests of the last minute, the most frequent operation first."""
        with self._lock:
            self._forget()
            counted = Counter((service, operation) for _, service, operation in self._recent)
        found = [OperationCalls(*names, calls) for names, calls in counted.items()]
        return sorted(found, key=lambda one: (-one.calls, one.service, one.operation))

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called with each request, in the thread that sends it.

        Returns:
            Ends it.
        """
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return end

    def _forget(self) -> None:
        limit = time.monotonic() - WINDOW
        while self._recent and self._recent[0][0] < limit:
            self._recent.popleft()


METER: Final = CallMeter()
"""The meter of this process."""

"""The user's webhook: alarms, and the end of the run."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from .bundle_files import AttemptPaths, BundleFiles, read_json
from .claims import has_restarts_left, has_succeeded, is_cancel_requested


class Webhook:
    """Posts to a URL, each time in a thread of its own; nothing waits for the answer.

    Args:
        url: A URL, or ``${NAME}``: the secret NAME is the URL.
        secrets: The run's secrets.
        log_note: Says something in the node's log.
    """

    TIMEOUT_S = 10.0

    def __init__(self, url: str, secrets: Mapping[str, str], log_note: Callable[[str], None]) -> None:
        reference = re.fullmatch(r"\$\{(\w+)\}", url)
        self._is_secret = reference is not None
        # Where the engine delivers a secret as a variable, it is in no file.
        self._url = url if reference is None else secrets.get(reference[1], os.environ.get(reference[1], "")).strip()
        self._log_note = log_note
        self._threads: List[Any] = []

    def post(self, document: Mapping[str, Any]) -> None:
        """Begin to post a document."""
        import threading

        data = json.dumps(document).encode("utf-8")
        thread = threading.Thread(target=self._send, args=(data,), daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads for this user
            thread.start()
            self._threads.append(thread)

    def finish(self, seconds: float) -> None:
        """Wait for what was begun, at most so long."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _send(self, data: bytes) -> None:
        import http.client
        import urllib.request

        class NoRedirect(urllib.request.HTTPRedirectHandler):
            """Who answers there may not send the node to an address of its network."""

            def redirect_request(self, *_: Any) -> None:
                return None

        try:
            if not self._url.startswith(("http://", "https://")):
                raise ValueError("its URL begins with neither https:// nor http://")
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(self._url, data, headers)  # noqa: S310
            opener = urllib.request.build_opener(NoRedirect)
            with opener.open(request, timeout=self.TIMEOUT_S):
                pass
        except (OSError, ValueError, http.client.HTTPException) as error:
            # The text may have the URL, or a part of it.
            name = "%s %s" % (type(error).__name__, getattr(error, "code", ""))
            self._log_note("the webhook failed: %s" % (name.strip() if self._is_secret else error))


def posted_run_id(plan: Mapping[str, Any], attempt_paths: AttemptPaths) -> str:
    """The id of the run, or of the child of an array, as users know it."""
    bundle, records = attempt_paths.bundle, attempt_paths.records
    child = "" if records == bundle else "." + os.path.basename(records)
    return "%s%s" % (plan.get("run_id"), child)


class RunEnd(NamedTuple):
    """How a run has ended: `state` is succeeded, failed or cancelled."""

    state: str
    message: str


def post_end(
    attempt_paths: AttemptPaths, scheduler_id: str, secrets: Mapping[str, str], log_note: Callable[[str], None]
) -> None:
    """Post the end of the run, if this attempt ends it. The node that failed does it; of a run that succeeded, the node that ends last."""
    plan = read_json(os.path.join(attempt_paths.bundle, "launch.json")) or {}
    options = plan.get("alarms") or {}
    if not options.get("webhook"):
        return
    end = _find_end(attempt_paths, plan, scheduler_id)
    mark = os.path.join(os.path.dirname(attempt_paths.status), ".end-posted.json")
    with contextlib.suppress(OSError):
        if end is None or not BundleFiles(attempt_paths.bundle).write_once(mark, end._asdict()):
            return
        webhook = Webhook(options["webhook"], secrets, log_note)
        run_id, node_rank = posted_run_id(plan, attempt_paths), attempt_paths.node_rank
        document: Dict[str, Any] = {"run_id": run_id, "node_rank": node_rank}
        document.update(code=end.state, message=end.message, rank=None, since=time.time())
        webhook.post(document)
        webhook.finish(webhook.TIMEOUT_S)


def _find_end(attempt_paths: AttemptPaths, plan: Mapping[str, Any], scheduler_id: str) -> Optional[RunEnd]:
    failed, status = read_json(attempt_paths.failed), os.path.dirname(attempt_paths.status)
    if failed is None:
        is_success = has_succeeded(status, attempt_paths.attempt, int(plan.get("nodes", 1)))
        return RunEnd("succeeded", "the run succeeded") if is_success else None
    if failed.get("node_rank") != attempt_paths.node_rank:
        return None
    # The cancel of an array is in its own journal.
    if is_cancel_requested(status) or is_cancel_requested(os.path.join(attempt_paths.bundle, "status")):
        return RunEnd("cancelled", "the run was cancelled")
    stopped_by = failed.get("stopped_by")
    options, record = plan["alarms"], read_json(attempt_paths.node_record) or {}
    # A job gets SIGTERM at its time limit, as one does that will be requeued.
    ends_at = record.get("started_at", 0.0) + (options.get("time_limit") or math.inf)
    ends_at = float(os.environ.get("SLURM_JOB_END_TIME") or ends_at)
    if stopped_by == "time_limit" or (stopped_by and time.time() > ends_at - 2.0):
        return RunEnd("failed", "the time limit is reached")
    if stopped_by or has_restarts_left(status, scheduler_id, options.get("max_restarts", 0)):
        return None
    error = record.get("error") or {}
    text = error.get("message") or "exit code %s" % failed.get("exit_code")
    return RunEnd("failed", "node %d failed: %s" % (attempt_paths.node_rank, text))

"""Every route of the REST API, once: from this list they are registered, and described in ``openapi.json``.

A route names its function as ``module:function``, so that nothing of what answers is imported when the server starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Action = Literal["read", "write", "execute"]
Verb = Literal["get", "post"]

_PARAMETER = re.compile(r"\{(\w+)\}")

# An ARN has a slash, which a proxy on the way may have decoded.
_PATTERNS = {"path": ".+", "cluster": "(?:arn(?::|%3A)[^/]+cluster/)?[^/]+"}


@dataclass(frozen=True)
class Route:
    """One request that can be made.

    Attributes:
        verb: The HTTP method.
        path: The path under the API's prefix; ``{name}`` stands for one part of it, ``{path}`` for any number.
        action: What the authorizer is asked for.
        function: Who answers: ``module:function`` in this package. Its parameters and its result are the request's and the answer's.
        statuses: The HTTP statuses of success.
    """

    verb: Verb
    path: str
    action: Action
    function: str
    statuses: tuple[int, ...] = (200,)

    @property
    def pattern(self) -> str:
        """The path as a regular expression with named groups."""
        return _PARAMETER.sub(_group, self.path.replace(".", r"\."))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(_PARAMETER.findall(self.path))


def _group(match: re.Match[str]) -> str:
    name = match.group(1)
    return f"(?P<{name}>{_PATTERNS.get(name, '[^/]+')})"


ROUTES: Final[tuple[Route, ...]] = (
    Route("get", "version", "read", "version:version"),
    Route("get", "openapi.json", "read", "openapi:show_openapi"),
    Route("get", "schema", "read", "schema:show_schema"),
    Route("get", "clusters", "read", "clusters:list_clusters"),
    Route("get", "clusters/{cluster}/nodes", "read", "clusters:list_nodes"),
    Route("get", "clusters/{cluster}/queues", "read", "clusters:list_queues"),
    Route("get", "clusters/{cluster}/jobs", "read", "clusters:list_jobs"),
    Route("get", "clusters/{cluster}/choices", "read", "clusters:list_choices"),
    Route("post", "clusters/{cluster}/jobs/actions", "execute", "job_actions:act_on_jobs"),
    Route(
        "post",
        "clusters/{cluster}/jobs/{job}/adopt",
        "execute",
        "adoption:adopt_job",
        statuses=(201,),
    ),
    Route("get", "clusters/{cluster}/nodes/actions", "read", "node_actions:list_node_actions"),
    Route("post", "clusters/{cluster}/nodes/actions", "execute", "node_actions:act_on_nodes"),
    Route(
        "post",
        "clusters/{cluster}/nodes/actions/preview",
        "execute",
        "node_actions:preview_on_nodes",
    ),
    Route(
        "get",
        "hyperpod/{cluster}/nodes/actions",
        "read",
        "node_actions:list_hyperpod_node_actions",
    ),
    Route(
        "post",
        "hyperpod/{cluster}/nodes/actions",
        "execute",
        "node_actions:act_on_hyperpod_nodes",
    ),
    Route(
        "post",
        "hyperpod/{cluster}/nodes/actions/preview",
        "execute",
        "node_actions:preview_on_hyperpod_nodes",
    ),
    Route("get", "hyperpod", "read", "hyperpod:list_hyperpod_clusters"),
    Route("get", "hyperpod/{cluster}", "read", "hyperpod:show_hyperpod_cluster"),
    Route("get", "hyperpod/{cluster}/nodes", "read", "hyperpod:list_hyperpod_nodes"),
    # It begins nothing, but its answer leads to a shell on a node: who may only look does not get it.
    Route(
        "post",
        "hyperpod/{cluster}/nodes/{node}/terminal",
        "execute",
        "node_terminal:show_terminal",
    ),
    Route("get", "hyperpod/{cluster}/events", "read", "hyperpod_events:list_hyperpod_events"),
    Route(
        "get", "hyperpod/{cluster}/events/{event}", "read", "hyperpod_events:show_hyperpod_event"
    ),
    Route("get", "hyperpod/{cluster}/governance", "read", "governance:show_governance"),
    Route("get", "storage", "read", "storage:show_storage"),
    Route("get", "aws/calls", "read", "aws_calls:show_aws_calls"),
    Route("get", "aws/regions", "read", "aws_regions:list_aws_regions"),
    Route("post", "storage/link", "execute", "storage_files:link_storage"),
    Route("get", "storage/paths", "read", "storage_files:show_paths"),
    # It starts Lustre's program, so who may only look may not do it.
    Route("post", "storage/files/states", "execute", "storage_files:show_states"),
    Route("post", "storage/files/actions", "execute", "storage_files:move_files"),
    Route("get", "storage/tasks", "read", "storage_files:list_tasks"),
    Route("post", "storage/tasks/{task}/cancel", "execute", "storage_files:cancel_task"),
    Route("get", "hyperpod/{cluster}/logs", "read", "node_logs:list_node_logs"),
    Route("get", "hyperpod/{cluster}/nodes/{node}/logs", "read", "node_logs:list_logs_of_node"),
    Route("get", "hyperpod/{cluster}/logs/page", "read", "node_log_pages:show_node_page"),
    Route("get", "hyperpod/{cluster}/logs/search", "read", "node_log_pages:search_node_logs"),
    Route("get", "hyperpod/{cluster}/logs/lines", "read", "node_logs:show_node_lines"),
    Route("get", "hyperpod/{cluster}/metrics", "read", "node_metrics:show_metrics"),
    Route("get", "hyperpod/{cluster}/metrics/nodes", "read", "node_metrics:list_node_metrics"),
    Route("get", "lifecycle", "read", "lifecycle:show_lifecycle"),
    Route("get", "lifecycle/log", "read", "lifecycle:show_lifecycle_log"),
    Route("get", "doctor", "read", "doctor:show_examination"),
    # It writes a probe to the storage partition, and asks clusters and AWS.
    Route("post", "doctor", "execute", "doctor:begin_examination"),
    Route("get", "doctor/report", "read", "doctor:show_doctor_report"),
    Route("post", "doctor/cancel", "execute", "doctor:cancel_examination"),
    Route("get", "admin/rights", "read", "admin:show_admin_rights"),
    Route("get", "admin/choices", "read", "admin:list_admin_choices"),
    Route("get", "admin/mode", "read", "admin:show_admin_mode"),
    Route("get", "admin/work", "read", "admin:show_admin_work"),
    Route("get", "admin/steps", "read", "admin_steps:list_admin_steps"),
    # It changes nothing, but asks AWS for each profile and space of a domain.
    Route("post", "admin/plan", "execute", "admin:begin_admin_plan"),
    Route("post", "admin/apply", "execute", "admin:apply_admin_plan"),
    Route("post", "admin/cancel", "execute", "admin:cancel_admin_work"),
    Route("get", "runs", "read", "runs:list_runs"),
    Route("post", "runs", "execute", "submit:submit_run", statuses=(200, 201)),
    Route("get", "cells", "read", "cells:list_cells"),
    # It reads the source's files and starts the interpreter that the spec names, so who may only look may not do it.
    Route("post", "runs/preview", "execute", "submit:preview_run"),
    Route("get", "runs/{run_id}", "read", "runs:show_run"),
    Route("post", "runs/{run_id}/cancel", "execute", "runs:cancel_run"),
    Route("post", "runs/{run_id}/hold", "execute", "runs:hold_run"),
    Route("post", "runs/{run_id}/release", "execute", "runs:release_run"),
    Route("post", "runs/{run_id}/requeue", "execute", "runs:requeue_run"),
    Route("post", "runs/{run_id}/change", "execute", "runs:change_run"),
    Route("get", "runs/{run_id}/spec", "read", "run_content:show_spec"),
    Route("get", "runs/{run_id}/script", "read", "run_content:show_script"),
    Route("get", "runs/{run_id}/code", "read", "run_content:list_code"),
    Route("get", "runs/{run_id}/code/{path}", "read", "run_content:show_code"),
    Route("get", "runs/{run_id}/cells", "read", "cells:list_sent_cells"),
    Route("get", "runs/{run_id}/children", "read", "run_content:list_children"),
    Route("get", "runs/{run_id}/why", "read", "run_content:explain_wait"),
    Route("get", "runs/{run_id}/usage", "read", "run_content:show_usage"),
    Route("get", "runs/{run_id}/metrics", "read", "node_metrics:show_run_metrics"),
    Route("get", "runs/{run_id}/access", "read", "run_content:show_access"),
    Route("post", "runs/{run_id}/ports/{port}/open", "execute", "ports:open_port"),
    Route("get", "runs/{run_id}/logs", "read", "logs:show_page"),
    Route("get", "runs/{run_id}/logs/search", "read", "logs:search_log"),
    Route("get", "runs/{run_id}/logs/raw", "read", "logs:download_log"),
    Route("get", "runs/{run_id}/streams", "read", "logs:list_streams"),
)

SOCKET_PATH: Final = "logs"
"""The path of the log socket."""

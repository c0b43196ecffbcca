"""Runs: submit, list, show, act, clean; with their routes and commands."""

from hyperpod_jlab.contributions import Command, Follow, Route

COMMANDS = (
    Command(
        "submit",
        "Submit a notebook, script or command to a cluster.",
        section="Run code",
        rank=10,
        module="submit_commands",
    ),
    Command(
        "clone",
        "Submit a run again, with the same code and new options.",
        section="Run code",
        rank=20,
        module="submit_commands",
    ),
    Command("cancel", "Cancel runs that are running or waiting.", section="Run code", rank=30),
    Command("hold", "Hold waiting runs, so that they do not start.", section="Run code", rank=40),
    Command("release", "Release held runs, so that they can start.", section="Run code", rank=50),
    Command("requeue", "End the current attempt of runs and start the next one.", section="Run code", rank=60),
    Command("change", "Change the time limit or the queue of runs.", section="Run code", rank=70),
    Command("runs", "List runs, newest first.", section="Runs", rank=10),
    Command("show", "Show the details of a run or a cluster.", section="Runs", rank=20),
    Command("logs", "Print or follow the logs of a run's ranks.", section="Runs", rank=30, module="log_commands"),
    Command("why", "Explain why a run is waiting.", section="Runs", rank=40),
    Command("clean", "Remove old runs and unused code.", section="Maintenance", rank=50),
)

ROUTES = (
    Route("get", "schema", "read", "submit_routes:show_schema"),
    Route("post", "clusters/{cluster}/jobs/actions", "execute", "routes:act_on_jobs"),
    Route("get", "runs", "read", "routes:list_runs"),
    Route("post", "runs", "execute", "submit_routes:submit_run", statuses=(200, 201)),
    Route("get", "cells", "read", "submit_routes:list_cells"),
    # It reads the source's files and starts the interpreter that the spec names: not a read-only
    # action.
    Route("post", "runs/preview", "execute", "submit_routes:preview_run", reads=True),
    Route("get", "runs/{run_id}", "read", "routes:show_run"),
    Route("post", "runs/{run_id}/cancel", "execute", "routes:cancel_run"),
    Route("post", "runs/{run_id}/hold", "execute", "routes:hold_run"),
    Route("post", "runs/{run_id}/release", "execute", "routes:release_run"),
    Route("post", "runs/{run_id}/requeue", "execute", "routes:requeue_run"),
    Route("post", "runs/{run_id}/change", "execute", "routes:change_run"),
    Route("post", "runs/{run_id}/delete", "execute", "routes:delete_run"),
    Route("get", "runs/{run_id}/spec", "read", "routes:show_spec"),
    Route("get", "runs/{run_id}/script", "read", "routes:show_script"),
    Route("get", "runs/{run_id}/code", "read", "routes:list_code"),
    Route("get", "runs/{run_id}/code/{path}", "read", "routes:show_code"),
    Route("get", "runs/{run_id}/cells", "read", "submit_routes:list_sent_cells"),
    Route("get", "runs/{run_id}/children", "read", "routes:list_children"),
    Route("get", "runs/{run_id}/why", "read", "routes:explain_wait"),
    Route("get", "runs/{run_id}/usage", "read", "routes:show_usage"),
    Route("get", "runs/{run_id}/overview", "read", "routes:show_run_overview"),
    Route("get", "runs/{run_id}/resources", "read", "routes:show_resources"),
    Route("get", "runs/{run_id}/access", "read", "routes:show_access"),
    Route("get", "runs/{run_id}/logs", "read", "log_routes:show_page"),
    Route("get", "runs/{run_id}/logs/search", "read", "log_routes:search_log"),
    Route("get", "runs/{run_id}/logs/raw", "read", "log_routes:download_log"),
    Route("get", "runs/{run_id}/logs/download", "read", "log_routes:download_lines"),
    Route("get", "runs/{run_id}/logs/histogram", "read", "log_routes:show_histogram"),
    Route("get", "runs/{run_id}/streams", "read", "log_routes:list_streams"),
)

FOLLOWS = (Follow("run_id", "log_routes:follow_log"),)

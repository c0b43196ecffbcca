"""Runs: submit, list, show, act, clean; their routes and commands."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command(
        "submit",
        "Send a notebook, script or command to a cluster.",
        section="Run code",
        rank=10,
        module="submit_commands",
    ),
    Command(
        "clone",
        "Send a run again: same code, options can be changed.",
        section="Run code",
        rank=20,
        module="submit_commands",
    ),
    Command("cancel", "End runs, or take them out of the queue.", section="Run code", rank=30),
    Command("hold", "Keep waiting runs from starting.", section="Run code", rank=40),
    Command("release", "Let held runs start.", section="Run code", rank=50),
    Command(
        "requeue", "End the running attempt and start the next one.", section="Run code", rank=60
    ),
    Command("change", "Change the time limit or queue of runs.", section="Run code", rank=70),
    Command(
        "adopt",
        "Take a job that was sent elsewhere into the list of runs.",
        section="Run code",
        rank=80,
    ),
    Command("runs", "List runs, newest first.", section="Look at runs", rank=10),
    Command("show", "Show all about one run.", section="Look at runs", rank=20),
    Command(
        "logs",
        "Print or follow the logs of a run's ranks.",
        section="Look at runs",
        rank=30,
        module="log_commands",
    ),
    Command("why", "Tell why a run waits.", section="Look at runs", rank=40),
    Command("clean", "Remove old runs, and code that no run needs.", section="Keep house", rank=50),
)

ROUTES = (
    Route("get", "schema", "read", "submit_routes:show_schema"),
    Route("post", "clusters/{cluster}/jobs/actions", "execute", "routes:act_on_jobs"),
    Route(
        "post",
        "clusters/{cluster}/jobs/{job}/adopt",
        "execute",
        "routes:adopt_job",
        statuses=(201,),
    ),
    Route("get", "runs", "read", "routes:list_runs"),
    Route("post", "runs", "execute", "submit_routes:submit_run", statuses=(200, 201)),
    Route("get", "cells", "read", "submit_routes:list_cells"),
    # It reads the source's files and starts the interpreter that the spec names, so who may only look may not do it.
    Route("post", "runs/preview", "execute", "submit_routes:preview_run"),
    Route("get", "runs/{run_id}", "read", "routes:show_run"),
    Route("post", "runs/{run_id}/cancel", "execute", "routes:cancel_run"),
    Route("post", "runs/{run_id}/hold", "execute", "routes:hold_run"),
    Route("post", "runs/{run_id}/release", "execute", "routes:release_run"),
    Route("post", "runs/{run_id}/requeue", "execute", "routes:requeue_run"),
    Route("post", "runs/{run_id}/change", "execute", "routes:change_run"),
    Route("get", "runs/{run_id}/spec", "read", "routes:show_spec"),
    Route("get", "runs/{run_id}/script", "read", "routes:show_script"),
    Route("get", "runs/{run_id}/code", "read", "routes:list_code"),
    Route("get", "runs/{run_id}/code/{path}", "read", "routes:show_code"),
    Route("get", "runs/{run_id}/cells", "read", "submit_routes:list_sent_cells"),
    Route("get", "runs/{run_id}/children", "read", "routes:list_children"),
    Route("get", "runs/{run_id}/why", "read", "routes:explain_wait"),
    Route("get", "runs/{run_id}/usage", "read", "routes:show_usage"),
    Route("get", "runs/{run_id}/access", "read", "routes:show_access"),
    Route("get", "runs/{run_id}/logs", "read", "log_routes:show_page"),
    Route("get", "runs/{run_id}/logs/search", "read", "log_routes:search_log"),
    Route("get", "runs/{run_id}/logs/raw", "read", "log_routes:download_log"),
    Route("get", "runs/{run_id}/streams", "read", "log_routes:list_streams"),
)

"""What runs print of their training: curves, comparison, a view in the terminal."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command("watch", "Draw the curves of a run in the terminal, live.", section="Runs", rank=34),
    Command("compare", "Compare the settings, code and numbers of runs.", section="Runs", rank=36),
)

ROUTES = (
    Route("get", "runs/{run_id}/series", "read", "routes:show_series"),
    Route("get", "training/summaries", "read", "routes:list_summaries"),
    Route("get", "training/compare", "read", "routes:compare"),
)

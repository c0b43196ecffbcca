"""What runs cost, and who used how much of a cluster."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command("cost", "Show what a run costs.", section="Runs", rank=28),
    Command("usage", "Show who used how many GPU-hours, and what they cost.", section="Clusters", rank=62),
)

ROUTES = (
    Route("get", "runs/{run_id}/cost", "read", "routes:show_cost"),
    Route("get", "usage", "read", "routes:report_usage"),
)

"""What runs cost, and who used how much of a cluster."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command("cost", "Show what a run costs.", section="Runs", rank=28),
    Command(
        "bill",
        "Show what AWS charges for a HyperPod cluster this month.",
        section="Clusters",
        rank=61,
        module="bill_commands",
    ),
    Command(
        "usage",
        "Show who used how many GPU-hours, and what they cost.",
        section="Clusters",
        rank=62,
    ),
)

ROUTES = (
    Route("get", "runs/{run_id}/cost", "read", "routes:show_cost"),
    Route("get", "usage", "read", "routes:report_usage"),
    Route("get", "clusters/{cluster}/bill", "read", "bill_routes:show_bill"),
    # Each request to Cost Explorer costs money.
    Route("post", "clusters/{cluster}/bill", "execute", "bill_routes:request_bill"),
)

"""Metrics of clusters and nodes, and what runs print and use."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command(
        "metrics",
        "Show the numbers that a run prints, and metrics of its hardware or of a cluster.",
        section="Clusters",
        rank=80,
    ),
)

ROUTES = (
    Route("get", "clusters/{cluster}/metrics", "read", "routes:show_metrics"),
    Route("get", "clusters/{cluster}/metrics/nodes", "read", "routes:list_node_metrics"),
)

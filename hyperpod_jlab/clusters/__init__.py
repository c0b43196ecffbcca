"""Clusters: configuration and live state from the scheduler and AWS, with their routes and commands."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command("clusters", "List the clusters.", section="Clusters", rank=10),
    Command("nodes", "List the nodes of a cluster.", section="Clusters", rank=20),
    Command("queues", "List the queues of a cluster.", section="Clusters", rank=50),
    Command("jobs", "List the jobs of all users on a cluster.", section="Clusters", rank=70),
    Command(
        "config",
        "Add or remove a cluster of the configuration file.",
        section="Maintenance",
        rank=20,
        module="config_commands",
    ),
)

ROUTES = (
    Route("get", "clusters", "read", "routes:list_clusters"),
    Route("get", "clusters/{cluster}", "read", "routes:show_cluster"),
    Route("post", "clusters/{cluster}/connect", "execute", "routes:connect_cluster"),
    Route("post", "clusters/{cluster}/disconnect", "execute", "routes:disconnect_cluster"),
    Route("get", "clusters/{cluster}/overview", "read", "routes:show_overview"),
    Route("get", "clusters/{cluster}/nodes", "read", "routes:list_nodes"),
    Route("get", "clusters/{cluster}/queues", "read", "routes:list_queues"),
    Route("get", "clusters/{cluster}/jobs", "read", "routes:list_jobs"),
    Route("get", "clusters/{cluster}/jobs/ended", "read", "routes:list_ended_jobs"),
    Route("get", "clusters/{cluster}/choices", "read", "routes:list_choices"),
)

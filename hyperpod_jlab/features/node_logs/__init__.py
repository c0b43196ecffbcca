"""Logs of HyperPod nodes in CloudWatch."""

from hyperpod_jlab.contributions import Command, Follow, Route

COMMANDS = (Command("node-logs", "Print or follow the logs of a HyperPod node.", section="Clusters", rank=90),)

ROUTES = (
    Route("get", "clusters/{cluster}/logs", "read", "routes:list_node_logs"),
    Route("get", "clusters/{cluster}/nodes/{node}/logs", "read", "routes:list_logs_of_node"),
    Route("get", "clusters/{cluster}/logs/page", "read", "routes:show_node_page"),
    Route("get", "clusters/{cluster}/logs/search", "read", "routes:search_node_logs"),
    Route("get", "clusters/{cluster}/logs/lines", "read", "routes:show_node_lines"),
)

FOLLOWS = (Follow("cluster", "routes:follow_node_logs"),)

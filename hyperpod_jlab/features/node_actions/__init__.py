"""Reboot, replace, drain and resume nodes."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("node", "Reboot, replace, drain or resume nodes.", section="Clusters", rank=30),)

ROUTES = (
    Route("get", "clusters/{cluster}/nodes/actions", "read", "routes:list_node_actions"),
    Route("post", "clusters/{cluster}/nodes/actions", "execute", "routes:act_on_nodes"),
    Route("post", "clusters/{cluster}/nodes/actions/preview", "execute", "routes:preview_on_nodes"),
)

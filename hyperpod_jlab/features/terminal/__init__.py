"""Terminals on nodes, and SSH configuration for login nodes."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command("terminal", "Open a terminal on a HyperPod node.", section="Clusters", rank=100),
    Command("ssh-config", "Print the SSH configuration for a cluster's login nodes.", section="Clusters", rank=110),
)

ROUTES = (
    # It starts nothing, but its response gives access to a shell on a node: not a read-only action.
    Route("post", "clusters/{cluster}/nodes/{node}/terminal", "execute", "routes:show_terminal"),
)

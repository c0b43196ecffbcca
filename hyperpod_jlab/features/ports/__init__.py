"""Ports and shells of running runs."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command(
        "forward", "Open a port of a running run on this machine.", section="Look at runs", rank=50
    ),
)

ROUTES = (Route("post", "runs/{run_id}/ports/{port}/open", "execute", "routes:open_port"),)

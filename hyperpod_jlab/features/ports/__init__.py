"""Ports and shells of running runs."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (
    Command("forward", "Forward a port of a running run to this machine.", section="Runs", rank=50),
)

ROUTES = (Route("post", "runs/{run_id}/ports/{port}/open", "execute", "routes:open_port"),)

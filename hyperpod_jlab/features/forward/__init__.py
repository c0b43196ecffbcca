"""Ports of running runs on this machine."""

from hyperpod_jlab.contributions import Command

COMMANDS = (Command("forward", "Forward a port of a running run to this machine.", section="Runs", rank=50),)

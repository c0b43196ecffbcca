"""Tasks for Code Editor."""

from hyperpod_jlab.contributions import Command

COMMANDS = (
    Command("init", "Put tasks for Code Editor into a project.", section="Keep house", rank=30),
)

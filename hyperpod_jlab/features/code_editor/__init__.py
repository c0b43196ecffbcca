"""Tasks for Code Editor."""

from hyperpod_jlab.contributions import Command

COMMANDS = (Command("init", "Add tasks for Code Editor to a project.", section="Maintenance", rank=30),)

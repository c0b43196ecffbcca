"""The command line, ``hpj``. Each command is a module of its own, imported when it is called."""

from hyperpod_jlab.contributions import Command

COMMANDS = (
    Command("demo", "Run a small example on this machine.", section="Maintenance", rank=60),
    Command("completion", "Print the completion script of a shell.", section="Maintenance", rank=80),
)

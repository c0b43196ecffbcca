"""The executed notebook: the cells as they were sent, with what a rank printed and displayed."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("notebook", "Save the executed notebook of a run, with its outputs.", section="Runs", rank=27),)

ROUTES = (Route("get", "runs/{run_id}/notebook", "read", "routes:show_notebook"),)

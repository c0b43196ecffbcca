"""For admins: mount an FSx file system for the users of a Studio domain. Planning is pure; only the executor changes AWS."""

from hyperpod_jlab.contributions import Command

CHECKS = ("aws_facts:steps",)
COMMANDS = (
    Command("admin", "Set up Studio storage, clusters and IAM (for administrators).", section="Maintenance", rank=70),
)

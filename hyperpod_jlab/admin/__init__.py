"""For admins: what wires a file system of FSx to the people of a Studio domain. Planning is pure; AWS is changed by its executor only."""

from hyperpod_jlab.contributions import Command

COMMANDS = (
    Command(
        "admin",
        "Set up Studio storage, clusters and IAM (for administrators).",
        section="Maintenance",
        rank=70,
    ),
)

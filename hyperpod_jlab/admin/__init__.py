"""For admins: what wires a file system of FSx to the people of a Studio domain. Planning is pure; AWS is changed by its executor only."""

from hyperpod_jlab.contributions import Command

COMMANDS = (
    Command(
        "admin",
        "Wire up FSx for Lustre and Studio (for administrators).",
        section="Keep house",
        rank=70,
    ),
)

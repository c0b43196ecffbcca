"""Checks of each step a run takes, from this machine to a node and back."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("doctor", "Check the installation and suggest fixes.", section="Maintenance", rank=10),)

ROUTES = (
    Route("get", "doctor", "read", "routes:show_examination"),
    # It writes a probe file to the storage partition, and queries clusters and AWS.
    Route("post", "doctor", "execute", "routes:begin_examination"),
    Route("get", "doctor/report", "read", "routes:show_doctor_report"),
    Route("post", "doctor/cancel", "execute", "routes:cancel_examination"),
)

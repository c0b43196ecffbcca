"""Events of HyperPod clusters."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("events", "List the events of a HyperPod cluster.", section="Clusters", rank=40),)

ROUTES = (
    Route("get", "clusters/{cluster}/events", "read", "routes:list_events"),
    Route("get", "clusters/{cluster}/events/{event}", "read", "routes:show_event"),
)

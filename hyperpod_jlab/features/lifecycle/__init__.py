"""The state of this space's lifecycle configuration."""

from hyperpod_jlab.contributions import Route

ROUTES = (
    Route("get", "lifecycle", "read", "routes:show_lifecycle"),
    Route("get", "lifecycle/log", "read", "routes:show_lifecycle_log"),
)

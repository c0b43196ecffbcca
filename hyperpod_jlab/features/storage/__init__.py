"""File systems, partitions, and files that are linked to S3."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("storage", "Show and manage the storage partition.", section="Maintenance", rank=40),)

ROUTES = (
    Route("get", "storage", "read", "routes:show_storage"),
    Route("post", "storage/link", "execute", "routes:link_storage"),
    Route("get", "storage/paths", "read", "routes:show_paths"),
    # It starts Lustre's program, so it is not a read-only action.
    Route("post", "storage/files/states", "execute", "routes:show_states"),
    Route("post", "storage/files/actions", "execute", "routes:move_files"),
)

"""Mount the cluster's FSx file system in the spaces of a Studio domain."""

from hyperpod_jlab.contributions import Route

ROUTES = (
    Route("get", "admin/rights", "read", "routes:show_admin_rights"),
    Route("get", "admin/choices", "read", "routes:list_admin_choices"),
    Route("get", "admin/mode", "read", "routes:show_admin_mode"),
    Route("get", "admin/work", "read", "routes:show_admin_work"),
    Route("get", "admin/steps", "read", "routes:list_admin_steps"),
    # It changes nothing, but sends requests to AWS for each profile and space of a domain.
    Route("post", "admin/plan", "execute", "routes:begin_admin_plan"),
    Route("post", "admin/apply", "execute", "routes:apply_admin_plan"),
    Route("post", "admin/cancel", "execute", "routes:cancel_admin_work"),
)

"""MLflow: the runs there that belong to runs of ours, and the servers of SageMaker."""

from hyperpod_jlab.contributions import Command, Route

COMMANDS = (Command("mlflow", "List MLflow servers, and open a run in MLflow.", section="Runs", rank=38),)

ROUTES = (
    Route("get", "runs/{run_id}/mlflow", "read", "routes:show_mlflow"),
    Route("post", "runs/{run_id}/mlflow/link", "execute", "routes:make_link"),
    Route("get", "mlflow/servers", "read", "routes:list_mlflow_servers"),
    Route("get", "clusters/{cluster}/mlflow", "read", "routes:suggest_mlflow_servers"),
)

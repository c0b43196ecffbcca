"""MLflow, if the run has a tracking server: MLFLOW_TRACKING_URI is set and mlflow can be imported. A server that fails never ends the training."""

import os


class Tracking:
    """Parameters and numbers of rank 0."""

    def __init__(self, rank):
        self._mlflow = None
        if rank == 0 and os.environ.get("MLFLOW_TRACKING_URI"):
            # A server that does not answer costs seconds, not minutes.
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
            self._try(self._start)

    def _start(self):
        import mlflow

        mlflow.start_run()  # takes MLFLOW_EXPERIMENT_NAME and MLFLOW_RUN_ID
        self._mlflow = mlflow

    def parameters(self, values):
        """Log the settings."""
        if self._mlflow:
            self._try(self._mlflow.log_params, values)

    def numbers(self, values, step=None):
        """Log numbers of a step."""
        if self._mlflow:
            self._try(self._mlflow.log_metrics, values, step=step)

    def end(self):
        """All is logged."""
        if self._mlflow:
            self._try(self._mlflow.end_run)

    def _try(self, call, *args, **options):
        try:
            call(*args, **options)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on without MLflow
            self._mlflow = None
            while cause := error.__cause__ or error.__context__:  # the first one says why
                error = cause
            words = f"{type(error).__name__}: {error}"
            print(f"MLflow is not used any more: {words[:200]}")

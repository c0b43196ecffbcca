"""Variables for MLflow in the ranks."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping

MLFLOW_URI, MLFLOW_EXPERIMENT = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
MLFLOW_CONTEXT = "MLFLOW_RUN_CONTEXT"
"""JSON of tags that MLflow gives to each run that is started; a name or a tag that the code gives itself wins."""

RUN_TAG, CLUSTER_TAG, ATTEMPT_TAG = "hyperpod.run_id", "hyperpod.cluster", "hyperpod.attempt"
COMMIT_TAG = "hyperpod.commit"


def mlflow_variables(settings: Mapping[str, Any], run_id: str, attempt: int) -> Dict[str, str]:
    """What MLflow in the ranks reads: server, experiment, and the tags and the name of each run that it starts.

    Args:
        settings: ``mlflow`` of the plan.
        run_id: The run, or the child of an array.
        attempt: The attempt.
    """
    variables = {MLFLOW_CONTEXT: json.dumps(mlflow_tags(settings, run_id, attempt))}
    for name, key in ((MLFLOW_URI, "tracking_uri"), (MLFLOW_EXPERIMENT, "experiment")):
        if settings.get(key):
            variables[name] = str(settings[key])
    return variables


def mlflow_tags(settings: Mapping[str, Any], run_id: str, attempt: int) -> Dict[str, str]:
    """The tags of a run of MLflow that belongs to an attempt of ours: how to find it from there, and its name."""
    cluster, commit = str(settings.get("cluster") or ""), settings.get("commit")
    tags = {
        RUN_TAG: run_id,
        CLUSTER_TAG: cluster,
        ATTEMPT_TAG: str(attempt),
        "mlflow.note.content": "Run `%s` on the cluster `%s`, attempt %d. To show it: `hpj show %s`"
        % (run_id, cluster, attempt, run_id),
    }
    if settings.get("run_name"):
        tags["mlflow.runName"] = str(settings["run_name"])
    if commit:
        tags.update({COMMIT_TAG: str(commit), "mlflow.source.git.commit": str(commit)})
    return tags

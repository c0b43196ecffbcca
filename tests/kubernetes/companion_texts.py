"""Manifests with what stands beside a job, for tests."""

from __future__ import annotations

import json

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: mine}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: IMAGE, command: [sh, -c, COMMAND]}]
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: beside, labels: {a: b}}
spec:
  ports: [{port: 8000}]
  selector: {app: beside}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: beside}
spec:
  replicas: 1
  selector: {matchLabels: {app: beside}}
  template:
    metadata: {labels: {app: beside}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: IMAGE, command: [python3, -m, http.server, "8000"]}]
"""
WORKERS = """
apiVersion: "kubeflow.org/v1"
kind: PyTorchJob
metadata: {name: mine}
spec:
  ELASTIC
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 0
          containers: [{name: pytorch, image: IMAGE, command: [sh, -c, COMMAND]}]
"""
ELASTIC = "elasticPolicy: {rdzvBackend: etcd, rdzvHost: beside, rdzvPort: 8000, minReplicas: 1, maxReplicas: 64}"
NAMED = "kind: ConfigMap\nmetadata: {name: NAME}\n"


def documents(*texts: str, image: str = "i", command: str = "true") -> str:
    """A file of these documents, image and command filled in."""
    text = "\n---\n".join(texts)
    return text.replace("IMAGE", image).replace("COMMAND", json.dumps(command))

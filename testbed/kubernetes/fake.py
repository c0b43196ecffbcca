"""fake.py KUBECONFIG nodes N | pods N [NAMESPACE]: nodes fake-0 ... that kwok keeps ready, or pods fake-0 ... for them.

Objects that are there already are left as they are. Eight connections; about as fast as the API server allows.
"""

import base64
import http.client
import json
import re
import ssl
import sys
import threading
import time
from pathlib import Path


def node(i):
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"fake-{i}",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": f"fake-{i}",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "p5.48xlarge",
                "topology.kubernetes.io/zone": f"zone-{i % 3}",
            },
        },
        "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(i):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"fake-{i}",
            "labels": {"app": "fake", "training.kubeflow.org/job-name": f"fake-{i // 8}"},
        },
        "spec": {
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            "containers": [
                {"name": "pytorch", "image": "localhost/fake:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
            ],
        },
    }


def main():
    kubeconfig, kind, count = Path(sys.argv[1]).read_text(), sys.argv[2], int(sys.argv[3])
    namespace = sys.argv[4] if len(sys.argv) > 4 else "default"
    server = re.search(r'server: "https://([^"]+)"', kubeconfig)[1]
    token = re.search(r'token: "([^"]+)"', kubeconfig)[1]
    ca = base64.b64decode(re.search(r"certificate-authority-data: ([^}\s]+)", kubeconfig)[1]).decode()
    path, make = ("/api/v1/nodes", node) if kind == "nodes" else (f"/api/v1/namespaces/{namespace}/pods", pod)
    errors, started = [], time.monotonic()

    def work(first):
        try:
            connection = http.client.HTTPSConnection(server, context=ssl.create_default_context(cadata=ca))
            for i in range(first, count, 8):
                connection.request(
                    "POST",
                    path,
                    json.dumps(make(i)),
                    {"Authorization": "Bearer " + token, "Content-Type": "application/json"},
                )
                answer = connection.getresponse()
                text = answer.read()
                if answer.status not in (201, 409):
                    raise RuntimeError(f"{answer.status} {text[:300]}")
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit(f"fake.py: {errors[0]}")
    print(f"{count} {kind} in {time.monotonic() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()

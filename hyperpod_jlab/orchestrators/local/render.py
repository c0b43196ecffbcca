"""What the embedded cluster will do with a run, as a document for the preview and the bundle. Pure."""

from __future__ import annotations

import json

from hyperpod_jlab.orchestrators.protocol import Rendered, RenderInput


def render(given: RenderInput) -> Rendered:
    """The run's document: each node's launcher with its arguments, and the limits that the supervisor keeps."""
    spec = given.spec
    launcher = str(given.paths.there / given.bundle / "launcher.py")
    nodes = [
        {
            "name": f"local-{rank}",
            "command": [
                given.python or "python3",
                launcher,
                "node",
                f"--node-rank={rank}",
                f"--nodes={spec.resources.nodes}",
                "--master-addr=127.0.0.1",
                "--master-port=<a free port>",
            ],
        }
        for rank in range(spec.resources.nodes)
    ]
    document = {
        "run_id": given.run_id,
        "name": given.name,
        "launcher": spec.resolved_launcher,
        "processes_per_node": spec.resources.processes,
        "gpus_per_node": spec.resources.accelerator.count,
        "launcher_sha256": given.seal.digest,
        "nodes": nodes,
        "time_limit": spec.time_limit,
        "stop_grace": spec.stop_grace,
        "max_restarts": spec.max_restarts,
        "after": spec.after,
        "array": spec.array,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return Rendered("local.json", text, "json")

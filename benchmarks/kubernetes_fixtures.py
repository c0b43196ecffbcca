"""What the Kubernetes benchmarks share: a stand-in API server with many pods, in a process of its own, over TLS as a real one.

It knows GET of a pod and GET of its log. Pods whose number is below `busy` print a line with the time (Unix nanoseconds) 20 times a second; the others print one and are quiet.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

NAMESPACE = "bench"
EACH = 0.05
"""Seconds between a busy pod's lines."""


@contextlib.contextmanager
def stand_in(busy: int) -> Iterator[Path]:
    """The server; gives the kubeconfig for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = (
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=bench"
        )
        words = ["openssl", *options.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
        words += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
        subprocess.run(words, capture_output=True, check=True, timeout=60)
        server = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(busy)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            path = folder / "kubeconfig"
            path.write_text(_kubeconfig(port, folder / "ca.pem"))
            yield path
        finally:
            server.kill()
            server.wait()


def _kubeconfig(port: int, authority: Path) -> str:
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(authority)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [
                {"name": "c", "context": {"cluster": "k", "user": "u", "namespace": NAMESPACE}}
            ],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "bench"}}],
        }
    )


def pod(name: str) -> bytes:
    """A running pod."""
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = {"name": "c", "restartCount": 0, "containerID": f"containerd://{name}", "state": state}
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1"}
    spec = {"restartPolicy": "Never", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    found = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return json.dumps(
        found | {"status": {"phase": "Running", "containerStatuses": [status]}}
    ).encode()


class _Server:
    def __init__(self, busy: int) -> None:
        self.busy = busy

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                target = urlsplit(head.split(" ", 2)[1])
                name = target.path.split("/")[-1]
                if name == "log":
                    query = parse_qs(target.query)
                    await self.log(target.path.split("/")[-2], "timestamps" in query, writer)
                    return
                body = pod(name) if "/pods/" in target.path else b"{}"
                lines = ["HTTP/1.1 200 OK", "Content-Type: application/json"]
                lines += [f"Content-Length: {len(body)}", "", ""]
                writer.write("\r\n".join(lines).encode() + body)
                await writer.drain()
        writer.close()

    async def log(self, name: str, stamps: bool, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        busy = int(name.removeprefix("p-")) < self.busy
        while not writer.is_closing():
            now = time.time_ns()
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
            stamp = f"{at}.{now % 10**9:09d}Z " if stamps else ""
            line = f"{stamp}{now}\n".encode()
            writer.write(b"%x\r\n%b\r\n" % (len(line), line))
            await writer.drain()
            await asyncio.sleep(EACH if busy else 3600)


async def _main(folder: Path, busy: int) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    server = await asyncio.start_server(_Server(busy).serve, "127.0.0.1", 0, ssl=tls, backlog=2000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))

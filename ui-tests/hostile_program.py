"""A program of a run whose page tries to get at Jupyter. ``hostile_program.py PORT``; the page begins with a click on its button."""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kubernetes"))

from port_program import Answer  # type: ignore[import-not-found]

PAGE = Path(__file__).parent / "hostile_page"
KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Hostile(Answer):  # type: ignore[misc]
    """Files of the page, with headers that would help it; everything else as the peaceful program says it."""

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        """Answer."""
        file = PAGE / (self.path.partition("?")[0].lstrip("/") or "index.html")
        if file.parent != PAGE or not file.is_file():
            super().do_GET()
            return
        data = file.read_bytes()
        headers = {
            "Content-Type": KINDS[file.suffix],
            "Content-Length": str(len(data)),
            "Content-Security-Policy": "sandbox allow-scripts allow-same-origin allow-popups allow-forms",
            "Service-Worker-Allowed": "/",
            "Clear-Site-Data": '"cookies", "storage"',
            "Set-Cookie": "_xsrf=evil; Path=/",
        }
        self.begin(200, headers)
        self.wfile.write(data)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hostile).serve_forever()

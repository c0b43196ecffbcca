"""A program of a run that listens: it says what it was asked. Runs with the image's own Python, alone."""

import http.server
import json
import os


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/big":
            self.answer(b"x" * 5_000_000)
        else:
            length = int(self.headers.get("Content-Length", 0))
            said = {
                "method": self.command,
                "path": self.path,
                "headers": list(self.headers.items()),
                "body": self.rfile.read(length).decode(),
                "node": os.environ.get("NODE_RANK"),
            }
            self.answer(json.dumps(said).encode())

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - the library's names

    def begin(self, status, headers, reason=None):
        self.send_response(status, reason)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, data):
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        headers["Set-Cookie"] = "own=1; Path=/; Domain=example.com"
        self.begin(200, headers, "Very well")
        self.wfile.write(data)

    def log_message(self, *words):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", 6006), Answer).serve_forever()

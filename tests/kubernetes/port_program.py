"""A program of a run that listens: it says what it was asked, and echoes WebSockets. Runs with the image's own Python, alone."""

import base64
import hashlib
import http.server
import json
import os
import time


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            self.echo()
        elif self.path == "/slow":
            self.slowly()
        elif self.path == "/away":
            self.begin(302, {"Location": "/there?x=1", "Content-Length": "0"})
        elif self.path == "/big":
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

    def slowly(self):
        self.begin(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        for number in range(3):
            self.wfile.write(b"data: %d\n\n" % number)
            self.wfile.flush()
            time.sleep(0.3)
        self.close_connection = True

    def echo(self):
        """Sends each frame back; it knows frames only as far as is needed here."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        digest = hashlib.sha1(key.encode()).digest()
        accept = base64.b64encode(digest).decode()
        self.begin(
            101, {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept}
        )
        opcode = 0
        while opcode != 8:
            first, second = self.rfile.read(2)
            opcode, length = first & 15, second & 127
            if length == 126:
                length = int.from_bytes(self.rfile.read(2), "big")
            mask, data = self.rfile.read(4), self.rfile.read(length)
            data = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
            size = bytes([length]) if length < 126 else bytes([126]) + length.to_bytes(2, "big")
            self.wfile.write(bytes([first]) + size + data)
        self.close_connection = True

    def log_message(self, *words):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", 6006), Answer).serve_forever()

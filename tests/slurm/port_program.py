"""A program of a run that listens on all addresses of its node and prints its ports. The first byte of a connection says what is wanted."""

import hashlib
import http.server
import socketserver
import sys
import threading

BIG = bytes(range(256)) * 40_960 + b"end"


class Handler(socketserver.StreamRequestHandler):
    rbufsize = 0  # what follows the first byte is read from the socket

    def handle(self):
        wanted = self.rfile.read(1)
        if wanted == b"B":
            self.wfile.write(BIG)
        elif wanted == b"H":  # all until the other side has no more to say
            data = self.rfile.read()
            self.wfile.write(b"%d %s" % (len(data), hashlib.sha256(data).hexdigest().encode()))


socketserver.ThreadingTCPServer.daemon_threads = True
plain = socketserver.ThreadingTCPServer(("", 0), Handler)
pages = http.server.ThreadingHTTPServer(("", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=plain.serve_forever, daemon=True).start()
print(plain.server_address[1], pages.server_address[1])
sys.stdout.flush()
pages.serve_forever()

"""forward.py PID PORT FILE [WANTED]: connections to a loopback port of this network namespace go to another one's.

Listens on 127.0.0.1:WANTED (a free port when it is 0 or not given), writes the number to FILE, and connects each connection
to 127.0.0.1:PORT inside the network namespace of process PID.
"""

import contextlib
import ctypes
import os
import socket
import sys
import threading
from pathlib import Path

CLONE_NEWNET = 0x40000000


def pump(source: socket.socket, target: socket.socket):
    """All bytes of one direction; the end of one is the end of both."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def serve(client: socket.socket, port: int):
    """One connection."""
    try:
        inside = socket.create_connection(("127.0.0.1", port), timeout=5)
    except OSError:
        client.close()
        return
    inside.settimeout(None)
    back = threading.Thread(target=pump, args=(inside, client), daemon=True)
    back.start()
    pump(client, inside)
    back.join()
    client.close()
    inside.close()


def main():
    pid, port, path = sys.argv[1:4]
    wanted = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    server = socket.create_server(("127.0.0.1", wanted), backlog=512)  # stays in this namespace
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    # For threads and sockets that are made from now on.
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
    new = Path(path + ".new")
    new.write_text(str(server.getsockname()[1]))
    new.replace(path)
    while True:
        client, _ = server.accept()
        threading.Thread(target=serve, args=(client, int(port)), daemon=True).start()


if __name__ == "__main__":
    main()

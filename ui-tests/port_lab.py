"""JupyterLab whose embedded cluster lets a browser in to ports of runs, and a program on one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab_server import LabServer, free_port

_CONFIG = f"""
import sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
from tests import ports_here
ports_here.install()
"""


@contextmanager
def port_lab(home: Path) -> Iterator[LabServer]:
    """A server whose runs on this machine have ports (see tests/ports_here.py)."""
    server = LabServer(home)
    config = home / ".jupyter" / "jupyter_server_config.py"
    config.parent.mkdir(exist_ok=True)
    config.write_text(_CONFIG)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        server.cancel_all()


def run_hostile(server: LabServer) -> tuple[str, int]:
    """A run with the hostile program; its id and port."""
    port = free_port()
    program = Path(__file__).parent / "hostile_program.py"
    run_id = server.hpj(
        "submit", "--name", "hostile", "-c", f"exec {sys.executable} {program} {port}"
    )
    return run_id, port

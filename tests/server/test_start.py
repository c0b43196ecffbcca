"""What the server's start is spared."""

import subprocess
import sys

PROGRAM = """
import sys
from jupyter_server.serverapp import ServerApp
app = ServerApp(allow_unauthenticated_access=False, jpserver_extensions={"hyperpod_jlab": True})
app.initialize(argv=["--allow-root"], find_extensions=False, new_httpserver=False)
assert "hyperpod_jlab.server.app" in sys.modules
heavy = ("pydantic", "hyperpod_jlab.services", "hyperpod_jlab.logs", "hyperpod_jlab.capture", "sqlite3")
print([name for name in heavy if name in sys.modules and name not in before])
"""


def test_nothing_heavy_is_imported_before_it_is_needed(home):
    program = "import sys\nimport jupyter_server.serverapp\nbefore = set(sys.modules)\n" + PROGRAM
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=home)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr[-2000:]

"""What the server's start is spared."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.server

PROGRAM = """
import sys
from jupyter_server.serverapp import ServerApp
app = ServerApp(allow_unauthenticated_access=False, jpserver_extensions={"hyperpod_jlab": True})
app.initialize(argv=["--allow-root"], find_extensions=False, new_httpserver=False)
assert "hyperpod_jlab.server.app" in sys.modules
heavy = ("pydantic", "hyperpod_jlab.engines", "hyperpod_jlab.logs", "hyperpod_jlab.capture", "sqlite3")
print([name for name in heavy if name in sys.modules and name not in before])
"""


def test_nothing_heavy_is_imported_before_it_is_needed(home):
    program = "import sys\nimport jupyter_server.serverapp\nbefore = set(sys.modules)\n" + PROGRAM
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=home)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr[-2000:]


STARTED = """
import asyncio
import sys
from jupyter_server.serverapp import ServerApp
app = ServerApp(allow_unauthenticated_access=False, jpserver_extensions={"hyperpod_jlab": True})
app.initialize(argv=["--allow-root"], find_extensions=False, new_httpserver=False)
before = "boto3" in sys.modules
asyncio.run(app.extension_manager.start_all_extensions())  # its end waits for threads
print(before, "boto3" in sys.modules)
"""


@pytest.mark.parametrize("in_studio", [True, False])
def test_what_aws_needs_is_loaded_once_a_server_in_studio_has_started(home, tmp_path, in_studio):
    metadata = tmp_path / "metadata.json"
    if in_studio:
        arn = "arn:aws:sagemaker:us-west-2:123456789012:app/d-0123456789ab/alice/JupyterLab/default"
        metadata.write_text(json.dumps({"DomainId": "d-0123456789ab", "ResourceArn": arn}))
    done = subprocess.run(
        [sys.executable, "-c", STARTED],
        env={**os.environ, "RESOURCE_METADATA_FILE": str(metadata)},
        capture_output=True,
        text=True,
        cwd=home,
        check=False,
    )
    assert done.stdout.strip() == f"False {in_studio}", done.stdout + done.stderr[-2000:]

"""The demo's JupyterLab: it comes up with the notebook and the panel, and ends with its terminal."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from tests.examples.conftest import ROOT

SERVE = "import sys; sys.path.insert(0, 'scripts'); import demo_lab; sys.exit(demo_lab.serve())"


@pytest.mark.timeout(120)
def test_it_serves_the_notebook_and_ends_when_the_terminal_goes(environment):
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as demo:
        url = next(found[0] for line in demo.stdout if (found := re.findall(r"http\S+", line)))
        base, token = url.partition("/lab/")[0], url.rpartition("token=")[2]

        def ask(path):
            headers = {"Authorization": f"token {token}"}
            request = urllib.request.Request(f"{base}/{path}", headers=headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)

        assert ask("api/contents/train_ddp.ipynb?content=0")["type"] == "notebook"
        assert ask("hyperpod/api/v1/version")["api"] == 1
        layout = ask("lab/api/workspaces/hyperpod-demo")["data"]["layout-restorer:data"]
        assert layout["left"]["current"] == "hyperpod-panel"
        demo.send_signal(signal.SIGHUP)
        assert demo.wait(30) == 128 + signal.SIGHUP
    with pytest.raises(OSError, match="refused"):
        ask("api")

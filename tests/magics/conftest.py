"""The magics over a local cluster in folders of the test's own: in this process, and in a real kernel."""

from __future__ import annotations

import os
import queue
import re
import time
from dataclasses import dataclass, field

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_client.manager import start_new_kernel
from traitlets.config import Config

import hyperpod_jlab
from hyperpod_jlab import api

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

CARD = "application/vnd.hyperpod.run+json"


@pytest.fixture
def project(home, monkeypatch):
    """A folder to work in, with a cluster of its own; runs left behind are cancelled."""
    config = home / "config.toml"
    config.write_text("[clusters.local]\nslots = 8\n")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    folder = home / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    api._hyperpod.cache_clear()
    yield folder
    for run in hyperpod_jlab.runs(limit=None):
        if run.state in {"submitting", "waiting", "running"}:
            run.cancel().wait(30)
    api._hyperpod.cache_clear()


@dataclass
class Shown:
    """What a cell showed."""

    out: str = ""
    err: str = ""
    data: list[dict] = field(default_factory=list)
    error: str | None = None
    seconds: float = 0.0

    @property
    def card(self):
        """The one run that it showed."""
        [card] = [data[CARD] for data in self.data if CARD in data]
        return card


class Shell:
    """IPython in this process."""

    def __init__(self, shell):
        self.shell = shell

    def run(self, text):
        """Run a cell."""
        with capture_output() as captured:
            result = self.shell.run_cell(text, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        lines = error._render_traceback_() if hasattr(error, "_render_traceback_") else [repr(error)]
        return Shown(
            captured.stdout,
            captured.stderr,
            [output.data for output in captured.outputs],
            "\n".join(lines) if error is not None else None,
        )


@pytest.fixture
def shell(project):
    """Plain IPython with the extension loaded."""
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    made = Shell(InteractiveShell.instance(config=config))
    assert made.run("%load_ext hyperpod_jlab").error is None
    yield made
    made.shell.history_manager.end_session()
    InteractiveShell.clear_instance()


class Kernel:
    """A real kernel of Jupyter's."""

    def __init__(self, manager, client):
        self.manager = manager
        self.client = client

    def start(self, text, cell_id=None):
        """Begin to run a cell; returns the message's id."""
        content = {"code": text, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": True}
        metadata = {} if cell_id is None else {"cellId": cell_id}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def run(self, text, cell_id=None, timeout=60):
        """Run a cell."""
        return self.finish(self.start(text, cell_id), timeout)

    def finish(self, identity, timeout=60, until=None):
        """Collect what a cell shows, until it is done, or until the text is on its stdout."""
        shown, begin = Shown(), time.monotonic()
        while time.monotonic() - begin < timeout:
            try:
                message = self.client.get_iopub_msg(timeout=timeout)
            except queue.Empty:
                break
            if message["parent_header"].get("msg_id") != identity:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                shown.out += _COLOUR.sub("", content["text"])
            elif kind == "stream":
                shown.err += _COLOUR.sub("", content["text"])
            elif kind in {"display_data", "execute_result"}:
                shown.data.append(content["data"])
            elif kind == "error":
                shown.error = "\n".join(content["traceback"])
            elif kind == "status" and content["execution_state"] == "idle":
                shown.seconds = time.monotonic() - begin
                return shown
            if until is not None and until(shown):
                return shown
        raise AssertionError(f"the cell is not done: {shown}")

    def offered(self, text, below=""):
        """What the Tab key offers at the end of the text, with more text below."""
        reply = self.client.complete(text + below, len(text), reply=True, timeout=30)["content"]
        return [text[: reply["cursor_start"]] + match for match in reply["matches"]]


@pytest.fixture
def kernel(project):
    """A kernel for the notebook train.ipynb, with the extension loaded."""
    env = {**os.environ, "JPY_SESSION_NAME": str(project / "train.ipynb")}
    manager, client = start_new_kernel(kernel_name="python3", env=env, cwd=str(project))
    started = Kernel(manager, client)
    shown = started.run("%load_ext hyperpod_jlab")
    assert (shown.out, shown.err, shown.error) == ("", "", None)
    yield started
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def save(project):
    """Saves cells as the notebook, with ids c1, c2, ..."""

    def write(*texts, name="train.ipynb", tags=()):
        notebook = nbformat.v4.new_notebook()
        for number, text in enumerate(texts, 1):
            cell = nbformat.v4.new_code_cell(text, id=f"c{number}")
            cell.metadata["tags"] = ["setup"] if number in tags else []
            notebook.cells.append(cell)
        nbformat.write(notebook, project / name)

    return write


def log_of(run_id):
    """The lines of a run's log once it has ended."""
    run = hyperpod_jlab.get(run_id).wait(60)
    return [str(line) for line in run.logs()]

"""``%%hyperpod`` in a real kernel, whose event loop is running."""

from __future__ import annotations

import time

from jupyter_client.manager import start_new_kernel

import hyperpod_jlab

from .conftest import CARD, Kernel, log_of

AS_IT_IS = """\
%%hyperpod
from __future__ import annotations
import asyncio, own
await asyncio.sleep(0.01)
x = !echo shell
print(x, own.word)
def f(a: not_there): ...
raise ValueError('here')
"""


def test_a_cell_returns_before_its_run_ends_and_its_output_is_the_run(kernel, save, tmp_path):
    save("1", "%%hyperpod --nodes 2 --processes-per-node 2\nimport os")
    gate = tmp_path / "gate"
    text = f"%%hyperpod --nodes 2 --processes-per-node 2 --launcher python -o run\nimport os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)\n\nprint('hi', os.environ['RANK'])"
    shown = kernel.run(text, "c2")
    assert (shown.out, shown.err, shown.error) == ("", "", None)
    run_id = shown.card["run_id"]
    assert shown.data == [
        {
            CARD: {"version": 1, "run_id": run_id, "name": "train"},
            "text/plain": f"run 'train', its log: hpj logs {run_id}",
        }
    ]
    assert hyperpod_jlab.get(run_id).state in {"waiting", "running"}
    assert kernel.run("run").data == shown.data
    gate.touch()
    assert sorted(log_of(run_id)) == [f"{rank}|hi {rank}" for rank in range(4)]
    spec = hyperpod_jlab.get(run_id).bundle / "code" / "train.ipynb"
    assert (spec / "cell-02.py").read_text() == text


def test_the_kernel_can_await_the_run_while_others_work(kernel):
    kernel.run("%%hyperpod -o run\nprint('done')")
    shown = kernel.run("(await run).state")
    assert shown.data[-1]["text/plain"] == "'succeeded'"


def test_a_cell_as_it_is_runs_in_the_job(kernel, project):
    (project / "own.py").write_text("word = 'from the project'\n")
    run_id = kernel.run(AS_IT_IS).card["run_id"]
    run = hyperpod_jlab.get(run_id).wait(60)
    assert "0|['shell'] from the project" in log_of(run_id)
    assert run.view.status.reason.endswith("raised ValueError in cell 2 line 8: here")
    assert any('.ipynb/cell-02.py", line 8' in line for line in log_of(run_id))


def test_waiting_ends_with_the_state(kernel):
    shown = kernel.run("%%hyperpod --wait\nprint(1)")
    run_id = shown.card["run_id"]
    assert shown.error is None
    assert shown.out.startswith(f"{run_id} succeeded after ")
    failed = kernel.run("%%hyperpod --wait\nraise SystemExit(3)")
    assert failed.error.startswith(f"{failed.card['run_id']} failed after ")
    assert "[run_failed]" in failed.error


def test_following_prints_the_log(kernel):
    shown = kernel.run(
        "%%hyperpod --nodes 2 --launcher python --follow\nimport os\nprint('h\u00e9', os.environ['RANK'])"
    )
    assert shown.error is None
    lines = shown.out.splitlines()
    assert sorted(lines[:2]) == ["0|h\u00e9 0", "1|h\u00e9 1"]
    assert "succeeded after" in lines[2]


def test_an_interrupt_ends_the_waiting_and_not_the_run(kernel):
    identity = kernel.start("%%hyperpod --wait\nimport time\ntime.sleep(4)\nprint('still here')")
    run_id = kernel.finish(identity, until=lambda shown: shown.data).card["run_id"]
    wait_for_start(run_id)
    kernel.manager.interrupt_kernel()
    begin = time.monotonic()
    shown = kernel.finish(identity)
    assert time.monotonic() - begin < 3
    assert f"interrupted; the run {run_id} continues" in shown.error
    assert f"continue with: hpj logs -f {run_id}" in shown.error
    assert "Traceback" not in shown.error
    assert kernel.run("1 + 1").data[-1]["text/plain"] == "2"
    assert log_of(run_id) == ["0|still here"]
    assert hyperpod_jlab.get(run_id).state == "succeeded"


def test_an_interrupt_ends_following_too(kernel):
    identity = kernel.start("%%hyperpod --follow\nimport time\nprint('one')\ntime.sleep(4)\nprint('two')")
    shown = kernel.finish(identity, until=lambda shown: "0|one" in shown.out)
    kernel.manager.interrupt_kernel()
    assert "continues" in kernel.finish(identity).error
    assert log_of(shown.card["run_id"]) == ["0|one", "0|two"]


def test_a_restart_of_the_kernel_leaves_the_run(kernel):
    run_id = kernel.run("%%hyperpod\nimport time\ntime.sleep(5)\nprint('still here')").card["run_id"]
    wait_for_start(run_id)
    kernel.manager.restart_kernel(now=False)
    kernel.client.wait_for_ready(timeout=60)
    kernel.run("%load_ext hyperpod_jlab")
    assert f"{run_id}  cell" in kernel.run("%hyperpod").out
    assert kernel.run(f"%hyperpod logs -f {run_id}").out == "0|still here\n"
    assert hyperpod_jlab.get(run_id).state == "succeeded"


def test_errors_are_words_and_send_nothing(kernel):
    shown = kernel.run("%%hyperpod --nods 2\nprint(1)")
    assert shown.error == "error: unknown option --nods [usage]\nhint: did you mean '--nodes'?"
    assert (shown.out, shown.err, shown.data) == ("", "", [])
    assert hyperpod_jlab.runs(limit=None) == []


def test_the_tab_key_offers_options_and_values(kernel):
    run_id = kernel.run("%%hyperpod\nprint(1)").card["run_id"]
    assert kernel.offered("%%hyperpod --no") == [
        "%%hyperpod --nodes",
        "%%hyperpod --no-project-files",
        "%%hyperpod --no-auto-resume",
        "%%hyperpod --no-keep-companions",
    ]
    assert kernel.offered("%%hyperpod --nodes 2 --launcher to") == ["%%hyperpod --nodes 2 --launcher torchrun"]
    assert kernel.offered("%%hyperpod --launcher=to") == ["%%hyperpod --launcher=torchrun"]
    assert kernel.offered("%%hyperpod --cluster ") == ["%%hyperpod --cluster local"]
    assert f"%%hyperpod --after {run_id}" in kernel.offered("%%hyperpod --after 2")
    assert kernel.offered("%hyperpod ca") == ["%hyperpod cancel"]
    assert kernel.offered(f"%hyperpod logs {run_id[:12]}") == [f"%hyperpod logs {run_id}"]
    assert kernel.offered("%hyperpod logs --ta") == ["%hyperpod logs --tail"]
    assert "%%hyperpod" in kernel.offered("%%hyperp")
    below = "\nimport os\nos.path"
    assert kernel.offered("%%hyperpod --time", below) == ["%%hyperpod --time-limit"]
    assert "%%hyperpod\nimport os\nos.pathsep" in kernel.offered("%%hyperpod\nimport os\nos.paths")
    assert "--dry-run" not in kernel.offered("%%hyperpod -- --dr")


def wait_for_start(run_id):
    """Wait until the run runs."""
    end = time.monotonic() + 30
    while hyperpod_jlab.get(run_id).state != "running":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_notebook_of_code_editor(project, save, monkeypatch):
    """VS Code starts the kernel by itself, and says in a variable which notebook it is."""
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(project))
    try:
        kernel = Kernel(manager, client)
        path = project / "editor.ipynb"
        kernel.run(f"__vsc_ipynb_file__ = {str(path)!r}\n%load_ext hyperpod_jlab")
        text = "%%hyperpod --nodes 2 --launcher python\nimport os\n# a comment\nprint('node', os.environ['RANK'])"
        save("1", text, name="editor.ipynb")
        shown = kernel.run(text)
        assert shown.error is None
        run_id = shown.card["run_id"]
        assert f"hpj logs {run_id}" in shown.data[0]["text/plain"]
        assert sorted(log_of(run_id)) == ["0|node 0", "1|node 1"]
        assert hyperpod_jlab.get(run_id).view.name == "editor"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)

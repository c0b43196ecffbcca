"""A Slurm user's own script, sent as it was written, on a real cluster over both transports."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import Any

import pytest

from hyperpod_jlab.core.errors import HyperpodError, RefusedError
from hyperpod_jlab.core.run import Run
from tests.slurm.fault_fixtures import start_now
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod
from tests.slurm.native_fixtures import bundle_of, log, log_lines, preview, request_for, send, told

SHEBANG = "#!/bin/bash\n"

here_only = pytest.mark.parametrize("transport", ["here"], indirect=True)
"""Nothing in it depends on the way to the cluster."""


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the queue is not taken for another process's, which is good for seconds."""
    monkeypatch.setattr("hyperpod_jlab.engines.slurm.queue.SHARED_TTL_S", 0.0)


class TestAsWritten:
    @pytest.mark.both_transports
    async def test_file_name_arguments_and_folder(self, session: SlurmSession) -> None:
        text = SHEBANG + '#SBATCH -N 2\ncat data.txt; printf "<%s>\\n" "$@"; srun hostname\n'
        (session.folder / "data.txt").write_text("the project's file\n")
        run_id = await send(session, text, args=["a", "b c", "$(touch x);`id`\n'\""])
        run = await session.ended(run_id)
        assert run.state == "succeeded"
        lines = await log_lines(session, run_id)
        assert lines[:5] == ["the project's file", "<a>", "<b c>", "<$(touch x);`id`", "'\">"]
        assert sorted(lines[5:]) == list(run.status.attempts[0].nodes)
        assert len(lines[5:]) == run.nodes == 2
        assert told(session, session.job_of(run), "Name") == "run.sbatch"
        assert told(session, session.job_of(run), "Comment") == f"hyperpod:{run_id}"

    async def test_odd_names_of_files(self, session: SlurmSession) -> None:
        names = ["my job (1) ä%j.sbatch", "-x.slurm", "a'b\"c $HOME.sh"]
        for run_id in [await send(session, SHEBANG + "echo $0\n", f"./{name}") for name in names]:
            run = await session.ended(run_id)
            assert run.state == "succeeded"
            assert (await log(session, run_id)).endswith("/slurm_script")
            name = bundle_of(session, run_id).joinpath("code").iterdir()
            assert told(session, session.job_of(run), "Name") == next(name).name

    @pytest.mark.both_transports
    async def test_bytes_that_are_no_text_come_through(self, session: SlurmSession) -> None:
        script = b"#!/bin/bash\n# caf\xe9\nprintf '\xff\\n' | od -An -tx1\n"
        run_id = await send(session, script)
        await session.ended(run_id)
        assert (bundle_of(session, run_id) / "code" / "run.sbatch").read_bytes() == script
        assert (await log(session, run_id)).split() == ["ff", "0a"]

    async def test_the_scripts_own_comment_stays_behind_the_id(self, session: SlurmSession) -> None:
        text = SHEBANG + '#SBATCH --comment="my own, 50% = all"\ntrue\n'
        run_id = await send(session, text)
        run = await session.ended(run_id)
        comment = told(session, session.job_of(run), "Comment")
        assert comment == f"hyperpod:{run_id} my own, 50% = all"

    async def test_names_and_options_in_the_script_count(self, session: SlurmSession) -> None:
        text = SHEBANG + "#SBATCH --job-name=mine -t 7\n#SBATCH -D /tmp\npwd\n"
        run_id = await send(session, text + "# no output line, and /tmp is no place to read\n")
        run = await session.ended(run_id)
        job = session.job_of(run)
        assert run.name == "mine"
        assert told(session, job, "Name") == "mine"
        assert told(session, job, "TimeLimit") == "7:00"
        assert told(session, job, "WorkDir") == "/tmp"

    async def test_what_is_asked_for_here_outranks_the_script(self, session: SlurmSession) -> None:
        text = SHEBANG + "#SBATCH --job-name=mine -t 7 -N 1\nsrun hostname\n"
        run_id = await send(session, text, name="run.sbatch", time_limit=480, resources={"nodes": 2})
        run = await session.ended(run_id)
        assert told(session, session.job_of(run), "TimeLimit") == "8:00"
        assert len(await log_lines(session, run_id)) == 2

    async def test_variables_and_the_senders_environment(self, session: SlurmSession) -> None:
        variables = {"SEED": "1 2$(touch x);", "EMPTY": ""}
        text = SHEBANG + 'echo "<$SEED><$EMPTY>"; srun printenv SEED\n'
        run_id = await send(session, text, environment={"variables": variables})
        await session.ended(run_id)
        assert await log_lines(session, run_id) == ["<1 2$(touch x);><>", "1 2$(touch x);"]

    @here_only
    async def test_keys_of_the_server_stay_here(self, session: SlurmSession, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JPY_API_TOKEN", "secret")
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
        monkeypatch.setenv("TEAM_SETTING", "goes along")
        run_id = await send(session, SHEBANG + "env\n")
        await session.ended(run_id)
        assert "TEAM_SETTING=goes along" in await log_lines(session, run_id)
        assert "secret" not in await log(session, run_id)

    async def test_the_preview_shows_sbatchs_options_and_the_text(self, session: SlurmSession) -> None:
        found = await preview(session, SHEBANG + "#SBATCH -p dev\ntrue\n", args=["x"], qos="normal")
        assert '"--qos=normal"' in found.rendered.text
        assert f'"--comment=hyperpod:{found.run_id}"' in found.rendered.text
        assert found.captured.parts[0].text == SHEBANG + "#SBATCH -p dev\ntrue\n"
        assert [finding for finding in found.findings if finding.level != "info"] == []


@here_only
class TestEnds:
    async def test_exit_code(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "echo begun\nexit 7\n")
        run = await session.ended(run_id)
        assert (run.state, run.status.exit_code, run.status.reason) == ("failed", 7, "exit code 7")
        assert run.status.started_at is not None
        assert run.status.ended_at is not None
        assert run.status.started_at <= run.status.ended_at

    async def test_an_output_that_slurm_cannot_open(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "#SBATCH -o missing/folder/out\ntrue\n")
        run = await session.ended(run_id)
        assert (run.state, run.status.reason_code) == ("failed", "no_output")

    async def test_signal(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "kill -SEGV $$\n")
        run = await session.ended(run_id)
        assert (run.state, run.status.exit_code) == ("failed", 139)

    async def test_cancelled_while_it_runs(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "echo begun; sleep 600\n")
        await session.running(run_id)
        await session.hyperpod.runs.act(run_id, "cancel")
        run = await session.ended(run_id)
        assert run.state == "cancelled"
        assert (await log_lines(session, run_id))[0] == "begun"

    async def test_cancelled_by_others_means(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "sleep 600\n")
        run = await session.running(run_id)
        session.cluster.exec("ctl", "scancel", session.job_of(run))
        run = await session.ended(run_id)
        assert run.state == "cancelled"

    async def test_cancelled_before_it_began(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "#SBATCH --begin=now+1hour\ntrue\n")
        await session.until(run_id, lambda run: run.state == "waiting")
        await session.hyperpod.runs.act(run_id, "cancel")
        run = await session.ended(run_id)
        assert (run.state, run.status.attempts) == ("cancelled", ())


OUTPUTS = [
    ("-o out-%x-%j-%A.log", r"out-run\.sbatch-(\d+)-\1\.log"),
    ("--output 'with blank %5j %% %u %N'", r"with blank 0*\d{5,} % root node\d"),
    ("--output=./%b.%%", r"(%b|\d)\.%"),
    ("--output=../work//%N", r"node\d"),
    ("-o back\\\\%j", r"back%j"),
]


@here_only
class TestLogs:
    async def test_patterns_in_the_output(self, session: SlurmSession) -> None:
        text = "echo here it is; echo and here >&2\n"
        sent = [await send(session, f"{SHEBANG}#SBATCH {said}\n{text}") for said, _ in OUTPUTS]
        for run_id, (_, name) in zip(sent, OUTPUTS, strict=True):
            await session.ended(run_id)
            assert await log_lines(session, run_id) == ["here it is", "and here"], name
            work = bundle_of(session, run_id) / "work"
            written = [path.name for path in work.iterdir() if re.fullmatch(name, path.name)]
            assert len(written) == 1

    async def test_stderr_of_its_own(self, session: SlurmSession) -> None:
        text = SHEBANG + "#SBATCH -o out -e err-%j\necho good; echo bad >&2\n"
        run_id = await send(session, text)
        await session.ended(run_id)
        assert await log_lines(session, run_id, ranks=(0,)) == ["good"]
        assert await log_lines(session, run_id, node_logs=True, ranks=()) == ["bad"]

    async def test_a_folder_of_the_partition_outside_of_the_bundle(self, session: SlurmSession) -> None:
        there = session.cluster.partition_on_nodes
        text = f"{SHEBANG}#SBATCH -o {there}/mine-%j.txt\necho over there\n"
        run_id = await send(session, text)
        await session.ended(run_id)
        assert await log(session, run_id) == "over there"
        found = await session.hyperpod.logs.search(_grep(run_id, "over"))
        assert len(found.hits) == 1

    async def test_a_path_that_cannot_be_read_here_is_said(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "#SBATCH -o /tmp/mine-%j.txt\necho unseen\n")
        run = await session.ended(run_id)
        words = f"is at /tmp/mine-{run.scheduler_id}.txt on its nodes"
        assert words in await log(session, run_id)
        assert "not on the storage partition" in await log(session, run_id)

    async def test_no_output_is_said(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "#SBATCH -o /dev/null\necho unseen\n")
        await session.ended(run_id)
        assert "is at /dev/null" in await log(session, run_id)

    async def test_followed_while_it_runs(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "for i in 1 2 3; do echo $i; sleep 1; done\n")
        begun = time.monotonic()
        assert await log_lines(session, run_id, follow=True) == ["1", "2", "3"]
        assert time.monotonic() - begun < 30

    async def test_raw_bytes(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "printf 'a\\0b\\r\\xff'\n")
        await session.ended(run_id)
        data = b"".join([chunk async for chunk in session.hyperpod.logs.raw(run_id)])
        assert data == b"a\0b\r\xff"


@here_only
class TestJobs:
    @pytest.mark.parametrize("mode", ["append", "truncate"])
    async def test_a_requeue_goes_on(self, session: SlurmSession, mode: str) -> None:
        text = (
            f"{SHEBANG}#SBATCH --requeue --open-mode={mode} -o log\n"
            "echo this is ${SLURM_RESTART_COUNT:-0}\n"
            '[ "${SLURM_RESTART_COUNT:-0}" = 1 ] || sleep 600\n'
        )
        run_id = await send(session, text)
        run = await session.running(run_id)
        await session.hyperpod.runs.act(run_id, "requeue")
        await session.until(run_id, lambda run: run.state == "waiting")
        start_now(session.cluster, session.job_of(run))
        run = await session.ended(run_id)
        assert run.state == "succeeded"
        assert len(run.status.attempts) == 1
        lines = await log_lines(session, run_id)
        assert lines[-1] == "this is 1"
        assert ("this is 0" in lines) == (mode == "append")

    async def test_a_lost_answer_sends_it_once(self, session: SlurmSession) -> None:
        text = SHEBANG + "#SBATCH --begin=now+1hour\ntrue\n"
        request = replace(request_for(session, text), run_id="mine-once")
        assert await session.hyperpod.submitter.submit(request) == "mine-once"
        bundle = bundle_of(session, "mine-once")
        for lost in (bundle / "submission.json", *bundle.glob("status/intent-*.json")):
            lost.unlink()
        assert await session.hyperpod.submitter.submit(request) == "mine-once"
        comments = session.cluster.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%k")
        assert comments.split().count("hyperpod:mine-once") == 1

    async def test_an_array_is_its_tasks(self, session: SlurmSession) -> None:
        text = f"{SHEBANG}#SBATCH --array=1-5:2%2\necho task $SLURM_ARRAY_TASK_ID; exit $((SLURM_ARRAY_TASK_ID == 3))\n"
        run_id = await send(session, text)
        run = await session.ended(run_id)
        assert run.state == "failed"
        assert run.children == {"succeeded": 2, "failed": 1}
        third = await session.hyperpod.runs.get(f"{run_id}.3")
        assert (third.state, third.status.exit_code) == ("failed", 1)
        assert await log(session, f"{run_id}.3") == "task 3"
        assert sorted(await log_lines(session, run_id)) == ["task 1", "task 3", "task 5"]

    async def test_a_steady_run_costs_no_calls_of_its_own(self, session: SlurmSession) -> None:
        run_id = await send(session, SHEBANG + "sleep 600\n")
        await session.running(run_id)
        session.cluster.forget_calls()
        for _ in range(20):
            await session.hyperpod.runs.get(run_id)
            await asyncio.sleep(0.1)
        own = [call for call in session.cluster.calls() if any("--jobs" in w for w in call.args)]
        assert own == []

    async def test_many_observers_agree(
        self, session: SlurmSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, transport: str
    ) -> None:
        run_id = await send(session, SHEBANG + "sleep 1; exit 5\n")
        others = []
        for number in range(4):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(number)))
            others.append(make_hyperpod(session.cluster, transport))
        runs: list[Run] = await asyncio.gather(*(other.runs.wait(run_id) for other in others))
        for other in others:
            await other.close()
        assert {run.status.exit_code for run in runs} == {5}
        assert {len(run.status.attempts) for run in runs} == {1}
        status = bundle_of(session, run_id) / "status"
        assert not (status / "attempt-1").exists(), "no records like a launcher's"


@here_only
class TestRefused:
    async def test_what_slurm_refuses_leaves_nothing(self, session: SlurmSession) -> None:
        with pytest.raises(RefusedError) as caught:
            await send(session, SHEBANG + "#SBATCH --partition=nowhere\ntrue\n", name="no.sbatch")
        assert caught.value.code == "unknown_queue"
        names = [run.name for run in (await session.hyperpod.runs.list()).runs]
        assert "no" not in names

    async def test_a_broken_line_is_told_in_slurms_words(self, session: SlurmSession) -> None:
        with pytest.raises(HyperpodError, match="not a valid node count"):
            await send(session, SHEBANG + "#SBATCH --nodes=lots\ntrue\n")


def _grep(run_id: str, words: str) -> Any:
    from hyperpod_jlab.logs.service import LogRequest

    return LogRequest(run_id, grep=words)

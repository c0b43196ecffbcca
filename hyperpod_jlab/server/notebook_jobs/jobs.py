"""Notebook jobs on our clusters, without asking for permission: a job is stopped by cancelling its run, and ends when its run has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import psutil
from jupyter_scheduler.environments import EnvironmentManager
from jupyter_scheduler.executors import ExecutionManager
from jupyter_scheduler.models import CreateJob, DescribeJob, Status
from jupyter_scheduler.orm import Job
from jupyter_scheduler.scheduler import Scheduler
from jupyter_scheduler.task_runner import BaseTaskRunner, TaskRunner
from jupyter_server.serverapp import ServerApp
from sqlalchemy.exc import NoResultFound, SQLAlchemyError
from traitlets import Type

from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.features.notebook.service import read_executed_notebook
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.app import HyperPodApp
from hyperpod_jlab.server.notebook_jobs.environments import HyperPodEnvironmentManager, cluster_of
from hyperpod_jlab.server.notebook_jobs.executor import HyperPodExecutionManager

_LOOK_S = 1.0
_RETRY_S = 30.0
_MAX_MESSAGE = 1024
_NO_RUN = "no_such_run"
_OPEN = (Status.QUEUED, Status.IN_PROGRESS, Status.STOPPING)
_STATUS = {"succeeded": Status.COMPLETED, "cancelled": Status.STOPPED}


class HyperPodTaskRunner(TaskRunner):
    """Starts jobs by schedule, as its base does, and follows the runs of jobs.

    A job's row says what the user wants, and its run what is so. Nothing else is remembered, so the next server continues where a killed one stopped.
    """

    def __init__(self, scheduler: ClusterJobs, config: Any = None) -> None:
        super().__init__(scheduler=scheduler, config=config)
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Work until the server stops."""
        await asyncio.gather(super().start(), self._look_after_jobs())

    def cancel(self, job_id: str, pid: int | None) -> None:
        """Cancel a job's run; returns at once."""
        self._begin("cancel", job_id, partial(self._cancel, job_id, pid))

    async def _look_after_jobs(self) -> None:
        while True:
            for job in self._open_jobs():
                if cluster_of(job.runtime_environment_name) is not None:
                    self._begin("follow", job.job_id, partial(self._follow, job.job_id, job.pid))
                    if job.status == Status.STOPPING:
                        self.cancel(job.job_id, job.pid)
            await asyncio.sleep(_LOOK_S)

    def _open_jobs(self) -> list[Job]:
        try:
            with self.db_session() as session:
                jobs: list[Job] = session.query(Job).filter(Job.status.in_(_OPEN)).all()
                return jobs
        except SQLAlchemyError as error:  # such as a database that another process has locked
            self.log.warning("the notebook jobs cannot be read: %s", error)
            return []

    def _begin(self, verb: str, job_id: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work on a job, unless it is under way or has just failed."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.log.warning("notebook job %s: cannot %s its run: %s", job_id, verb, error)
            task.get_loop().call_later(0 if error is None else _RETRY_S, self._tasks.pop, key)

        key = verb, job_id
        if key not in self._tasks:
            self._tasks[key] = asyncio.get_running_loop().create_task(work())
            self._tasks[key].add_done_callback(ended)

    async def _cancel(self, job_id: str, pid: int | None) -> None:
        """Cancel a job's run, also one that is just being submitted."""
        hyperpod = await _services()
        while True:
            is_sending = _is_sending(pid)
            try:
                await hyperpod.runs.act(job_id, "cancel")
            except NotFoundError as error:
                if error.code != _NO_RUN:
                    raise
                if is_sending:
                    await asyncio.sleep(_LOOK_S)
                    continue
            return

    async def _follow(self, job_id: str, pid: int | None) -> None:
        """Wait until a job's run has ended, then copy its files and its end to the job."""
        hyperpod = await _services()
        is_sending = _is_sending(pid)
        try:
            run = await hyperpod.runs.wait(job_id)
        except NotFoundError as error:
            if error.code != _NO_RUN:  # such as a cluster that is not configured now
                raise
            if not is_sending:
                message = "The run was deleted, or JupyterLab was stopped before it was submitted. Run the job again."
                self._end(job_id, Status.FAILED, message)
            return
        status = _STATUS.get(run.state, Status.FAILED)
        message = f"{run.reason or run.state} (log: hpj logs {job_id})"
        try:
            job = self.scheduler.get_job(job_id, job_files=False)
            await self._copy_files(hyperpod, job)
        except NoResultFound:  # the job was deleted
            return
        # Exporters of nbconvert may raise anything. An error that is not caught here would leave the job "In progress" for ever.
        except Exception as error:  # noqa: BLE001
            status = Status.FAILED
            message = f"The run {run.state}, but its files cannot be copied: {error}"
        self._end(job_id, status, message if status == Status.FAILED else None, run)

    async def _copy_files(self, hyperpod: Hyperpod, job: DescribeJob) -> None:
        """Write a job's output files.

        Raises:
            HyperpodError: The run's notebook cannot be read.
            OSError: A file cannot be read or written.
            Exception: A format cannot be made of the notebook.
        """
        executor = self.scheduler.execution_manager_class(
            job_id=job.job_id,
            root_dir=self.scheduler.root_dir,
            db_url=self.scheduler.db_url,
            staging_paths=self.scheduler.get_staging_paths(job),
        )
        work = hyperpod.runs.bundle(job.job_id).folder / "work"
        notebook = await read_executed_notebook(hyperpod, job.job_id)
        await asyncio.to_thread(executor.write_outputs, notebook.document, work)

    def _end(self, job_id: str, status: Status, message: str | None, run: Run | None = None) -> None:
        values: dict[str, Any] = {"status": status, "status_message": message and message[:_MAX_MESSAGE]}
        if run is not None:
            moments = {"start_time": run.started_at, "end_time": run.ended_at}
            values |= {name: int(at * 1000) for name, at in moments.items() if at is not None}
        with self.db_session() as session:
            is_open = Job.status.in_(_OPEN)  # a failed submit has its own message
            session.query(Job).filter(Job.job_id == job_id, is_open).update(values)
            session.commit()


class ClusterJobs(Scheduler):
    """Runs jobs on our clusters; jobs of other environments, and everything else, as jupyter-scheduler does.

    The task runner calls it for a schedule, `HyperPodScheduler` for a request.
    """

    execution_manager_class = Type(HyperPodExecutionManager, ExecutionManager).tag(config=True)
    task_runner_class = Type(HyperPodTaskRunner, BaseTaskRunner).tag(config=True)

    def __init__(self, *, environments_manager: EnvironmentManager, **options: Any) -> None:
        super().__init__(environments_manager=environments_manager, **options)
        if isinstance(environments_manager, HyperPodEnvironmentManager):
            # A user's own classes go on working, without our clusters.
            environments_manager.has_clusters = isinstance(self.task_runner, HyperPodTaskRunner) and issubclass(
                self.execution_manager_class, HyperPodExecutionManager
            )

    def create_job(self, model: CreateJob) -> str:
        """Create a job, and start the process that submits it. Until then it is queued; in the base it would be stopped."""
        job_id: str = super().create_job(model)
        if cluster_of(model.runtime_environment_name) is not None:
            with self.db_session() as session:
                jobs = session.query(Job).filter(Job.job_id == job_id, Job.status == Status.STOPPED)
                jobs.update({"status": Status.QUEUED})
                session.commit()
        return job_id

    def stop_job(self, job_id: str) -> None:
        """Stop a job. Its run is cancelled, and the job has stopped when the run has ended."""
        with self.db_session() as session:
            job = session.query(Job).filter(Job.job_id == job_id).one()
            if cluster_of(job.runtime_environment_name) is None:
                super().stop_job(job_id)
            elif job.status in _OPEN:
                job.status = Status.STOPPING
                session.commit()
                self.task_runner.cancel(job_id, job.pid)


async def _services() -> Hyperpod:
    """The services that this server's other pages use.

    Raises:
        HyperpodError: The configuration is invalid.
    """
    apps = ServerApp.instance().extension_manager.extension_apps["hyperpod_jlab"]
    (app,) = (app for app in apps if isinstance(app, HyperPodApp))
    return await app.process.hyperpod()


def _is_sending(pid: int | None) -> bool:
    """Whether the process that submits a job is alive."""
    if pid is None:
        return False
    try:
        process = psutil.Process(pid)
        is_ours = any("multiprocessing" in word for word in process.cmdline())
        return is_ours and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

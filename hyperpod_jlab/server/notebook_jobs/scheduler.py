"""jupyter-scheduler's scheduler, as its requests see it: what concerns our clusters needs the authorizer's permission."""

from __future__ import annotations

from typing import Any

from jupyter_scheduler.environments import EnvironmentManager
from jupyter_scheduler.models import (
    CountJobsQuery,
    CreateJob,
    CreateJobDefinition,
    CreateJobFromDefinition,
    DescribeJob,
    DescribeJobDefinition,
    ListJobDefinitionsQuery,
    ListJobDefinitionsResponse,
    ListJobsQuery,
    ListJobsResponse,
    UpdateJob,
    UpdateJobDefinition,
)
from jupyter_scheduler.scheduler import BaseScheduler

from hyperpod_jlab.server.notebook_jobs.environments import cluster_of
from hyperpod_jlab.server.notebook_jobs.jobs import ClusterJobs
from hyperpod_jlab.server.notebook_jobs.permission import Action, is_allowed, require


class HyperPodScheduler(BaseScheduler):
    """Asks the authorizer about each job and job definition of our clusters, then does what is asked.

    Everything that changes something needs `execute`, everything else `read`. A schedule needs it when it is created or changed: when it is due, there is no
    request, and the task runner calls `jobs` itself.

    Attributes:
        jobs: The jobs, without permissions.
    """

    def __init__(
        self, *, root_dir: str, environments_manager: EnvironmentManager, db_url: str, config: Any = None
    ) -> None:
        super().__init__(root_dir=root_dir, environments_manager=environments_manager, config=config)
        self.jobs = ClusterJobs(
            root_dir=root_dir, environments_manager=environments_manager, db_url=db_url, config=config
        )
        self.task_runner = self.jobs.task_runner
        self.execution_manager_class = self.jobs.execution_manager_class

    async def create_job(self, model: CreateJob) -> str:
        """Create and start a job."""
        await _require("execute", model)
        return self.jobs.create_job(model)

    async def create_job_from_definition(self, job_definition_id: str, model: CreateJobFromDefinition) -> str:
        """Create and start a job of a definition."""
        await _require("execute", self.jobs.get_job_definition(job_definition_id))
        job_id: str = self.jobs.create_job_from_definition(job_definition_id, model)
        return job_id

    async def update_job(self, job_id: str, model: UpdateJob) -> None:
        """Change a job."""
        await _require("execute", self._job(job_id))
        self.jobs.update_job(job_id, model)

    async def stop_job(self, job_id: str) -> None:
        """Stop a job."""
        await _require("execute", self._job(job_id))
        self.jobs.stop_job(job_id)

    async def delete_job(self, job_id: str) -> None:
        """Stop and delete a job."""
        await _require("execute", self._job(job_id))
        self.jobs.delete_job(job_id)

    async def get_job(self, job_id: str, job_files: bool = True) -> DescribeJob:
        """A job; its files can be downloaded by those who may see it."""
        await _require("read", self._job(job_id))
        return self.jobs.get_job(job_id, job_files)

    async def list_jobs(self, query: ListJobsQuery) -> ListJobsResponse:
        """The jobs that the user may see."""
        if await is_allowed("read"):
            return self.jobs.list_jobs(query)
        everything = query.copy(update={"max_items": None, "next_token": None})
        kept, total, next_token = _own_page(self.jobs.list_jobs(everything).jobs, query)
        return ListJobsResponse(jobs=kept, total_count=total, next_token=next_token)

    async def count_jobs(self, query: CountJobsQuery) -> int:
        """The number of jobs that the user may see."""
        if await is_allowed("read"):
            count: int = self.jobs.count_jobs(query)
            return count
        every = self.jobs.list_jobs(ListJobsQuery(status=query.status, max_items=None)).jobs
        return sum(not _is_ours(job) for job in every)

    async def create_job_definition(self, model: CreateJobDefinition) -> str:
        """Create a job definition; its schedule starts jobs from now on."""
        await _require("execute", model)
        definition_id: str = self.jobs.create_job_definition(model)
        return definition_id

    async def update_job_definition(self, job_definition_id: str, model: UpdateJobDefinition) -> None:
        """Change, pause or resume a job definition: one of our clusters, or one that comes to one of them."""
        await _require("execute", self.jobs.get_job_definition(job_definition_id), model)
        self.jobs.update_job_definition(job_definition_id, model)

    async def delete_job_definition(self, job_definition_id: str) -> None:
        """Delete a job definition and its jobs."""
        of_it = ListJobsQuery(job_definition_id=job_definition_id, max_items=None)
        definition = self.jobs.get_job_definition(job_definition_id)
        await _require("execute", definition, *self.jobs.list_jobs(of_it).jobs)
        self.jobs.delete_job_definition(job_definition_id)

    async def get_job_definition(self, job_definition_id: str) -> DescribeJobDefinition:
        """A job definition."""
        definition = self.jobs.get_job_definition(job_definition_id)
        await _require("read", definition)
        return definition

    async def list_job_definitions(self, query: ListJobDefinitionsQuery) -> ListJobDefinitionsResponse:
        """The job definitions that the user may see."""
        if await is_allowed("read"):
            return self.jobs.list_job_definitions(query)
        everything = query.copy(update={"max_items": None, "next_token": None})
        every = self.jobs.list_job_definitions(everything).job_definitions
        kept, total, next_token = _own_page(every, query)
        return ListJobDefinitionsResponse(job_definitions=kept, total_count=total, next_token=next_token)

    def get_staging_paths(self, model: DescribeJob | DescribeJobDefinition) -> dict[str, str]:
        """Where a job's files are."""
        paths: dict[str, str] = self.jobs.get_staging_paths(model)
        return paths

    def get_local_output_path(self, model: DescribeJob, root_dir_relative: bool = False) -> str:
        """Where a job's files are copied to when they are downloaded."""
        path: str = self.jobs.get_local_output_path(model, root_dir_relative)
        return path

    def _job(self, job_id: str) -> DescribeJob:
        return self.jobs.get_job(job_id, job_files=False)


def _is_ours(model: Any) -> bool:
    """Whether a job or a job definition is for one of our clusters."""
    return cluster_of(model.runtime_environment_name or "") is not None


async def _require(action: Action, *models: Any) -> None:
    """End the request with 403 if one of these is for one of our clusters, and the user may not do this there."""
    if any(map(_is_ours, models)):
        await require(action)


def _own_page(every: list[Any], query: Any) -> tuple[list[Any], int, str | None]:
    """Of all jobs or definitions those of jupyter-scheduler's own environments: the page that is asked for, their number, and the next page."""
    kept = [one for one in every if not _is_ours(one)]
    first = int(query.next_token or 0)
    end = len(kept) if query.max_items is None else first + query.max_items
    return kept[first:end], len(kept), str(end) if end < len(kept) else None

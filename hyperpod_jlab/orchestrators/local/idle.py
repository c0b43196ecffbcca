"""What idle shutdown of Studio means for a run on this machine. AWS is not asked: that would hold up every submit; `hpj doctor` asks."""

from __future__ import annotations

from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.idle_shutdown import APPS, SHORTEST
from hyperpod_jlab.model.spec import JobSpec


def idle_findings(spec: JobSpec) -> list[Finding]:
    """That Studio may stop this machine under a run; not of one that must end before the shortest time that Studio waits."""
    limit = spec.time_limit
    if limit is not None and limit <= SHORTEST * 60:
        return []
    studio = find_studio()
    if studio is None or studio.app_type not in APPS:
        return []
    return [
        Finding(
            level="info",
            code="studio_idle_shutdown",
            message="where Studio stops idle spaces, a run on this machine ends with the space: only what is done in it counts as activity, not the run",
            hint="send long runs to another cluster; hpj doctor says whether and after how long this space is stopped",
        )
    ]

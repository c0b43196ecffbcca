"""What requests of the Admin page are answered with."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from hyperpod_jlab.server.answers import Error


class AdminRightsAnswer(TypedDict):
    """Whether the Admin page is offered: AWS says that the server's role may change user profiles of the domain. Else `reason` says why not."""

    offered: bool
    domain: str | None
    reason: Error | None


class AdminDomain(TypedDict):
    """A domain of Studio; its name is empty where AWS does not tell it."""

    id: str
    name: str


class AdminFileSystem(TypedDict):
    """A file system of FSx for Lustre, and the HyperPod clusters that mount it as far as AWS knows."""

    id: str
    name: str | None
    state: str
    clusters: list[str]


class AdminFolderCluster(TypedDict):
    """A cluster of the configuration whose jobs can make folders."""

    name: str
    kind: Literal["slurm", "kubernetes"]


class AdminChoices(TypedDict):
    """What can be chosen; `domain` is this space's, `folder_clusters` are those of the configuration. What AWS does not tell is left out, and noted."""

    domain: str | None
    domains: list[AdminDomain]
    file_systems: list[AdminFileSystem]
    folder_clusters: list[AdminFolderCluster]
    notes: list[str]


class AdminMode(TypedDict):
    """Which mode a domain is in, as far as its own settings and its first profiles tell; null: nothing was set from here. `shared_path` is the folder that all were given."""

    mode: Literal["shared", "per-user", "both"] | None
    shared_path: str | None


class AdminFolders(TypedDict):
    """Who looks at folders and makes them: see `AdminFoldersBody`."""

    by: Literal["here", "slurm", "kubernetes", "none"]
    mounted_at: str | None
    cluster: str | None
    queue: str | None
    namespace: str | None
    claim: str | None
    image: str | None
    user: str | None


class AdminAsked(TypedDict):
    """What a plan was asked for; `mode` is null where all is taken back."""

    region: str | None
    domain: str
    cluster: str | None
    file_system: str | None
    mode: Literal["shared", "per-user"] | None
    shared_path: str
    profiles: list[str] | None
    take_over: bool
    folders: AdminFolders


class AdminProgress(TypedDict):
    """How far something is."""

    done: int
    total: int


class AdminCounts(TypedDict):
    """How many steps are how: see `AdminStep`."""

    as_wanted: int
    to_do: int
    waits: int
    blocked: int


class AdminDrift(TypedDict):
    """How many things of a kind there are, and how many of them are not as wanted."""

    kind: str
    total: int
    differ: int


class AdminRestart(TypedDict):
    """What runs somewhere and sees the change only once it is started anew."""

    target: str
    apps: list[str]


class AdminFinding(TypedDict):
    """What is to be said of the whole; one of level `error` keeps the plan from being applied."""

    level: str
    code: str
    message: str
    hint: str | None


class AdminStatement(TypedDict):
    """What a plan means."""

    topic: str
    text: str


class AdminPlan(TypedDict):
    """A plan without its steps. `id` confirms it; with `changed` it takes the place of one that was confirmed, of which nothing was done. `now` is the mode that was applied last, or `both`."""

    id: str
    changed: bool
    now: Literal["shared", "per-user", "both"] | None
    file_system: str
    counts: AdminCounts
    drift: list[AdminDrift]
    restarts: list[AdminRestart]
    findings: list[AdminFinding]
    statements: list[AdminStatement]


class AdminResults(TypedDict):
    """How many steps were done, failed, and are left."""

    done: int
    failed: int
    left: int


class AdminWork(TypedDict):
    """The newest plan of this server, and what became of it. `number` is 0 before the first; `problem` says why it broke; `read` is how many profiles and spaces were looked at."""

    number: int
    version: int
    state: Literal[
        "none",
        "planning",
        "planned",
        "checking",
        "applying",
        "stopping",
        "applied",
        "stopped",
        "failed",
    ]
    begun_at: str | None
    ended_at: str | None
    asked: AdminAsked | None
    read: AdminProgress
    plan: AdminPlan | None
    results: AdminResults
    problem: Error | None

"""Names, labels and annotations of our objects."""

from __future__ import annotations

import re

RUN_LABEL = "hyperpod-jlab/run-id"
USER_LABEL = "hyperpod-jlab/user"
NAME_ANNOTATION = "hyperpod-jlab/name"
USER_ANNOTATION = "hyperpod-jlab/user"
KEEP_ANNOTATION = "hyperpod-jlab/keep"
"""On what stands beside a job, when its user wants to keep it after the run."""
HELD_ANNOTATION = "hyperpod-jlab/held"
"""On an object that somebody holds, by us."""
CORDON_ANNOTATION = "hyperpod-jlab/cordon-reason"
"""On a node that somebody cordoned by us: why."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"

LEAST_PARALLEL_ANNOTATION = "kueue.x-k8s.io/job-min-parallelism"
"""On a Job: with how many pods at once Kueue may let it begin; it then lowers the Job's own number."""

_LONGEST = 63
"""Characters of a label's value."""


def object_name(run_id: str) -> str:
    """The object's name; it begins with a letter, as names of services must (research: the webhook refuses a digit).

    A run id has at most 40 characters, so that names of pods and services made of it stay below their 63.
    """
    return f"run-{run_id}"


def label_value(text: str) -> str:
    """A text as a label's value can hold it: its letters and digits, other characters as dashes; empty when nothing is left."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:_LONGEST].strip("._-")

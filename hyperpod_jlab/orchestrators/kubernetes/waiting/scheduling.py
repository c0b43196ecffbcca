"""Why no node takes a pod: the scheduler's summary over all nodes, taken apart and put into words."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^0/(?P<nodes>\d+) nodes are available: ?(?P<rest>.*)$", re.DOTALL)
_TAIL = re.compile(
    r"\.? (?:preemption: |no new claims to (?:de)?allocate|not found$).*$", re.DOTALL
)
_PART = re.compile(r"(\d+) (.+?)(?=, \d+ |$)", re.DOTALL)
_TAINT = re.compile(r"untolerated taint(?:\(s\))? \{?([^:}]+)(?:: ?([^}]*))?\}?")

_RESOURCES = {
    "cpu": "CPUs",
    "memory": "memory",
    "ephemeral-storage": "disk space for containers",
    "pods": "pods",
    "nvidia.com/gpu": "GPUs",
    "vpc.amazonaws.com/efa": "EFA interfaces",
    "aws.amazon.com/neuron": "Neuron devices",
    "aws.amazon.com/neurondevice": "Neuron devices",
    "aws.amazon.com/neuroncore": "NeuronCores",
}

_UNCOUNTED = frozenset({"memory", "ephemeral-storage"})

_TAINTS = {
    "node.kubernetes.io/unreachable": "do not answer",
    "node.kubernetes.io/not-ready": "are not ready",
    "node.kubernetes.io/unschedulable": "are cordoned",
    "node.kubernetes.io/disk-pressure": "have too little disk space left",
    "node.kubernetes.io/memory-pressure": "have too little memory left",
    "node.kubernetes.io/pid-pressure": "have too many processes",
    "node.cloudprovider.kubernetes.io/uninitialized": "are only being set up",
    "sagemaker.amazonaws.com/node-health-status": "are being checked or repaired by HyperPod",
}

_PARTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"node\(s\) didn't match Pod's node affinity/selector"),
        "have not the labels that it asks for (instance type, instance group, other node labels)",
    ),
    (re.compile(r"node\(s\) were unschedulable"), "are cordoned"),
    (re.compile(r"node\(s\) didn't have free ports"), "have the port that it wants in use"),
    (re.compile(r"Too many pods"), "have as many pods as they may"),
    (
        re.compile(
            r"node\(s\) had volume node affinity conflict|node\(s\) had no available volume"
        ),
        "cannot reach its volume (it is bound to another zone or node)",
    ),
    (re.compile(r"node\(s\) exceed max volume count"), "have as many volumes as they may"),
    (
        re.compile(r"node\(s\) didn't find available persistent volumes"),
        "have no volume that fits its claim",
    ),
    (
        re.compile(r"node\(s\) didn't match pod topology spread constraints"),
        "would put too many of its pods in one place",
    ),
    (
        re.compile(r"node\(s\) didn't (?:match|satisfy) .*anti-affinity"),
        "have pods that it may not be beside",
    ),
    (
        re.compile(r"node\(s\) didn't match pod affinity"),
        "have not the pods that it must be beside",
    ),
    (re.compile(r"Preemption is not helpful"), ""),
)

_WHOLE: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" not found'),
        "claim_not_found",
        "the claim {name} does not exist in the namespace: name another storage claim in the cluster's configuration, or have the admin make it",
    ),
    (
        re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" is being deleted'),
        "claim_not_found",
        "the claim {name} is being deleted",
    ),
    (
        re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" bound to non-existent'),
        "claim_not_bound",
        "the claim {name} belongs to a volume that does not exist any more; ask the cluster's admin",
    ),
    (
        re.compile(r"pod has unbound immediate PersistentVolumeClaims"),
        "claim_not_bound",
        "a storage claim of its has no volume yet: look at it with kubectl describe pvc, or ask the cluster's admin",
    ),
)


def scheduling_words(message: str) -> tuple[str, str] | None:
    """A code and a sentence for the scheduler's message, or None for one that is not known here."""
    for pattern, code, words in _WHOLE:
        found = pattern.search(message)
        if found is not None:
            return code, words.format(**found.groupdict())
    head = _HEAD.match(message.strip())
    if head is None:
        return None
    if head["nodes"] == "0":
        return "no_nodes", "the cluster has no nodes now; ask the cluster's admin"
    rest = _TAIL.sub("", head["rest"]).rstrip(". ")
    parts = [(int(count), text) for count, text in _PART.findall(rest)]
    told = [f"{count} {_for(count, words)}" for count, text in parts if (words := _words(text))]
    if not told:
        return None
    lacking = [text for _, text in parts if text.startswith("Insufficient ")]
    advice = (
        "it starts when others give enough back, or sooner if it asks for less"
        if lacking
        else "see: hpj nodes"
    )
    nodes = head["nodes"]
    none = (
        "the one node does not take it now"
        if nodes == "1"
        else f"none of {nodes} nodes takes it now"
    )
    return "unschedulable", f"{none}: {'; '.join(told)}; {advice}"


_ONE = {"have ": "has ", "are ": "is ", "do ": "does ", "keep ": "keeps ", "say: ": "says: "}


def _for(count: int, words: str) -> str:
    """The words said of so many nodes."""
    if count == 1:
        for many, one in _ONE.items():
            if words.startswith(many):
                return one + words.removeprefix(many)
    return words


def _words(text: str) -> str:
    if text.startswith("Insufficient "):
        name = text.removeprefix("Insufficient ").strip()
        known = _RESOURCES.get(name)
        few = "little" if name in _UNCOUNTED or known is None else "few"
        return f"have too {few} {known or name} free"
    taint = _TAINT.search(text)
    if taint is not None:
        key = taint[1].strip()
        shown = f"{key}={taint[2]}" if taint[2] else key
        return _TAINTS.get(key, f"keep it away by the taint {shown}, which it does not tolerate")
    for pattern, words in _PARTS:
        if pattern.search(text):
            return words
    return f"say: {text}"

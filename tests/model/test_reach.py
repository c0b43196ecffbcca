"""Whether one can submit to a HyperPod cluster from here: the table of cases."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, NotFoundError, UnreachableError, UnsupportedError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, InstanceGroup, LustreStorage
from hyperpod_jlab.core.reach import REACH_STATES, ReachFacts, SubmitTarget, eks_block, quoted, reach_of, slurm_block

EKS_ARN = "arn:aws:eks:us-west-2:111122223333:cluster/research"
STORAGE = LustreStorage("fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "x5kjbbmv", "/fsx")
GROUPS = (
    InstanceGroup("workers", "InService", "ml.p5.48xlarge", 4, 4, "Compute", (STORAGE,)),
    InstanceGroup("doors", "InService", "ml.c5.xlarge", 1, 1, "Login"),
)
SLURM = HyperpodCluster(
    *("ml", "arn:ml", "us-west-2", "InService"), orchestrator="slurm", groups=GROUPS, mounted_here=("/mnt/fs",)
)
EKS = HyperpodCluster(
    *("research-hp", "arn:r", "us-west-2", "InService"), orchestrator="kubernetes", eks_arn=EKS_ARN, groups=GROUPS[:1]
)
PLACE = SubmitTarget("/mnt/fs", "/fsx/alice")
SAME = ReachFacts(nodes=4, known=4)


def refused(error, **more):
    return ReachFacts(error, **more)


def unreachable(code=None):
    return UnreachableError("no answer", code=code)


CASES = [
    # cluster, what was found, where runs go, word, a part of the sentence, a part of the next step
    (replace(SLURM, configured_as=("train",)), None, PLACE, "configured", "as train", "--cluster train"),
    (replace(EKS, configured_as=("a", "b")), None, PLACE, "configured", "as a, b", "--cluster a"),
    # what is in the configuration is so in any state
    (replace(SLURM, configured_as=("train",), status="Failed"), None, PLACE, "configured", "train", ""),
    (replace(SLURM, groups=None, reason="no right"), None, PLACE, "not-described", "no right", "hpj"),
    (replace(SLURM, status="Creating"), SAME, PLACE, "not-in-service", "creating", "wait"),
    (replace(SLURM, status="Failed"), SAME, PLACE, "not-in-service", "failed", "hpj node-logs"),
    (replace(EKS, status="Deleting"), None, PLACE, "not-in-service", "deleting", None),
    # jobs run while a cluster is changed, and a word that is newer than this package rules nothing out
    (replace(SLURM, status="Updating"), SAME, PLACE, "ready", "4 of its 4", "hpj config add ml"),
    (replace(SLURM, status="SystemUpdating"), SAME, PLACE, "ready", "", ""),
    (replace(SLURM, status="Resting"), SAME, PLACE, "ready", "", ""),
    (
        *(replace(EKS, orchestrator=None, eks_arn=None, reason="its orchestrator is Nomad"), None),
        *(PLACE, "unknown-orchestrator", "Nomad", "update"),
    ),
    (replace(SLURM, mounted_here=()), SAME, PLACE, "no-file-system", "fs-0123456789abcdef0", "domain"),
    (SLURM, SAME, SubmitTarget("/home/me", mount="/mnt/fs"), "other-partition", "/home/me", "[storage]"),
    (SLURM, None, PLACE, "not-looked", "not checked yet", None),
    (SLURM, refused(unreachable("no_slurm_client")), PLACE, "no-login-node", "no Slurm commands", "doors"),
    (
        *(replace(SLURM, groups=GROUPS[:1]), refused(unreachable("no_slurm_client"))),
        *(PLACE, "no-login-node", "login nodes", "ssh can reach"),
    ),
    (SLURM, ReachFacts(nodes=4, known=0), PLACE, "no-login-node", "another cluster", "--login-node"),
    (SLURM, ReachFacts(nodes=5, known=2), PLACE, "no-login-node", "another cluster", "--login-node"),
    (SLURM, ReachFacts(nodes=2, known=1), PLACE, "ready", "1 of its 2", "config add"),  # one is a controller
    (SLURM, ReachFacts(nodes=0), PLACE, "not-known", "no instances", "hpj nodes"),
    (SLURM, refused(unreachable()), PLACE, "no-controller", "no answer", "scontrol ping"),
    (SLURM, refused(DeniedError("no", code="missing_right")), PLACE, "no-right", "no", None),
    (SLURM, refused(unreachable("aws_throttled")), PLACE, "not-known", "no answer", None),
    # nobody says which file system it mounts
    (replace(SLURM, mounted_here=None), SAME, SubmitTarget("/home/me"), "ready", "4 of its 4", "config add"),
    # files travel in the job on Kubernetes, so no file system is needed
    (replace(EKS, mounted_here=()), ReachFacts(), PLACE, "ready", "on the EKS cluster research", "config add"),
    (EKS, None, PLACE, "not-looked", "not checked yet", None),
    (EKS, refused(DeniedError("no eks", code="missing_right", hint="ask")), PLACE, "no-right", "no eks", "ask"),
    (EKS, refused(NotFoundError("gone")), PLACE, "not-there", "gone", None),
    (EKS, refused(unreachable("eks_not_ready")), PLACE, "not-in-service", "no answer", None),
    (EKS, refused(unreachable(), private=True), PLACE, "no-way", "only in its VPC", "in that VPC"),
    (EKS, refused(unreachable("dns"), private=True), PLACE, "no-way", "only in its VPC", "port 443"),
    (EKS, refused(unreachable()), PLACE, "no-way", "cannot be reached", "check proxies"),
    (EKS, refused(unreachable("certificate")), PLACE, "no-way", "no answer", None),
    (
        EKS,
        refused(DeniedError("?", code="unauthorized")),
        PLACE,
        "not-let-in",
        "no access entry",
        "aws eks create-access-entry --cluster-name research",
    ),
    (EKS, refused(DeniedError("not you")), PLACE, "not-let-in", "not you", "access policies"),
    (EKS, ReachFacts(allowed=False), PLACE, "no-namespace", "cannot create pods", "--namespace"),
    (EKS, refused(UnsupportedError("no boto3", code="boto3_missing")), PLACE, "no-package", "boto3", None),
    (EKS, refused(UnsupportedError("no httpx", code="kubernetes_missing")), PLACE, "no-package", "httpx", None),
    (EKS, refused(InvalidInputError("odd", code="newer_than_this")), PLACE, "not-known", "odd", None),
]


@pytest.mark.parametrize(("cluster", "look", "place", "word", "said", "following"), CASES)
def test_the_table(cluster, look, place, word, said, following):
    found = reach_of(cluster, look, place)
    assert found.word == word
    assert said in found.sentence
    if following is None:
        assert found.next_step is None
    else:
        assert following in (found.next_step or "")


def test_every_word_has_a_case():
    assert {case[3] for case in CASES} == set(REACH_STATES)


NOTHING_TO_ADD = {"not-described", "unknown-orchestrator", "no-file-system"}


@pytest.mark.parametrize("case", [case for case in CASES if case[3] != "configured"])
def test_what_is_to_be_added_is_a_configuration(case):
    cluster, look, place = case[:3]
    found = reach_of(cluster, look, place, "mine.too")
    not_in_service = cluster.status in {"Creating", "Failed", "Deleting"}
    assert (found.config is None) == (found.word in NOTHING_TO_ADD or not_in_service)
    if found.config is None:
        return
    settings = Settings.model_validate(tomllib.loads(found.config))
    if found.word == "other-partition":
        assert settings.storage.path == "/mnt/fs"
    else:
        assert settings.clusters["mine.too"].hyperpod == case[0].name


def test_the_tables():
    added = tomllib.loads(slurm_block("ml", "ml", PLACE, "/opt/slurm/bin"))["clusters"]["ml"]
    assert added == {"orchestrator": "slurm", "hyperpod": "ml", "commands": "/opt/slurm/bin", "storage": "/fsx/alice"}
    by_ssh = tomllib.loads(slurm_block("ml", "ml", SubmitTarget("/fsx", "/fsx"), None, 'me@"host'))
    assert by_ssh["clusters"]["ml"] == {
        "orchestrator": "slurm",
        "hyperpod": "ml",
        "transport": "ssh",
        "login_nodes": ['me@"host'],
    }
    text = slurm_block("ml", "ml", SubmitTarget("/fsx"), None, "")
    assert "# login_nodes" in text
    assert "# storage" in text
    kubernetes = tomllib.loads(eks_block("hp", "hp", "research", "team"))["clusters"]["hp"]
    assert kubernetes == {"orchestrator": "kubernetes", "hyperpod": "hp", "eks": "research", "namespace": "team"}


@pytest.mark.parametrize("text", ["plain", 'a"b', "back\\slash", "line\nbreak", "\x7f", "ü"])
def test_text_in_toml(text):
    assert tomllib.loads(f"a = {quoted(text)}") == {"a": text}

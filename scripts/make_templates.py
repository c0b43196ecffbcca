"""Write what features need into the roles of cloudformation/*.yaml, from the table of features: `make_templates.py [--check]`.

Statements stand between `# <statements NAME>` and `# </statements NAME>`; between `# <reasons NAME>` and `# </reasons NAME>` it is said why an action is
allowed on every resource.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from hyperpod_jlab.admin.lambdas.settings import CLUSTER_PERMISSION, EKS_PERMISSION, Function, rights
from hyperpod_jlab.aws import permissions as feature
from hyperpod_jlab.aws.permissions import FEATURES, Feature, Permission, choose

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "cloudformation"

HERE = {"partition": "${AWS::Partition}", "region": "${AWS::Region}", "account": "${AWS::AccountId}"}

OF_THE_DOMAIN = {
    feature.DOMAIN: "arn:{partition}:sagemaker:{region}:{account}:domain/${{DomainId}}",
    feature.PROFILE: "arn:{partition}:sagemaker:{region}:{account}:user-profile/${{DomainId}}/*",
    feature.SPACE: "arn:{partition}:sagemaker:{region}:{account}:space/${{DomainId}}/*",
    feature.EKS: "arn:{partition}:eks:{region}:{account}:cluster/${{EksClusterName}}",
    feature.ROLE: "arn:{partition}:iam::{account}:role/${{ClusterRoleName}}",
    feature.SESSION: feature.SESSION.replace("${{", "${{!"),  # IAM's variable, not the template's
    feature.ADDON: "arn:{partition}:eks:{region}:{account}:addon/${{EksClusterName}}/*",
}
"""What templates know more narrowly than features do."""

TAGGED = (feature.DOMAIN, feature.PROFILE, feature.SPACE)
"""What of SageMaker is tagged by `hpj admin`."""

LIFECYCLE = "admin-lifecycle"
"""The feature that tags lifecycle configurations, too."""

OUR_TAGS = "hyperpod-jlab*"
"""The tags by which `admin.reading` knows what is ours: no others may be set or removed."""

TAGGING = {"sagemaker:AddTags", "sagemaker:DeleteTags", "ec2:CreateTags", "ec2:DeleteTags"}

PASSED_TO = {"iam:PassRole": "sagemaker.amazonaws.com"}
"""To which service a role may be given."""

NO_SMALLER = {
    "cloudwatch:GetMetricData": "Metrics are not a resource in IAM, which defines only data sets.",
    "cloudwatch:ListMetrics": "Metrics are not a resource in IAM, which defines only data sets.",
}
"""Why an action is on every resource though IAM knows resources for it. Of all others it knows none."""


@dataclass(frozen=True)
class Block:
    """What stands between two marks.

    Attributes:
        name: As the marks have it.
        features: Names of the features whose actions it grants.
        more: What it grants besides.
        of_eks: The condition under which actions on EKS are granted; none: always.
    """

    name: str
    features: tuple[str, ...] = ()
    more: tuple[Permission, ...] = ()
    of_eks: str | None = None

    @property
    def permissions(self) -> list[Permission]:
        """What it grants, narrowed to what templates know."""
        tagged = (*TAGGED, feature.LIFECYCLE) if LIFECYCLE in self.features else TAGGED
        granted = [p for one in FEATURES if one.name in self.features for p in one.permissions]
        return [narrow for one in (*granted, *self.more) for narrow in narrowed(one, tagged)]


def narrowed(one: Permission, tagged: Iterable[str] = TAGGED) -> Iterator[Permission]:
    """A permission on what a template knows more narrowly; `tagged` is what has tags of ours."""
    resources = [one.resource]
    if one.action in {"sagemaker:AddTags", "sagemaker:DeleteTags", "sagemaker:ListTags"}:
        resources = list(tagged) if one.resource == feature.ANY_RESOURCE else resources
    for resource in resources:
        # Everybody reads the tags of their own role, of which nobody knows the path.
        known = {} if one.action == "iam:ListRoleTags" else OF_THE_DOMAIN
        place = known.get(resource, resource).replace("{domain}", "${{DomainId}}")
        yield Permission(one.action, place, one.without)


def admin_features(features: Iterable[Feature] = FEATURES) -> tuple[str, ...]:
    """What admins do; what `hpj doctor --aws` needs is given for the occasion (`hpj admin policy`)."""
    return tuple(one.name for one in features if one.for_admins and one.name != "admin-facts")


def cluster_features(features: Iterable[Feature] = FEATURES) -> tuple[str, ...]:
    """What those admins do who make clusters, and what they look at before."""
    return tuple(
        name
        for name in ("clusters", *admin_features(features))
        if name == "clusters" or name.startswith("admin-cluster")
    )


def domain_features(features: Iterable[Feature] = FEATURES) -> tuple[str, ...]:
    """What the other admins do."""
    clusters = cluster_features(features)
    return tuple(name for name in admin_features(features) if name not in clusters)


def reading_features(features: Iterable[Feature] = FEATURES) -> tuple[str, ...]:
    """What everybody may do: features that only read, and are no admin's."""
    return tuple(one.name for one in choose((), list(features)))


def of_functions() -> tuple[Permission, ...]:
    """What the functions of AWS Lambda call."""
    return tuple(dict.fromkeys(one for name in get_args(Function) for one in rights(name)))


OF_JOBS = (CLUSTER_PERMISSION, EKS_PERMISSION)
"""What they need where a Job makes folders."""

BLOCKS: Mapping[str, tuple[Block, ...]] = {
    "wire-domain.yaml": (
        # One role for all functions; the template names the file system, so of clusters only Jobs need to know.
        Block("wiring", more=tuple(one for one in of_functions() if one not in OF_JOBS)),
        Block("kubernetes", more=OF_JOBS),
    ),
    "roles.yaml": (
        Block("reading", reading_features(), of_eks="HasEks"),
        Block("node-actions", ("node-actions",)),
        Block("terminal", ("terminal", "ssh")),
        Block("mlflow-app", ("mlflow-app",)),
        Block("admin", domain_features(), of_eks="HasEks"),
        Block("admin-clusters", cluster_features(), of_eks="HasEks"),
    ),
}
"""By template: what its roles may do."""


def statements(block: Block) -> Iterator[str]:
    """The statements of a policy, in YAML."""
    granted: dict[tuple[str, tuple[str, ...], bool], set[str]] = {}
    for one in block.permissions:
        eks = block.of_eks is not None and one.resource.split(":")[2:3] == ["eks"]
        granted.setdefault((one.resource, conditions(one.action), eks), set()).add(one.action)
    # Resources with the same actions are one statement.
    merged: dict[tuple[tuple[str, ...], tuple[str, ...], bool], list[str]] = {}
    for (resource, held, eks), actions in sorted(granted.items()):
        merged.setdefault((tuple(sorted(actions)), held, eks), []).append(resource)
    for (actions_of, held, eks), resources in merged.items():
        lines = list(statement(actions_of, resources, held))
        if eks:
            yield "- !If"
            yield f"  - {block.of_eks}"
            yield from (f"  {'- ' if at == 0 else '  '}{line}" for at, line in enumerate(lines))
            yield "  - !Ref AWS::NoValue"
        else:
            yield from (f"{'- ' if at == 0 else '  '}{line}" for at, line in enumerate(lines))


def conditions(action: str) -> tuple[str, ...]:
    """The conditions under which an action is allowed, a line each."""
    if action in TAGGING:
        return (f"ForAllValues:StringLike: {{ aws:TagKeys: '{OUR_TAGS}' }}", "'Null': { aws:TagKeys: 'false' }")
    if action in PASSED_TO:
        return (f"StringEquals: {{ iam:PassedToService: {PASSED_TO[action]} }}",)
    return ()


def statement(actions: Iterable[str], resources: list[str], held: tuple[str, ...]) -> Iterator[str]:
    """One statement; `held` are its conditions."""
    yield "Effect: Allow"
    yield "Action:"
    yield from (f"  - {action}" for action in actions)
    if resources == [feature.ANY_RESOURCE]:
        yield "Resource: '*'"
    else:
        yield "Resource:"
        yield from (f"  - !Sub {resource.format(**HERE)}" for resource in resources)
    if held:
        yield "Condition:"
        yield from (f"  {line}" for line in held)


def reasons(block: Block) -> Iterator[str]:
    """Why actions are allowed on every resource."""
    every = {one.action: one for one in block.permissions if one.resource == feature.ANY_RESOURCE}
    for action, one in sorted(every.items()):
        why = NO_SMALLER.get(action, "IAM defines no resource for it.")
        yield f"{action}: {json.dumps(f'{why} Without it: {one.without}.')}"


def filled(text: str, blocks: Iterable[Block]) -> str:
    """A template with what stands between its marks.

    Raises:
        SystemExit: A mark is missing.
    """
    for block in blocks:
        for kind, lines in (("statements", statements), ("reasons", reasons)):
            mark = re.compile(
                rf"^( *)# <{kind} {block.name}>\n.*?^ *# </{kind} {block.name}>\n", re.DOTALL | re.MULTILINE
            )
            found = mark.search(text)
            if found is None:
                if kind == "statements" or list(lines(block)):
                    sys.exit(f"there is no mark # <{kind} {block.name}>")
                continue
            inside = "".join(f"{found[1]}{line}\n" for line in lines(block))
            made = f"{found[1]}# <{kind} {block.name}>\n{inside}{found[1]}# </{kind} {block.name}>\n"
            text = text[: found.start()] + made + text[found.end() :]
    version = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["version"]
    return re.sub(r"(\n  PackageVersion:\n(?:    .*\n)*?    Default: ).*", rf"\g<1>{version}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    check = parser.parse_args().check
    wrong = []
    for path in sorted(FOLDER.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        made = filled(text, BLOCKS.get(path.name, ()))
        if made != text:
            wrong.append(path)
            if not check:
                path.write_text(made, encoding="utf-8")
    if wrong and check:
        words = ", ".join(str(path.relative_to(ROOT)) for path in wrong)
        print(f"{words}: not what the code says; run: {sys.argv[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write docs/permissions.md from the table of features: `make_permissions.py [--check]`."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from hyperpod_jlab.aws.permissions import FEATURES, Feature, choose, policy

PAGE = Path(__file__).parent.parent / "docs" / "permissions.md"

HEAD = """\
# IAM permissions

<!-- Written by scripts/make_permissions.py. Do not edit: change hyperpod_jlab/aws/permissions.py, then run `.venv/bin/python scripts/make_permissions.py`. -->

With this page you can give a role the least privilege that the features need. Every feature works with exactly the actions listed here: the tests run each
feature with its own policy, and again without each single action. If an action is denied, the output names it, and everything else works.
`sts:GetCallerIdentity` needs no permission.

Attach the policy to the role of Studio's spaces (the execution role), or to users who work elsewhere:

```
hpj admin policy > policy.json                    # all features that only read
hpj admin policy nodes --region us-west-2         # one feature, one region
hpj admin policy --partition aws-cn               # ARNs of another AWS partition. Default in Studio: its own
```
"""

RESOURCES = """\
The resource is `*` where IAM has nothing narrower. ARNs are shown for the AWS partition `aws`, all regions and accounts; `--region` and `--account` restrict
them.
"""

READING = """\
## The policy for everything that only reads, without admin features
"""


def feature_part(feature: Feature) -> Iterator[str]:
    """A heading, the commands, and a table of the actions."""
    commands = ", ".join(
        f"`{command}`" if command.startswith("hpj ") else command for command in feature.commands
    )
    changes = ""
    if feature.for_admins:
        changes = " It is for admins and not in the policy below."
    elif feature.changes:
        changes = " It changes something and is not in the policy below."
    yield f"### {feature.title}\n"
    yield f"`hpj admin policy {feature.name}`, for {commands}.{changes}\n"
    yield "| action | resource | without it |\n| --- | --- | --- |"
    for one in feature.permissions:
        resource = one.resource.format(partition="aws", region="*", account="*")
        yield f"| `{one.action}` | `{resource}` | {one.without} |"
    yield ""


def page() -> str:
    """The whole page."""
    lines = [HEAD, "## The features\n", RESOURCES]
    for feature in FEATURES:
        lines += feature_part(feature)
    document = json.dumps(policy(choose(())), indent=2)
    lines += [READING, f"```json\n{document}\n```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    text = page()
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what the code says; run: {sys.argv[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

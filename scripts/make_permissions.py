"""Write docs/permissions.md, which git does not have, from the table of features. `make install` runs this."""

import json
from collections.abc import Iterator
from pathlib import Path

from hyperpod_jlab.aws.permissions import FEATURES, Feature, choose, policy

PAGE = Path(__file__).parent.parent / "docs" / "permissions.md"

HEAD = """\
# IAM permissions

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
    commands = ", ".join(f"`{command}`" if command.startswith("hpj ") else command for command in feature.commands)
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

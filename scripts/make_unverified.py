"""Write docs/unverified.md from the table of facts: `make_unverified.py [--check]`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hyperpod_jlab.admin.verify.checks import CLUSTER_FACTS, STUDIO_FACTS
from hyperpod_jlab.admin.verify.models import Fact

PAGE = Path(__file__).parent.parent / "docs" / "unverified.md"

HEAD = """\
# Unverified facts about AWS

<!-- Written by scripts/make_unverified.py. Do not edit: change hyperpod_jlab/admin/verify/checks.py, then run `.venv/bin/python scripts/make_unverified.py`. -->

With this page you can check, on your own account, what this project assumes about AWS. It was made without an AWS account: the tests run real boto3 against [a
simulated AWS API](../testbed/README.md#aws), whose answers are checked against botocore's models. So names, types and limits are as AWS publishes them. The
facts below go beyond these models: they come from AWS's documentation or samples, or are guesses, and none was tried. One command checks them:

```
hpj admin verify-aws                          # changes nothing
hpj admin verify-aws --write --as-role arn:aws:iam::111122223333:role/Tester > report.md
```

The report is Markdown, without account ids and role names. Please paste it into an issue.

| option | effect |
| --- | --- |
| none | Only describes, lists, looks up and simulates. Checks the facts marked *read* |
| `--as-role ARN` | Assumes one of your roles for sessions with fewer permissions. Some facts are about a missing permission |
| `--write` | Creates a Studio domain with a user profile, a space and a lifecycle configuration, checks the facts marked *write* on them, and deletes them with the domain's EFS file system and security groups. No application is started. It takes about 15 minutes. VPC, subnets and role are those of `--domain`, unless you name others (`--vpc`, `--subnet`, `--role`) |
| `--file-system ID` | A file system of that VPC, for the test profile's list. It is not mounted |
| `--clean-up` | Deletes what a killed run left behind. The next `--write` does it too |
| `--only FACT` | Only this fact |

With `--write` you see what will be created, and confirm once. Each step is named before it is done. Everything created is called `hyperpod-jlab-verify-` and a
number, has that name as its tag `hyperpod-jlab-verify`, and is deleted at the end, also after an error and after Ctrl-C. Nothing else is changed. After `kill
-9` this machine knows what is left from a note in `~/.local/state/hyperpod-jlab/verify`, another machine from the tags, except for what is younger than an
hour. A domain in which someone else created something is not deleted.

The exit code is 0 if no fact was found wrong, 1 if one was, else that of the error. Permissions:
[`admin-verify`](permissions.md#check-assumptions-about-aws-read-only) and
[`admin-verify-write`](permissions.md#check-assumptions-about-aws-in-a-temporary-domain-needs-admin-verify-too).

No API can check the facts marked *by hand*. The report says what to do.
"""

PARTS: Sequence[tuple[str, Sequence[Fact]]] = (
    ("SageMaker Studio", STUDIO_FACTS),
    ("HyperPod clusters", CLUSTER_FACTS),
)


def page() -> Iterator[str]:
    """The page, line by line."""
    yield HEAD
    for title, facts in PARTS:
        yield f"## {title}\n"
        yield "| fact | what depends on it | if it is wrong | check |"
        yield "| --- | --- | --- | --- |"
        for fact in facts:
            code = ", ".join(f"[{Path(one).name}](../{one})" for one in fact.code)
            yield f"| `{fact.name}`: {fact.statement} | {code} | {fact.if_wrong} | *{fact.how}*: {fact.check} |"
        yield ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    text = "\n".join(page()).rstrip("\n") + "\n"
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what the code says; run: {sys.argv[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

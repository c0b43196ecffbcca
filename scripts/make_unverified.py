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

With this page you can check, on your own account, what this project assumes about AWS. The project was developed without an AWS account. Its tests run real boto3
against [a simulated AWS API](../testbed/README.md#aws), whose answers are checked against botocore's models. So names, types and limits are as AWS publishes them.

The facts below are not in these models. They come from AWS's documentation or samples, or are guesses, and were never tested. This command checks them:

```
hpj admin verify-aws                          # changes nothing
hpj admin verify-aws --write --as-role arn:aws:iam::111122223333:role/Tester > report.md
```

The report is Markdown, without account ids and role names. Please paste it into an issue.

| option | effect |
| --- | --- |
| none | Checks the facts marked *read*. Changes nothing: all calls only describe, list, look up or simulate |
| `--as-role ARN` | Assumes one of your roles in sessions with fewer permissions. Facts about missing permissions need this |
| `--write` | Also checks the facts marked *write*. Creates a Studio domain with a user profile, a space and a lifecycle configuration, and deletes them afterwards, with the domain's EFS file system and security groups. No application is started. This takes about 15 minutes. The domain gets the VPC, subnets and role of `--domain`, or those of `--vpc`, `--subnet` and `--role` |
| `--file-system ID` | A file system of that VPC, for the test profile's list. It is not mounted |
| `--clean-up` | Deletes what a killed run left behind. The next `--write` does this too |
| `--only FACT` | Checks only this fact |

With `--write`, the command first shows what it will create, and you confirm once. It names each step before it starts it.

- Everything that it creates has a name `hyperpod-jlab-verify-NUMBER`, and the same name in the tag `hyperpod-jlab-verify`. Nothing else is changed.
- Everything is deleted at the end, even after an error or Ctrl-C. A domain in which someone else has created something is not deleted.
- After `kill -9`, the next run finds what is left: on the same machine by a note in `~/.local/state/hyperpod-jlab/verify`, on another machine by the tags. By the
  tags, it deletes only what is older than an hour.

The exit code is 0 if all checked facts hold, and 1 if a fact does not hold; after an error, it is that of the error. Permissions:
[`admin-verify`](permissions.md#check-assumptions-about-aws-read-only) and
[`admin-verify-write`](permissions.md#check-assumptions-about-aws-in-a-temporary-domain-needs-admin-verify-too).

No API can check the facts marked *by hand*. The report says how to check them.
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

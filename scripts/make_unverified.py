"""Write docs/unverified.md from the table of facts: `make_unverified.py [--check]`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hyperpod_jlab.admin.verify.checks import CLUSTER_FACTS, STUDIO_FACTS
from hyperpod_jlab.admin.verify.models import Fact

PAGE = Path(__file__).parent.parent / "docs" / "unverified.md"

HEAD = """\
# What could not be tried without an AWS account

<!-- Written by scripts/make_unverified.py. Do not edit: change hyperpod_jlab/admin/verify/checks.py, then run `.venv/bin/python scripts/make_unverified.py`. -->

This project was made without an AWS account. The tests run real boto3 against [an AWS API of our own](../testbed/README.md#aws), whose answers are checked against botocore's model. So names, types and limits are as AWS publishes them.
The facts below are beyond that model. Each is from AWS' documentation or samples, or a guess, and none was tried. If you have an account, one command goes through this table:

```
hpj admin verify-aws                          # changes nothing
hpj admin verify-aws --write --as-role arn:aws:iam::111122223333:role/Tester > report.md
```

The report is Markdown, without account ids and names of roles. Please paste it into an issue.

| option | what it does |
| --- | --- |
| none | Calls only describe, list, look up and simulate. The facts marked *read* are checked |
| `--as-role ARN` | Assumes a role of yours for sessions whose policy has fewer rights than the role. Some facts are about a right that is missing |
| `--write` | Makes a domain of Studio with a user profile, a space and a lifecycle configuration, checks the facts marked *write* on them, and deletes them with the domain's EFS file system and security groups. No application is started. It takes about 15 minutes. VPC, subnets and role are those of `--domain`, unless you name others (`--vpc`, `--subnet`, `--role`) |
| `--file-system ID` | A file system of that VPC, for the throw-away profile's list. It is not mounted |
| `--clean-up` | Deletes what a run has left that was killed. The next `--write` does it too |
| `--only FACT` | Only this fact |

With `--write` you see what will be made, and are asked once. Each step is named before it is done. All that is made is called `hyperpod-jlab-verify-` and a number, and has that name as its tag `hyperpod-jlab-verify`. Nothing else is changed. What is made is
deleted at the end, also after an error and after Ctrl-C. After `kill -9` this machine knows from a note in `~/.local/state/hyperpod-jlab/verify` what is left, another machine from the tags: it leaves alone what is younger than an hour, for its run may be under way.
A domain in which somebody else made something is not deleted.

The exit code is 0 when no fact was found wrong, 1 when one was, else that of the error. What AWS has to allow: [`admin-verify`](permissions.md#check-what-is-believed-of-aws-changing-nothing) and
[`admin-verify-write`](permissions.md#try-what-is-believed-of-aws-in-a-throw-away-domain-admin-verify-besides).

The facts marked *by hand* no API tells. The report says of them what to do.
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

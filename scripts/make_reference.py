"""Write docs/reference.md, and the list of the spec's options, from the schema, the command line and the launcher.

`make install` runs this; git has the list, but not the page. Nothing in the page is written by hand, so that it cannot say something
else than the code does. The few tables whose words stand here (states, exit codes, variables of a rank) are checked against the code
while they are made.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from hyperpod_jlab.cli.root import cli
from hyperpod_jlab.core import errors
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.options import OPTIONS_FILE, dump_options
from hyperpod_jlab.core.run import STATES
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.launcher import environment
from hyperpod_jlab.magics.cell import run_cell

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"

HEAD = """\
# Reference

On this page you can look up [the spec](#the-spec), [the configuration file](#the-configuration-file), [commands](#commands), [the magic](#the-magic),
[states](#states), [exit codes](#exit-codes) and [the environment of a rank](#the-environment-of-a-rank). It is generated from the code.
"""

SPEC = """\
## The spec

A `JobSpec` says what to run and with which resources. The options of the command line and the magic, the submit form, the
Python API and REST are generated from it. `hpj submit --spec FILE` reads a spec from a JSON or TOML file; other options override it. In the Python
API, an option has the name of its flag, with underscores: `--time-limit 2h` is `time_limit="2h"`.
"""

CONFIGURATION = """\
## The configuration file

The configuration is in TOML files: `/etc/hyperpod-jlab/config.toml`, then `${XDG_CONFIG_HOME:-~/.config}/hyperpod-jlab/config.toml`. The second
file overrides the first. If `$HYPERPOD_CONFIG` names a file, only that file is read. To use only the cluster `local`, you need no file. For an
unknown key, the error names the nearest valid key.

```toml
default_cluster = "ml-slurm"

[storage]
path = "/home/sagemaker-user/fsx"

[clusters.ml-slurm]
orchestrator = "slurm"
transport = "ssh"
login_nodes = ["login-1", "login-2"]
storage = "/fsx/alice"
```
"""

COMMANDS_HEAD = """\
## Commands

`--json`, anywhere on the command line, prints one JSON document. `hpj logs --json` prints one object per line. Errors are one line of JSON.
Arguments after `--` go to your own program. `-h` prints the help of a command.
"""

MAGIC = """\
## The magic

`%load_ext hyperpod_jlab` defines two magics ([how to use them](magic.md)). `%hyperpod COMMAND` runs `hpj COMMAND` in the kernel. Without a
command, it lists the runs.
"""

STATE_WORDS = {
    "submitting": "the bundle exists; the scheduler has not confirmed the run yet",
    "waiting": "the scheduler has the run; it has not started, or waits for its next attempt",
    "running": "an attempt has started and has not ended",
    "succeeded": "the last attempt ended with 0 on all nodes",
    "failed": "the last attempt failed, and no other will start; `reason` says why",
    "cancelled": "its user cancelled it",
    "unknown": "the records cannot be read, or the cluster does not respond",
}

EXIT_WORDS = {
    0: "done (`logs -f` too, even if the run failed)",
    1: "with `--wait` or `--follow`: the run did not succeed; "
    "`hpj admin apply`, `destroy` and `status`: a step waits or is blocked, or (`status`) something is not up to date; for a cluster: AWS reports a failure",
    2: "invalid arguments; or refused by preflight, the scheduler or the storage; or `unsupported`",
    3: "a run or another named object does not exist",
    4: "permission denied",
    5: "the cluster does not respond",
    70: "an internal error",
    130: "interrupted; the run continues",
}

VARIABLE_WORDS = {
    "RANK": "number of the process in the run",
    "LOCAL_RANK": "number of the process on its node",
    "NODE_RANK": "number of the node",
    "WORLD_SIZE": "processes of the whole run",
    "LOCAL_WORLD_SIZE": "processes on each node",
    "MASTER_ADDR": "host of rank 0",
    "MASTER_PORT": "port for the rendezvous of `torch.distributed`",
    "HYPERPOD_RUN_ID": "the run's id",
    "HYPERPOD_ATTEMPT": "number of the attempt, from 1",
    "HYPERPOD_BUNDLE": "absolute path of the bundle",
    "HYPERPOD_RECORDS": "absolute path of the run's records. For a child of an array, this is a folder in the bundle",
    "HYPERPOD_ARRAY_INDEX": "index of the child; in arrays only",
    "HYPERPOD_STACK_SIGNAL": "number of the signal that asks a process for its stacks; Linux only",
    "PYTHONUNBUFFERED": "`1`: output is in the log at once",
    "PYTHONFAULTHANDLER": "`1`: a crash leaves a traceback",
    "OMP_NUM_THREADS": "CPUs of the node divided by processes on it, unless it is set",
}


def cell(text: str) -> str:
    """A text that may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell(text) for text in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


class Schema:
    """A JSON schema to walk through."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def resolve(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """The node itself, or what it refers to, its own words kept; null is left out of a choice."""
        found = dict(node)
        choices = [one for one in found.get("anyOf", []) if one.get("type") != "null"]
        if len(choices) == 1:
            found = {**choices[0], **{key: found[key] for key in found if key != "anyOf"}}
        if "$ref" in found:
            name = found.pop("$ref").rpartition("/")[2]
            found = {**self.document["$defs"][name], **found}
        return found

    def fields(self, node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
        """Every field below an object: its path, its schema, whether it must be given."""
        required = node.get("required", [])
        for name, raw in node.get("properties", {}).items():
            found = self.resolve(raw)
            if "const" in found and "description" not in found:
                continue  # the word that tells the members of a choice apart
            if "properties" in found:
                if "anyOf" in raw:  # a table that may be left out
                    yield f"{path}{name}", {**found, "type": "object"}, name in required
                yield from self.fields(found, f"{path}{name}.")
            elif "oneOf" not in found:
                yield f"{path}{name}", found, name in required

    def alternatives(self, node: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The members of a discriminated choice, by the discriminating word."""
        for word, reference in node["discriminator"]["mapping"].items():
            yield word, self.resolve({"$ref": reference})


def type_words(node: Mapping[str, Any]) -> str:
    """A field's type in words."""
    if "enum" in node or "const" in node:
        return ", ".join(f"`{word}`" for word in node.get("enum", [node.get("const")]))
    if "examples" in node:
        return f"text such as `{node['examples'][0]}`, or a whole number"
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(type_words(one) for one in node["anyOf"]))
    kind = str(node.get("type", "any"))
    if kind == "array":
        return f"list of {type_words(node['items'])}"
    if kind == "object":
        inner = node.get("additionalProperties")
        return f"table of {type_words(inner)}" if isinstance(inner, dict) else "table"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(kind, kind)
    return words + bounds(node)


def bounds(node: Mapping[str, Any]) -> str:
    """The limits of a number."""
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    return f", at least {low:,}" if low is not None else ""


def default_words(node: Mapping[str, Any], required: bool) -> str:
    """A field's default."""
    if required:
        return "must be given"
    default = node.get("default")
    if default is None or default in ([], {}, ""):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`"


def spec_rows(schema: Schema, node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of one object of the spec."""
    for path, field, required in schema.fields(node):
        flag = field.get("x-option", {}).get("flag", "")
        option = ", ".join(f"`{word}`" for word in flag.split("/")) if flag else ""
        description = field.get("description", "")
        yield f"`{path}`", option, type_words(field), default_words(field, required), description


def spec_part() -> str:
    """The section on the spec."""
    schema = Schema(JobSpec.model_json_schema())
    head = ("field", "option", "type", "default", "meaning")
    parts = [SPEC, "### Fields\n", table(head, spec_rows(schema, schema.document))]
    parts.append("### `source`: what to run\n\nThe source has one of these forms. `kind` selects the form.\n")
    for kind, node in schema.alternatives(schema.document["properties"]["source"]):
        parts.append(f'#### `kind = "{kind}"`\n\n{node["description"]}\n')
        parts.append(table(head, spec_rows(schema, node)))
    return "\n".join(parts)


def config_rows(schema: Schema, node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of one table of the configuration."""
    for path, field, required in schema.fields(node):
        yield (f"`{path}`", type_words(field), default_words(field, required), field.get("description", ""))


def configuration_part() -> str:
    """The section on the configuration file."""
    schema = Schema(Settings.model_json_schema())
    head = ("key", "type", "default", "meaning")
    top = {**schema.document, "properties": dict(schema.document["properties"])}
    clusters = next(iter(top["properties"].pop("clusters")["patternProperties"].values()))
    parts = [CONFIGURATION, table(head, config_rows(schema, top))]
    for word, node in schema.alternatives(clusters):
        parts.append(f'### `[clusters.NAME]` with `orchestrator = "{word}"`\n\n{node["description"]}\n')
        parts.append(table(head, config_rows(schema, node)))
    return "\n".join(parts)


def command_text(command: click.Command, context: click.Context, level: str) -> str:
    """One command's usage, help, options and examples, and those of the commands below it."""
    usage = command.get_usage(context).removeprefix("Usage: ")
    text = [f"{level} `{context.command_path}`\n", f"```\n{' '.join(usage.split())}\n```\n"]
    text += [paragraph(part) for part in (command.help or "").split("\n\n") if part.strip()]
    records = [
        one.get_help_record(context)
        for one in command.get_params(context)
        if isinstance(one, click.Option) and not {"--help", "--json"}.intersection(one.opts)
    ]
    rows = [(f"`{record[0]}`", record[1]) for record in records if record]
    if rows:
        text.append(table(("option", "meaning"), rows))
    examples = getattr(command, "examples", ())
    if examples:
        text.append("```\n" + "\n".join(examples) + "\n```\n")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                text.append(command_text(inner, context_of(inner, name, context), level + "#"))
    return "\n".join(text)


def paragraph(text: str) -> str:
    """One paragraph of a help text; one that click is to leave as it is stays so here too."""
    if text.lstrip("\n").startswith("\b\n"):
        return "```\n" + text.replace("\b\n", "").strip("\n") + "\n```\n"
    return text.strip() + "\n"


def context_of(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """A context with a fixed width, so that the page does not depend on the terminal."""
    return click.Context(command, info_name=name, parent=parent, terminal_width=1000, max_content_width=1000)


def commands_part() -> str:
    """The section on the command line."""
    root = context_of(cli, "hpj", None)
    parts = [COMMANDS_HEAD]
    for section in cli.sections:
        parts.append(f"### {section.title}\n")
        for entry in section.entries:
            command = cli.get_command(root, entry.name)
            if command is not None:
                parts.append(command_text(command, context_of(command, entry.name, root), "####"))
    return "\n".join(parts)


def magic_part() -> str:
    """The section on the magic."""
    return MAGIC + "\n" + command_text(run_cell, context_of(run_cell, "%%hyperpod", None), "###")


def states_part() -> str:
    """The section on states."""
    if set(STATE_WORDS) != set(STATES):
        raise SystemExit(f"states without words, or the other way round: {set(STATE_WORDS) ^ set(STATES)}")
    rows = ((f"`{state}`", STATE_WORDS[state]) for state in STATES)
    return "## States\n\n" + table(("state", "meaning"), rows)


def exit_codes_part() -> str:
    """The section on exit codes, with the errors that lead to each."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    ours = [kind for kind in kinds if issubclass(kind, errors.HyperpodError)]
    found = {kind.exit_code for kind in ours}
    if not found <= set(EXIT_WORDS):
        raise SystemExit(f"exit codes without words: {found - set(EXIT_WORDS)}")
    head = "## Exit codes\n\nErrors go to stderr. With `--json` the last line of stderr is "
    head += "`{code, message, hint, detail}` in one line of JSON.\n\n"
    return head + table(("code", "meaning"), ((f"`{code}`", words) for code, words in EXIT_WORDS.items()))


def variables_of_a_rank() -> set[str]:
    """The names that the launcher sets, by its own functions."""
    plan: Any = SimpleNamespace(run_id="x", processes=1)
    place: Any = SimpleNamespace(bundle="/bundle", records="/bundle", attempt=1, node_rank=0)
    arguments: Any = SimpleNamespace(nodes=1, master_addr="", master_port=1, task=0)
    names = {*environment.launcher_variables(plan, place, arguments), *environment.rank_variables(plan, place, 0)}
    return names | {"PYTHONUNBUFFERED", "PYTHONFAULTHANDLER", "OMP_NUM_THREADS"}


def environment_part() -> str:
    """The section on what a rank finds around it."""
    difference = variables_of_a_rank() ^ set(VARIABLE_WORDS)
    if difference:
        raise SystemExit(f"variables without words, or the other way round: {sorted(difference)}")
    head = "## The environment of a rank\n\nA rank has the environment of a login on the node, the variables and secrets of the "
    head += "spec, the changes of the setup lines, and these variables.\n\n"
    return head + table(("variable", "meaning"), ((f"`{name}`", words) for name, words in VARIABLE_WORDS.items()))


def render() -> str:
    """The whole page."""
    parts = [HEAD, spec_part(), configuration_part(), commands_part(), magic_part()]
    parts += [states_part(), exit_codes_part(), environment_part()]
    return "\n".join(parts)


def main() -> None:
    # The command line, which the page describes, was imported with the list as it is: with a new one all begins again.
    options = dump_options(JobSpec)
    if not OPTIONS_FILE.exists() or OPTIONS_FILE.read_text(encoding="utf-8") != options:
        OPTIONS_FILE.write_text(options, encoding="utf-8")
        print(f"wrote {OPTIONS_FILE.name}")
        os.execv(sys.executable, [sys.executable, *sys.argv])
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()

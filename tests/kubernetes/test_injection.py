"""Words of shells, of YAML and of the kubelet through every text field: in the manifest they are text, in the pod they are what was written, or they are refused in words."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.engines.kubernetes.kinds.train_job import Runtime, TrainJob
from tests.kubernetes.manifest_cases import text as manifest_text
from tests.kubernetes.session_fixtures import KubernetesSession
from tests.slurm.test_injection import CORPUS as SHELL

CORPUS = {
    **SHELL,
    "variable of the kubelet": "$(RANK) $$(RANK) $$$(RANK) $(HYPERPOD_NODE)",
    "end of a text": '"\n  evil: 1\n#',
    "end of a plain text": "x\nevil: 1",
    "end of a list": "x]\nevil: 1",
    "new document": "x\n---\nkind: Pod\n",
    "end of the document": "x\n...\nevil: 1",
    "alias": "*evil",
    "anchor": "&evil x",
    "merge": "<<: {evil: 1}",
    "tag": "!!python/object/apply:os.system ['touch canary']",
    "map": "{evil: 1}",
    "null": "null",
    "yes": "yes",
    "number": "0x10",
    "sexagesimal": "1:30:00",
    "date": "2026-11-21",
    "merge patch": '{"metadata": null}',
    "tab": "\tx\t",
    "spaces": "  x  ",
    "surrogates": "\U0001f600 é 日本",
    "empty line": "\n\n",
    "byte order mark": "\ufeffx",
}
PLAIN = "plain"


def _spec(*path: str) -> Any:
    """A case whose text stands at this place of the spec."""

    def case(text: str) -> dict[str, Any]:
        value: Any = text
        for part in reversed(path):
            value = {part: value}
        return {"spec": value}

    return case


FIELDS: dict[str, Any] = {
    "name": lambda text: {"name": text},
    "user": lambda text: {"user": text},
    "python": lambda text: {"python": text},
    "queue": _spec("queue"),
    "priority": _spec("priority"),
    "priority of a queue": lambda text: {"spec": {"queue": "q", "priority": text}},
    "instance_type": _spec("resources", "instance_type"),
    "instance_group": _spec("resources", "instance_group"),
    "accelerator": _spec("resources", "accelerators", "type"),
    "image": _spec("environment", "image"),
    "secret's name": lambda text: {"spec": {"environment": {"secrets": {text: "a/b"}}}},
    "secret": _spec("environment", "secrets", "TOKEN"),
    "topology": _spec("kubernetes", "topology", "level"),
    "namespace": _spec("kubernetes", "namespace"),
    "claim": lambda text: {"storage": {"claim": text}},
    "sub_path": lambda text: {"storage": {"claim": "fsx", "sub_path": text}},
    "mount": lambda text: {"storage": {"claim": "fsx", "mount": "/data/" + text}},
    "runtime": lambda text: {"kind": TrainJob(Runtime(text))},
    "patch": lambda text: {"patches": [{"metadata": {"annotations": {"note": text}}}]},
    "patch's name": lambda text: {"patches": [{"metadata": {"annotations": {text: "x"}}}]},
}


def _leaves(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield (*path, "key"), key
            yield from _leaves(value, (*path, key))
    elif isinstance(found, list):
        for at, value in enumerate(found):
            yield from _leaves(value, (*path, at))
    else:
        yield path, found


def _document(field: str, kind: str, text: str) -> dict[str, Any]:
    case = {"kind": kind, **FIELDS[field](text)}
    (found,) = yaml.safe_load_all(manifest_text(case))
    assert isinstance(found, dict)
    return found


def _kubelet(text: str) -> str:
    """What the kubelet makes of an argument in which no variable is known (third_party/forked/golang/expansion of Kubernetes)."""
    made, at = [], 0
    while at < len(text):
        if text[at : at + 2] == "$$":
            made.append("$")
            at += 2
        else:
            assert text[at : at + 2] != "$(", f"a variable in {text!r}"
            made.append(text[at])
            at += 1
    return "".join(made)


@pytest.mark.parametrize(
    "kind",
    [
        "PyTorchJob",
        pytest.param("TrainJob", marks=pytest.mark.full),
        pytest.param("Job", marks=pytest.mark.full),
        pytest.param("HyperPodPyTorchJob", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("field", FIELDS)
def test_text_stays_text(field: str, kind: str):
    """Where a plain word stood, the text stands; nothing else is there that was not."""
    try:
        plain = list(_leaves(_document(field, kind, PLAIN)))
    except InvalidInputError:
        plain = []
    held = 0
    for text in CORPUS.values():
        try:
            found = list(_leaves(_document(field, kind, text)))
        except InvalidInputError:
            continue
        held += 1
        if field == "patch's name":
            assert text in [value for path, value in found if path[-1] == "key"]
            continue
        if field == "user":  # its label is left out when nothing of it can be in one
            assert text in [value for _, value in found]
            continue
        assert len(found) == len(plain)
        for (path, value), (_, word) in zip(found, plain, strict=True):
            if not isinstance(word, str) or PLAIN not in word or path[-1] == "key":
                continue
            wanted = word.replace(PLAIN, text)
            assert (_kubelet(value) if "command" in path else value) == wanted
    assert held > 20 or field in {"accelerator", "namespace", "secret's name", "secret"}


async def test_text_arrives_as_it_was_written(session: KubernetesSession):
    texts = [text for text in CORPUS.values() if "\0" not in text]
    (session.folder / "echo.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([[os.environ[f'VALUE_{n}'] for n in range(int(sys.argv[1]))], sys.argv[2:]]))\n"
    )
    run_id = await session.submit(
        source={"kind": "script", "path": "echo.py"},
        args=[str(len(texts)), *texts],
        environment={"variables": {f"VALUE_{n}": text for n, text in enumerate(texts)}},
    )
    run = await session.ended(run_id)
    assert run.state == "succeeded", (run.status, session.log(run_id))
    assert json.loads(session.log(run_id)) == [texts, texts]


@pytest.mark.full
async def test_every_field_is_right_or_refused(session: KubernetesSession):
    """Each text in each field of a spec, up to the API server's verdict on it."""
    gate = asyncio.Semaphore(4)

    async def one(field: str, text: str) -> str | None:
        spec = FIELDS[field](text)["spec"]
        try:
            async with gate:
                preview = await session.hyperpod.submitter.preview(session.request(**spec))
        except HyperpodError as error:
            return error.message
        errors = [found.message for found in preview.findings if found.level == "error"]
        return errors[0] if errors else None

    fields = [field for field in FIELDS if "spec" in FIELDS[field](PLAIN)]
    pairs = list(itertools.product(fields, CORPUS))
    said = await asyncio.gather(*(one(field, CORPUS[name]) for field, name in pairs))
    assert [message for message in said if message is not None and not message.strip()] == []
    taken = {pair for pair, message in zip(pairs, said, strict=True) if message is None}
    # An image's name is looked at when it is fetched, a level of the topology by the queue; what is left are words that may be names.
    left = {(field, name) for field, name in taken if field not in {"image", "topology"}}
    assert {name for _, name in left} <= {"null", "yes", "number", "date"}, left

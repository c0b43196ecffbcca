"""Parameters of a notebook: the injected cell, its place, and what is said about names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.capture import Captured
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from tests.capture.bundles import Laboratory, notebook_of, notebook_spec


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    (tmp_path / "base").mkdir()
    return Laboratory(tmp_path / "base", tmp_path / "partition")


def tagged(source: str, *tags: str, identity: str = "p") -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": identity,
        "metadata": {"tags": list(tags), "trusted": True},
        "execution_count": 3,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}],
        "source": source,
    }


def captured(lab: Laboratory, notebook: dict[str, Any], **source: Any) -> Captured:
    return lab.capture(notebook_spec(source=source), notebook)


def sent(found: Captured) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(next(file.data for file in found.files if file.path == "code/notebook.ipynb"))
    return document


VALUES = {
    "lr": 0.5,
    "name": 'it\'s "quoted" \n$HOME `x` é',
    "on": True,
    "nothing": None,
    "layers": [1, {"a": [None, False]}],
}


def test_values_arrive_as_they_are(lab: Laboratory):
    notebook = notebook_of(
        "before = 1",
        tagged("\n".join(f"{name} = 0" for name in VALUES), "parameters"),
        f"print({', '.join(VALUES)}, sep='|')\nassert ({', '.join(VALUES)}) == {tuple(VALUES.values())!r}",
    )
    found = captured(lab, notebook, parameters=VALUES)
    assert [finding.code for finding in found.findings] == []
    assert lab.bundle(found).run().code == 0
    cells = sent(found)["cells"]
    assert [cell["metadata"].get("tags") for cell in cells] == [None, ["parameters"], ["injected-parameters"], None]
    assert [cell["metadata"]["hyperpod"]["cell"] for cell in cells] == [1, 2, 0, 3]


def test_without_the_tag_they_come_first_and_that_is_said(lab: Laboratory):
    found = captured(lab, notebook_of("print(lr)"), parameters={"lr": 2})
    assert [finding.code for finding in found.findings] == ["no_parameters_cell"]
    assert lab.bundle(found).run().out == "2\n"


def test_a_selection_without_the_tagged_cell_is_warned_of(lab: Laboratory):
    notebook = notebook_of(tagged("lr, epochs = 1, 3", "parameters"), "print(lr)", "print(lr)")
    found = captured(lab, notebook, cells="2-3", parameters={"lr": 7})
    (finding,) = found.findings
    assert (finding.code, finding.hint) == ("parameters_cell_left_out", "select it too, such as with --cells 1,2-3")
    assert captured(lab, notebook, cells="1-2", parameters={"lr": 7}).findings == ()


def test_a_misspelt_name_is_found(lab: Laboratory):
    found = captured(lab, notebook_of(tagged("learning_rate = 1", "parameters")), parameters={"learning_rat": 2})
    (finding,) = found.findings
    assert (finding.code, finding.hint) == ("unknown_parameter", "did you mean learning_rate?")


def test_the_cell_of_an_earlier_run_is_replaced(lab: Laboratory):
    notebook = notebook_of(
        tagged("lr = 1", "parameters"), tagged("lr = 99", "injected-parameters", identity="q"), "print(lr)"
    )
    notebook["cells"].append({"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# End"})
    found = captured(lab, notebook, parameters={"lr": 2})
    assert lab.bundle(found).run().out == "2\n"
    assert [cell["source"] for cell in sent(found)["cells"]] == ["lr = 1", "# Parameters\nlr = 2", "print(lr)", "# End"]


def test_what_is_sent_has_no_outputs_and_no_trust(lab: Laboratory):
    notebook = notebook_of(tagged("x = 1", "a"), kernelspec={"name": "python3"}, widgets={"state": 1}, signature="s")
    notebook["cells"].insert(
        0, {"cell_type": "markdown", "id": "m", "metadata": {"trusted": True}, "source": ["# A\n", "b"]}
    )
    document = sent(captured(lab, notebook))
    assert document["metadata"] == {"kernelspec": {"name": "python3", "display_name": "python3"}}
    markdown, code = document["cells"]
    assert markdown == {"cell_type": "markdown", "id": "m", "source": ["# A\n", "b"], "metadata": {}}
    assert code["outputs"] == []
    assert code["execution_count"] is None
    assert code["metadata"] == {"tags": ["a"], "hyperpod": {"cell": 1}}


def test_a_selection_has_only_its_cells(lab: Laboratory):
    notebook = notebook_of("a = 1", "b = 2", "c = 3")
    notebook["cells"].insert(1, {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# B"})
    assert [cell["source"] for cell in sent(captured(lab, notebook, cells="2-3"))["cells"]] == ["b = 2", "c = 3"]
    assert len(sent(captured(lab, notebook))["cells"]) == 4


def test_large_pictures_of_markdown_are_left_out(lab: Laboratory):
    notebook = notebook_of("a = 1")
    attachments = {"a.png": {"image/png": "x" * 5_000_000}}
    notebook["cells"].append(
        {
            "cell_type": "markdown",
            "id": "m",
            "metadata": {},
            "attachments": attachments,
            "source": "![a](attachment:a.png)",
        }
    )
    assert len(json.dumps(sent(captured(lab, notebook)))) < 2_000


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"a b": 1}, "not a name of a variable"),
        ({"class": 1}, "not a name of a variable"),
        ({"": 1}, "not a name of a variable"),
        ({"x": float("nan")}, "the value of x is not a number, a text"),
        ({"x": float("inf")}, "the value of x is too large for a number"),
        ({"x": "y" * 70_000}, "longer than 65536 characters"),
        ({f"x{n}": n for n in range(201)}, "200"),
        ("x=1", "must be names with values"),
    ],
)
def test_bad_parameters_are_refused(parameters: object, words: str):
    with pytest.raises(InvalidInputError) as caught:
        parse(JobSpec, {"source": {"kind": "notebook", "path": "a.ipynb", "parameters": parameters}})
    assert words in str(caught.value)

"""What docs/notebooks.md says of each magic is what capture decides."""

import re
from pathlib import Path

import pytest

from hyperpod_jlab.capture import magics as cell_magics
from hyperpod_jlab.capture import magics as line_magics
from hyperpod_jlab.capture.notebook import CodeCell
from hyperpod_jlab.capture.transform import transform_cell

PAGE = Path(__file__).parents[2] / "docs" / "notebooks.md"
VERDICTS = {
    "Runs": "magic_runs",
    "Runs otherwise (a warning)": "magic_differs",
    "Has no effect": "magic_without_effect",
}


def described() -> list[tuple[str, str]]:
    """Every magic in the page's tables with the verdict under which it stands."""
    found = []
    for title, verdict in VERDICTS.items():
        section = PAGE.read_text().split(f"\n### {title}\n")[1].split("\n#")[0]
        for row in section.splitlines():
            if row.startswith("| `"):
                first = row.split(" | ")[0]
                found += [(text, verdict) for text in re.findall(r"`([^`]+)`", first)]
    return found


def example(text: str) -> str:
    """A cell with a magic as the page writes it, its placeholders filled in."""
    text = text.replace("...", "").replace("[NAME]", "").replace("name?", "print?")
    text = {"%env NAME": "%env HOME", "%time statement": "%time print()"}.get(text, text).strip()
    text = {"%timeit": "%timeit print()", "%sx": "%sx ls", "%system": "%system ls"}.get(text, text)
    text = "!ls" if text == "!command" else text
    if text in {"%ls", "%ll", "%cat", "%cp", "%mkdir", "%mv", "%rm", "%rmdir"}:
        text += " x"
    return f"{text}\nprint()" if text.startswith("%%") else text


@pytest.mark.parametrize(("text", "verdict"), described())
def test_each_magic_gets_the_verdict_that_the_page_tells(text, verdict):
    done = transform_cell(CodeCell(1, example(text), frozenset(), None), "x.ipynb/cell-01")
    assert [finding.code for finding in done.findings] == [verdict], done.notes


def test_the_page_names_every_magic_that_runs():
    words = set(re.findall(r"%{1,2}([!\w]+)", PAGE.read_text()))
    lines = {*line_magics._RUN_ONCE_COMMANDS, *line_magics._SHELL_ALIASES}
    cells = {*cell_magics._CELLS, *cell_magics._INTERPRETERS, *cell_magics._DISPLAY_MAGICS}
    assert (lines | cells) - words == set()

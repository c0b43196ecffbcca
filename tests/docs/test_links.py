"""Links between the pages of the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "testbed", "cloudformation", "lifecycle-configs", "requirements")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in ROOT.glob(f"{folder}/**/*.md"))]
)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE_PATH = re.compile(r"`((?:docs|examples|scripts|tests|hyperpod_jlab|benchmarks|src)/[\w./-]+)`")


def prose(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The anchors of a page's headings, as code hosts make them."""
    found = set()
    for line in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        text = re.sub(r"[^\w\- ]", "", line.lower()).strip()
        found.add(text.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    broken = []
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page):
    named = {path.rstrip("/.") for path in CODE_PATH.findall(prose(page))}
    assert [path for path in sorted(named) if not list(ROOT.glob(path))] == []

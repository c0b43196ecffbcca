"""Links between the pages of the documentation lead somewhere."""

import re

import pytest

from tests.docs.pages import MADE, PAGES, ROOT, text_of

FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE_PATH = re.compile(r"`((?:docs|examples|scripts|tests|hyperpod_jlab|benchmarks|src)/[\w./-]+)`")


def prose(page):
    return FENCE.sub("", text_of(page))


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
        if not (target in MADE or target.exists()) or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page):
    named = {path.rstrip("/.") for path in CODE_PATH.findall(prose(page))}
    missing = [path for path in sorted(named) if not list(ROOT.glob(path))]
    assert [path for path in missing if ROOT / path not in MADE] == []

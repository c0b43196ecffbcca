"""The pages of the documentation: their texts, and those that git does not have because scripts make them."""

from functools import cache
from pathlib import Path

from scripts import make_permissions, make_reference

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "testbed", "cloudformation", "lifecycle-configs", "requirements")
MADE = {make_permissions.PAGE: make_permissions.page, make_reference.PAGE: make_reference.render}
PAGES = sorted({*ROOT.glob("*.md"), *MADE} | {page for folder in FOLDERS for page in ROOT.glob(f"{folder}/**/*.md")})


@cache
def text_of(page: Path) -> str:
    """A page's text; that of a made one as the code is now."""
    return MADE[page]() if page in MADE else page.read_text(encoding="utf-8")

"""Pictures of pages, stored in the docs and compared block by block: the layout counts, not the letters."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image, ImageChops, ImageFilter

STORED = Path(__file__).resolve().parents[1] / "docs" / "images" / "pages"
#: The side of a block in CSS pixels: large enough that a digit or a moment changes few of them, small enough that a column does.
BLOCK = 16
#: Blocks with more than this mean strength of edges (of 255) have text or lines.
MIN_EDGES = 10
#: Blocks whose mean colour differs by more than this (of 255) differ.
MAX_COLOUR_DIFFERENCE = 24
#: The share of differing blocks with which a picture still passes. Two takes of one page have 1.5 % at most, a hidden column 3.7 %.
MAX_SHARE = 0.03


def load_picture(data: bytes | Path) -> Image.Image:
    """A picture, as bytes of a PNG or in a file."""
    return Image.open(BytesIO(data) if isinstance(data, bytes) else data).convert("RGB")


def store_picture(picture: Image.Image, path: Path) -> None:
    """Write it with 256 colours, which makes it a third as large."""
    path.parent.mkdir(parents=True, exist_ok=True)
    palette = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    palette.save(path, optimize=True)


def differing_share(one: Image.Image, other: Image.Image) -> float:
    """How many of the blocks that have something in them differ, from 0 to 1; 1 for another size.

    Two blocks differ if only one of them has text or lines, or if their colours differ.
    """
    if one.size != other.size:
        return 1.0
    inked, inked_other = _inked(one), _inked(other)
    differing = ImageChops.lighter(ImageChops.difference(inked, inked_other), _other_colour(one, other))
    used = ImageChops.lighter(differing, ImageChops.lighter(inked, inked_other))
    return _count(differing) / max(1, _count(used))


def _shrink(picture: Image.Image) -> Image.Image:
    """One pixel for each block, its mean."""
    size = picture.width // BLOCK, picture.height // BLOCK
    return picture.resize(size, Image.Resampling.BOX)


def _inked(picture: Image.Image) -> Image.Image:
    edges = _shrink(picture.convert("L").filter(ImageFilter.FIND_EDGES))
    return edges.point(lambda value: 255 if value > MIN_EDGES else 0)


def _other_colour(one: Image.Image, other: Image.Image) -> Image.Image:
    red, green, blue = ImageChops.difference(_shrink(one), _shrink(other)).split()
    largest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return largest.point(lambda value: 255 if value > MAX_COLOUR_DIFFERENCE else 0)


def _count(mask: Image.Image) -> int:
    return mask.histogram()[255]

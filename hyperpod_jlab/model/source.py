"""What a run executes: cells, a notebook, a script, a function, a command, or a native file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hyperpod_jlab.model.options import option
from hyperpod_jlab.model.quantities import WHOLE
from hyperpod_jlab.model.ranges import parse_ranges

Path = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f\x7f]+$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _check_cells(text: str) -> str:
    if parse_ranges(text)[0] == 0:
        raise ValueError("cells are counted from 1")
    return text


CellList = Annotated[str, AfterValidator(_check_cells)]


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


class NotebookSource(_Part):
    """A notebook, or some of its code cells."""

    kind: Literal["notebook"] = "notebook"
    path: Path
    """The .ipynb file."""
    cells: Annotated[CellList | None, option("--cells", metavar="2-5,7")] = None
    """Code cells to run, counted from 1; default: all."""
    tag: Annotated[
        str | None, Field(min_length=1, max_length=256), option("--tag", metavar="TAG")
    ] = None
    """Run only the code cells with this tag."""
    cell_ids: list[Annotated[str, Field(min_length=1, max_length=64)]] | None = None
    """Cells by their ids in the notebook, as a Lab selection names them."""


class ScriptSource(_Part):
    """A Python file."""

    kind: Literal["script"] = "script"
    path: Path
    """The .py file."""


class FunctionSource(_Part):
    """A Python function with its arguments, carried by cloudpickle."""

    kind: Literal["function"] = "function"
    module: Annotated[str, Field(max_length=512)]
    """Module that defines the function."""
    qualname: Annotated[str, Field(max_length=512)]
    """The function's qualified name."""


class CommandSource(_Part):
    """A shell command: /bin/bash -c with the text as one argument."""

    kind: Literal["command"] = "command"
    command: Annotated[
        str,
        Field(min_length=1, max_length=131_072, pattern=r"^[^\x00]+$"),
        AfterValidator(_check_not_blank),
    ]
    """The command's text."""


class NativeSource(_Part):
    """A file in the scheduler's own form, sent as written."""

    kind: Literal["native"] = "native"
    path: Path
    """The .sbatch or .yaml file."""


Source = Annotated[
    NotebookSource | ScriptSource | FunctionSource | CommandSource | NativeSource,
    Field(discriminator="kind"),
]
"""Any of the sources, told apart by ``kind``."""


class FilesSpec(_Part):
    """Which project files go along with the code."""

    project: Annotated[bool, option("--project-files/--no-project-files")] = True
    """Take the files of the source's project along: tracked and new files under its folder, less what .gitignore and
    .hyperpodignore name."""
    root: Annotated[Path | None, option("--project-root", metavar="DIR")] = None
    """Folder of the project; default: the source's folder."""
    include: Annotated[list[str], option("--include", metavar="GLOB", repeat="list")] = Field(
        default_factory=list
    )
    """Further files, even ignored ones, as patterns relative to the root."""
    max_bytes: Annotated[int, Field(ge=0, le=1024**4), WHOLE] = 256 * 1024**2
    """Refuse to take along more than this."""

"""Reads requirements in pip's format, as data that a stranger wrote.

Nothing outside of the project and no file of secrets is read, whatever includes or links say. A line that no installer understands is
refused by its number: its content may be a secret. What exists only on this machine is left out, with a finding.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from hyperpod_jlab.capture.secrets import is_secret_file, looks_secret, without_credentials
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.storage import descent

FIELD = "environment.capture"

_MAX_FILES = 64
_MAX_FILE_BYTES = 2 << 20
_MAX_LINES = 3_000
_MAX_OPTIONS = 200
_MAX_LINE = 64 << 10
"""Characters of a line with what continues it: one package has a hash for each of its files."""
_MAX_REQUIREMENT = 2_000
_MAX_FINDINGS = 100

_OPTIONS = {
    "--requirement": "file",
    "--constraint": "file",
    "--index-url": "place",
    "--extra-index-url": "place",
    "--find-links": "place",
    "--trusted-host": "value",
    "--no-binary": "value",
    "--only-binary": "value",
    "--use-feature": "value",
    "--no-index": "flag",
    "--pre": "flag",
    "--prefer-binary": "flag",
    "--require-hashes": "flag",
}
"""The options of a requirements file, and what follows each of them."""
_SHORT = {"-r": "--requirement", "-c": "--constraint", "-i": "--index-url", "-f": "--find-links"}

# Each takes time in proportion to the line.
_COMMENT = re.compile(r"(^|\s)#.*")
_EDITABLE = re.compile(r"(?:-e|--editable(?=[\s=]))[\s=]*(.+)")
_PACKAGE_OPTIONS = re.compile(r"\s--(?=hash|config-setting|global-option)")
_PACKAGE_OPTION = re.compile(r"hash[= ]\w+:[0-9a-fA-F]+|(config-settings?|global-option)[= ]\S+")
_NAMED = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?@\s*(?P<address>.+)")
_LOCAL = re.compile(r"[./~]|[^;\s\[]*/|[^;\s]*\.(whl|zip|tar\.gz)\b")
_REFERENCE = re.compile(r"\$\{[A-Z0-9_]+\}")


@dataclass(frozen=True)
class Line:
    """Where something is required, for the error."""

    path: Path
    number: int | None = None

    def refused(self, reason: str, code: str, hint: str) -> InvalidInputError:
        """The error that names the file and the number of the line."""
        place = str(self.path) if self.number is None else f"{self.path}, line {self.number}"
        return InvalidInputError(f"{place}: {reason}", code=code, hint=hint, detail={"field": FIELD})


@dataclass
class Requirements:
    """Requirements and constraints that other machines can use, and findings about the others.

    Attributes:
        root: The project's folder: no line leads out of it.
        lines: The requirements and options.
        constraints: The same of constraints files.
        findings: What is left out.
        files: The files that were read, with all that they include.
    """

    root: Path
    lines: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)
    _line_count: int = 0
    _option_count: int = 0

    def read(self, path: Path, lines: list[str] | None = None, origin: Line | None = None) -> None:
        """Add the lines of a requirements file and of those that it includes.

        Args:
            path: The file.
            lines: What they are added to; None for the requirements.
            origin: The line that includes it.

        Raises:
            InvalidInputError: One of them cannot be read, leads out of the project, is a file of secrets, or has a line that no installer understands.
        """
        origin = origin or Line(path)
        inside = path_inside(self.root, path, origin)
        if inside in self.files:  # files may include each other
            return
        self.files.add(inside)
        if len(self.files) > _MAX_FILES:
            raise origin.refused(
                f"more than {_MAX_FILES} files include each other", "too_many_files", "join some of them"
            )
        text = read_inside(self.root, inside, origin, _MAX_FILE_BYTES)
        self.add(text, path, self.lines if lines is None else lines)

    def add(self, text: str, path: Path, lines: list[str]) -> None:
        """Add the lines of a file; relative paths in them are relative to its folder.

        Raises:
            InvalidInputError: See `read`.
        """
        numbered = list(_logical_lines(text, path))
        self._line_count += len(numbered)
        self._option_count += sum(line.startswith("-") for _, line in numbered)
        if self._line_count > _MAX_LINES or self._option_count > _MAX_OPTIONS:
            raise Line(path).refused(
                f"there are more than {_MAX_LINES} packages or {_MAX_OPTIONS} options",
                "too_many_lines",
                "leave some of them out",
            )
        for number, line in numbered:
            origin = Line(path, number)
            editable = _EDITABLE.fullmatch(line)
            if editable is not None:
                self.add_package(editable[1], lines, origin)
            elif line.startswith("-"):
                self._add_options(line, lines, origin)
            else:
                self.add_package(line, lines, origin)

    def _add_options(self, line: str, lines: list[str], origin: Line) -> None:
        if len(line) > _MAX_REQUIREMENT:
            raise _not_understood(origin)
        try:
            words = iter(shlex.split(line))
        except ValueError as error:
            raise _not_understood(origin) from error
        for word in words:
            if word.startswith("--"):
                name, _, value = word.partition("=")
            else:
                name, value = word[:2], word[2:].removeprefix("=")
            option = _full_name(name)
            kind = _OPTIONS.get(option or "")
            if option is None or kind is None or (kind == "flag" and value):
                raise _not_understood(origin)
            if kind != "flag" and not value:
                value = next(words, "")
            if kind == "flag":
                lines.append(option)
            elif not value:
                raise _not_understood(origin)
            elif kind == "value":
                lines.append(f"{option} {value}")
            elif kind == "place":
                self.add_place(_SHORT.get(name, name), value, lines, origin)
            elif "://" in value:
                raise origin.refused(
                    f"{without_credentials(value)} is not a file, and only files can be included",
                    "no_such_file",
                    "download it into the project first",
                )
            else:
                target = lines if option == "--requirement" else self.constraints
                self.read(origin.path.parent / value, target, origin)

    def add_place(self, option: str, value: str, lines: list[str], origin: Line) -> None:
        """Add an index or a folder of packages. An absolute path is one of the nodes; another one is inside the project.

        Raises:
            InvalidInputError: A relative path leads out of the project.
        """
        if "://" in value or value.startswith("${"):
            value = self._sent(value)
        elif not value.startswith(os.sep):
            value = str(path_inside(self.root, origin.path.parent / value, origin))
        lines.append(f"{option} {value}")

    def add_package(self, requirement: str, lines: list[str], origin: Line) -> None:
        """Add a requirement, unless it is a file or folder of this machine.

        Raises:
            InvalidInputError: No installer understands it.
        """
        package, *options = _PACKAGE_OPTIONS.split(requirement)
        package = package.strip()
        named = _NAMED.fullmatch(package)
        place = named["address"] if named else package
        path = place.partition(";")[0].strip()
        if len(package) > _MAX_REQUIREMENT or not all(
            _PACKAGE_OPTION.fullmatch(" ".join(option.split())) for option in options
        ):
            raise _not_understood(origin)
        if path.startswith("file:") or ("://" not in place and _LOCAL.match(path)):
            if len(path.split()) != 1:
                raise _not_understood(origin)
            self.omit(package, f"it is installed from {path}")
            return
        address = package if named or "://" not in package else f"x @ {package}"
        try:
            Requirement(_REFERENCE.sub("0", address))
        except (InvalidRequirement, RecursionError) as error:
            raise _not_understood(origin) from error
        clean = self._sent(requirement)
        if looks_secret("", clean):
            raise _not_understood(origin)
        lines.append(clean)

    def omit(self, package: str, reason: str) -> None:
        """Say that a package is left out."""
        self._find(
            "package_omitted",
            without_credentials(f"the environment of the run is without {package}: {reason}"),
            "files of the project travel with the run; put other packages on an index or the storage partition",
        )

    def _sent(self, text: str) -> str:
        """A text without the credentials in its addresses, which a finding tells."""
        clean_text = without_credentials(text)
        if clean_text != text:
            self._find(
                "credentials_omitted",
                f"the credentials in {clean_text.split('#')[0].strip()} are not sent",
                "write ${NAME} in their place and use --secret NAME, or put them into ~/.netrc on the cluster",
            )
        return clean_text

    def _find(self, code: str, message: str, hint: str) -> None:
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append(Finding(level="warning", code=code, message=message, hint=hint, field=FIELD))


def path_inside(root: Path, path: Path, origin: Line) -> Path:
    """A path with all links resolved, inside of a project.

    Args:
        root: The project's folder.
        path: The path.
        origin: The line that names it.

    Raises:
        InvalidInputError: It leads out of the project, or suggests a secret.
    """
    top = Path(os.path.realpath(root))
    try:
        inside = Path(os.path.realpath(path))
    except ValueError as error:  # a NUL
        raise _not_understood(origin) from error
    if not inside.is_relative_to(top):
        raise origin.refused(
            f"{os.path.relpath(path, root)} leads out of the project {root}",
            "outside_project",
            "copy it into the project, or name a folder that holds both with --project-root; folders of the nodes need an absolute path",
        )
    names = (os.path.relpath(path, root), str(inside.relative_to(top)))
    if any(map(is_secret_file, names)):
        raise origin.refused(
            f"{names[0]} looks like a file of secrets and is not read", "secret_file", "rename it if it has no secrets"
        )
    return inside


def read_inside(root: Path, path: Path, origin: Line, max_bytes: int) -> str:
    """The text of a regular file at a path from `path_inside`; no folder on the way may have become a link since.

    Raises:
        InvalidInputError: It cannot be read, or is larger than `max_bytes`.
    """
    top = Path(os.path.realpath(root))
    *folders, name = path.relative_to(top).parts or (".",)
    try:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(descent.opened_folder(top))
            for part in folders:
                folder = descent.step(folder, part)
                stack.callback(os.close, folder)
            data = descent.read_in(folder, name, max_bytes)
    except OSError as error:
        raise origin.refused(
            f"{os.path.relpath(path, top)} cannot be read: {error.strerror}",
            "no_such_file",
            f"name a text file of at most {max_bytes >> 20} MiB",
        ) from error
    return data.decode("utf-8-sig", "replace")


def _not_understood(origin: Line) -> InvalidInputError:
    return origin.refused(
        "this is neither a requirement nor an option that a run can use",
        "bad_requirement",
        "correct the line, or take it out",
    )


def _logical_lines(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Lines without comments, with the numbers at which they begin; one that ends with a backslash goes on in the next."""
    parts: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        parts.append(line.removesuffix("\\"))
        if line.endswith("\\"):
            continue
        start, joined = number - len(parts) + 1, " ".join(parts)
        parts = []
        if len(joined) > _MAX_LINE:
            raise _not_understood(Line(path, start))
        joined = _COMMENT.sub("", joined).strip()
        if joined:
            yield start, joined


def _full_name(name: str) -> str | None:
    """The option that pip takes a name for: it may be short, or only the beginning."""
    name = _SHORT.get(name, name)
    if name in _OPTIONS:
        return name
    matches = [option for option in _OPTIONS if option.startswith(name) and len(name) > 2]
    return matches[0] if len(matches) == 1 else None

"""Captures the packages that a run needs, as one document from which the launcher builds an environment on the nodes.

Whatever it is captured from becomes pip's format of requirements, which uv and pip install; a conda environment also has the addresses of its
packages. What exists only on this machine and what is secret is left out, each with a finding.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture.captured import (
    Captured,
    CodeFile,
    PreviewPart,
    ProjectFile,
)
from hyperpod_jlab.capture.files import source_path
from hyperpod_jlab.capture.magics import SERVICE
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.storage import descent

_FIELD = "environment.capture"

_PROBE = """
import json, os, sys, sysconfig
from importlib.metadata import distributions
packages, seen = [], set()
for package in distributions():
    name = package.metadata["Name"]
    if name and name.lower() not in seen:
        seen.add(name.lower())
        direct = json.loads(package.read_text("direct_url.json") or "null")
        installer = (package.read_text("INSTALLER") or "").strip()
        packages.append([name, package.version, direct, installer])
conda, folder = [], os.path.join(sys.prefix, "conda-meta")
for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
    if name.endswith(".json"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            record = json.load(file)
        conda.append([record["url"], record.get("md5")])
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], "platform": sysconfig.get_platform(),
                  "prefix": sys.prefix, "packages": packages, "conda": conda}))
"""


@dataclass(frozen=True)
class _Installed:
    """What an interpreter has."""

    python: str
    platform: str
    prefix: str
    packages: list[tuple[str, str, dict[str, Any] | None, str]]
    conda: list[tuple[str, str | None]]


@dataclass
class _Requirements:
    """Requirements and constraints that other machines can use, and findings about the others."""

    lines: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)
    """The files that were read, with all that they include."""

    def read(self, path: Path, lines: list[str] | None = None) -> None:
        """Add the lines of a requirements file and of those that it includes.

        Raises:
            InvalidInputError: One of them cannot be read.
        """
        if path.resolve() in self.files:  # files may include each other
            return
        self.files.add(path.resolve())
        try:
            text = descent.read_named(path).decode("utf-8-sig", "replace")
        except OSError as error:
            raise _capture_error(
                f"{path} cannot be read: {error.strerror}", "no_such_file", None
            ) from error
        self.add(text, path.parent, self.lines if lines is None else lines)

    def add(self, text: str, folder: Path, lines: list[str]) -> None:
        """Add lines; relative paths in them are relative to `folder`."""
        for line in text.replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s)#.*", "", line).strip()  # noqa: PLW2901
            option = _OPTION.fullmatch(line)
            if option is None:
                if line.startswith("-"):
                    lines.append(self.without_credentials(line))
                elif line:
                    self.add_package(line, lines)
                continue
            name, value = option["name"], option["value"].strip()
            includes = name in {"-r", "--requirement", "-c", "--constraint"}
            if includes and "://" in value:
                raise _capture_error(
                    f"{_without_credentials(line)}: only files can be included",
                    "no_such_file",
                    "download it into the project first",
                )
            if name in {"-r", "--requirement"}:
                self.read(folder / value, lines)
            elif name in {"-c", "--constraint"}:
                self.read(folder / value, self.constraints)
            elif name in {"-e", "--editable"}:
                self.add_package(value, lines)
            elif "://" in value:
                lines.append(f"{_LONG.get(name, name)} {self.without_credentials(value)}")
            else:  # --find-links with a folder
                lines.append(f"{_LONG.get(name, name)} {(folder / value).resolve()}")

    def add_package(self, requirement: str, lines: list[str]) -> None:
        """Add a requirement, unless it is a file or folder of this machine."""
        name, _, address = requirement.partition(" @ ")
        place = address.strip() or name
        if place.startswith("file:") or ("://" not in place and _LOCAL.match(place)):
            self.omit(requirement, f"it is installed from {place.split()[0]}")
        else:
            lines.append(self.without_credentials(requirement))

    def omit(self, package: str, reason: str) -> None:
        """Say that a package is left out."""
        self.findings.append(
            Finding(
                level="warning",
                code="package_omitted",
                message=f"the environment of the run is without {_without_credentials(package)}: {reason}",
                hint="files of the project travel with the run; put other packages on an index or the storage partition",
                field=_FIELD,
            )
        )

    def without_credentials(self, text: str) -> str:
        """A text without the credentials in its URLs, which a finding tells."""
        clean_text = _without_credentials(text)
        if clean_text != text:
            self.findings.append(
                Finding(
                    level="warning",
                    code="credentials_omitted",
                    message=f"the credentials in {clean_text.split('#')[0].strip()} are not sent",
                    hint="write ${NAME} in their place and use --secret NAME, or put them into ~/.netrc on the cluster",
                    field=_FIELD,
                )
            )
        return clean_text


_OPTION = re.compile(
    r"(?P<name>-[rceif]|--(?:requirement|constraint|editable|index-url|extra-index-url|find-links)(?=[\s=]))"
    r"\s*=?\s*(?P<value>.+)"
)
_LONG = {"-i": "--index-url", "-f": "--find-links"}
_LOCAL = re.compile(r"[./~]|[^;\s\[]*/|[^;\s]*\.(whl|zip|tar\.gz)\b")
_USER_INFO = re.compile(
    r"(?P<scheme>\w[\w+.-]*://)(?P<user>[^/\s:]*)(?P<password>:[^/\s]*)?@(?=[^\s])"
)
"""Up to the last ``@``, as pip reads it: a password may have one, too."""
_REFERENCE = re.compile(r"(\$\{[A-Z0-9_]+\})+")


def _without_credentials(text: str) -> str:
    """A text whose URLs have no passwords and tokens; ``${NAME}``, which the installers replace, and the user of ssh stay."""

    def clean(match: re.Match[str]) -> str:
        user, password = match["user"], match["password"]
        if _REFERENCE.fullmatch(password[1:] if password else user):
            return match[0]
        return match["scheme"] + (f"{user}@" if "ssh" in match["scheme"] else "")

    return _USER_INFO.sub(clean, text)


def with_environment(
    captured: Captured, spec: JobSpec, base: Path, interpreter: str | None
) -> Captured:
    """Add the environment that the spec asks for.

    Args:
        captured: The captured source.
        spec: The spec, with ``environment.capture``.
        base: The base folder for the spec's relative paths.
        interpreter: The Python whose packages the run needs; None for the one of this process.

    Raises:
        InvalidInputError: The project has no such list, or this machine no such environment.
    """
    kind = spec.environment.capture
    assert kind is not None
    folder = _project_folder(spec, base)
    requirements = _Requirements()
    document: dict[str, Any] = {"format": 1, "from": kind}
    lock = _find_up(folder, "uv.lock") if kind == "lock" else None
    if kind == "requirements":
        listed = _find_up(folder, "requirements.txt")
        if listed is None:
            raise _capture_error(
                f"no requirements.txt in {folder} or above it in the repository",
                "no_requirements",
                "create it, or use --env-from venv",
            )
        requirements.read(listed)
    else:
        installed = _probe(interpreter or sys.executable)
        document |= {"python": installed.python, "platform": installed.platform}
        if lock is not None:
            _read_lock(lock, installed, interpreter or sys.executable, requirements)
        elif kind == "conda":
            document["conda"] = _conda_list(installed)
            _freeze(installed, requirements, without_conda=True)
        else:
            _freeze(installed, requirements)
        if lock is None and kind in ("lock", "venv"):
            missing = "there is no uv.lock, so " if kind == "lock" else ""
            requirements.findings.append(
                Finding(
                    level="warning" if kind == "lock" else "info",
                    code="captured_packages",
                    message=f"{missing}all {len(installed.packages)} packages of {installed.prefix} are captured",
                    hint="run uv lock in the project, or use --env-from requirements",
                    field=_FIELD,
                )
            )
    pip_calls = list(_pip_calls(captured.files))
    for arguments in pip_calls:
        _check_pip_line(arguments, requirements.findings)
    document |= {
        "requirements": _text(requirements.lines),
        "constraints": _text(requirements.constraints),
        "pip": [arguments for arguments in pip_calls if _is_plain_install(arguments)],
    }
    shown = [document["requirements"], document.get("conda") or "", *document["pip"]]
    if document["constraints"]:
        shown += ["# constraints", document["constraints"]]
    part = PreviewPart(f"Environment from {lock or kind}", "text", "\n".join(filter(None, shown)))
    file = CodeFile(ENVIRONMENT_FILE, json.dumps(document, indent=1).encode())
    cleaned = list(_cleaned_files(captured.project, requirements.files))
    if cleaned:
        names = ", ".join(clean.path.removeprefix("work/") for clean in cleaned)
        requirements.findings.append(
            Finding(
                level="info",
                code="credentials_omitted",
                message=f"the copies of {names} are sent without the credentials in their URLs",
                field=_FIELD,
            )
        )
    return dataclasses.replace(
        captured,
        files=(*captured.files, *cleaned, file),
        project=tuple(
            file
            for file in captured.project
            if f"work/{file.path}" not in {clean.path for clean in cleaned}
        ),
        findings=(*captured.findings, *requirements.findings),
        parts=(*captured.parts, part),
    )


def _check_pip_line(arguments: str, findings: list[Finding]) -> None:
    """Warn of a password in a ``%pip`` line: the cell is sent as it is."""
    clean_text = _without_credentials(arguments)
    if clean_text != arguments:
        findings.append(
            Finding(
                level="warning",
                code="credentials_in_cell",
                message=f"a cell has credentials, and is sent as it is: %pip {clean_text}",
                hint="write ${NAME} in their place and use --secret NAME",
                field=_FIELD,
            )
        )


_MAY_NAME_INDEX = re.compile(
    r".*(requirements|constraints).*\.(txt|in)"
    r"|(.*/)?(pyproject\.toml|uv\.(lock|toml)|pip\.conf|(environment|conda)\.ya?ml|\.condarc|Pipfile[^/]*|poetry\.(lock|toml)|setup\.cfg)"
)
"""Project files that may name a private index, by path: also ``requirements/dev.txt``."""


def _cleaned_files(project: Sequence[ProjectFile], read: Collection[Path]) -> Iterator[CodeFile]:
    """The project's files that contain credentials of an index, without these."""
    for file in project:
        if _MAY_NAME_INDEX.fullmatch(file.path) or file.source.resolve() in read:
            with contextlib.suppress(OSError, UnicodeDecodeError):  # the copy reports it
                text = descent.read_named(file.source).decode()
                clean_text = _without_credentials(text)
                if clean_text != text:
                    yield CodeFile(f"work/{file.path}", clean_text.encode(), file.executable)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _project_folder(spec: JobSpec, base: Path) -> Path:
    if spec.files.root is not None:
        return base / Path(spec.files.root).expanduser()
    path = getattr(spec.source, "path", None)
    return base if path is None else source_path(base, path).parent


def _find_up(folder: Path, name: str) -> Path | None:
    """A file in a folder or above it, up to the top of the repository."""
    folder = folder.absolute()
    for parent in (folder, *folder.parents):
        if (parent / name).is_file():
            return parent / name
        if (parent / ".git").exists() or parent == Path.home():
            break
    return None


def _capture_error(message: str, code: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(message, code=code, hint=hint, detail={"field": _FIELD})


def _probe(python: str) -> _Installed:
    """What an interpreter has installed, by its own word."""
    try:
        done = subprocess.run(
            [python, "-E", "-c", _PROBE],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return _Installed(**json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, TypeError) as error:
        raise _capture_error(
            f"the packages of {python} cannot be listed: {error}",
            "no_python",
            "start the notebook's kernel with a working Python, or use --env-from requirements",
        ) from error


# --------------------------------------------------------------------------------------------------
# The packages of an interpreter, as ``pip freeze`` lists them.

_TORCH_BUILD = re.compile(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)$")
"""Builds of PyTorch that PyPI does not have; they have an index each."""


def _freeze(
    installed: _Installed, requirements: _Requirements, *, without_conda: bool = False
) -> None:
    builds = set()
    for name, version, direct, installer in sorted(
        installed.packages, key=lambda row: row[0].lower()
    ):
        if installer == "conda":
            if not without_conda:
                requirements.lines.append(f"{name}=={version}")
            continue
        url = str((direct or {}).get("url") or "")
        vcs = (direct or {}).get("vcs_info")
        if url.startswith("file:") or (direct or {}).get("dir_info"):
            requirements.omit(f"{name} {version}", f"it is installed from {url}")
        elif vcs:
            requirements.add_package(
                f"{name} @ {vcs['vcs']}+{url}@{vcs['commit_id']}", requirements.lines
            )
        elif url:
            requirements.add_package(f"{name} @ {url}", requirements.lines)
        else:
            requirements.lines.append(f"{name}=={version}")
            build = _TORCH_BUILD.search(version)
            builds |= {build[1]} if build else set()
    requirements.lines[:0] = [
        f"--extra-index-url https://download.pytorch.org/whl/{build}" for build in sorted(builds)
    ]


def _conda_list(installed: _Installed) -> str:
    """What ``conda list --explicit --md5`` prints, without the passwords and tokens of private channels."""
    if not installed.conda:
        raise _capture_error(
            f"{installed.prefix} is not a conda environment",
            "no_conda",
            "activate one, choose a notebook kernel of one, or use --env-from venv",
        )
    lines = [
        re.sub(r"/t/[^/]+/", "/", _without_credentials(url)) + (f"#{md5}" if md5 else "")
        for url, md5 in installed.conda
    ]
    return _text(["@EXPLICIT", *lines])


# --------------------------------------------------------------------------------------------------
# A project's lock of uv, which uv itself translates for all platforms.

_PYPI = "https://pypi.org/simple"


def _read_lock(
    lock: Path, installed: _Installed, interpreter: str, requirements: _Requirements
) -> None:
    uv = _find_uv()
    if uv is None:
        raise _capture_error(
            f"{lock} can be read only by uv, which is not installed here",
            "no_uv",
            "install it with pip install uv, or use --env-from venv",
        )
    command = [*uv, "export", "--project", str(lock.parent), "--frozen", "--no-header"]
    command += ["--no-annotate", "--format", "requirements.txt", "--no-python-downloads"]
    command += ["--python", interpreter]
    done = subprocess.run(
        command, cwd=lock.parent, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        reason = " ".join(_without_credentials(done.stderr).split())[-300:]
        raise _capture_error(
            f"uv cannot read {lock} for Python {installed.python}: {reason}",
            "bad_lock",
            "update it with uv lock, or run the notebook with a Python that the project supports",
        )
    indexes = []
    for package in tomllib.loads(lock.read_text(encoding="utf-8")).get("package", []):
        index = package.get("source", {}).get("registry")
        if index is not None and index not in indexes:
            indexes.append(index)
    for index in indexes:
        if "://" not in index:
            requirements.add(f"--find-links {index}", lock.parent, requirements.lines)
        elif index.rstrip("/") != _PYPI:
            option = "--extra-index-url" if _PYPI in indexes else "--index-url"
            is_first = not any(line.startswith("--index-url") for line in requirements.lines)
            option = option if is_first else "--extra-index-url"
            requirements.add(f"{option} {index}", lock.parent, requirements.lines)
    requirements.add(done.stdout, lock.parent, requirements.lines)


def _find_uv() -> list[str] | None:
    import importlib.util

    program = shutil.which("uv")
    if program is not None:
        return [program]
    return [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") else None


# --------------------------------------------------------------------------------------------------
# ``%pip install`` lines: those whose packages are known now are installed with the environment.

_FLAGS = {"-q", "-qq", "--quiet", "-U", "--upgrade", "--no-cache-dir"}
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,. -]+\])?\s*((===|[=<>!~]=|<|>).+)?")


def _pip_calls(files: Sequence[CodeFile]) -> Iterator[str]:
    """The arguments of ``%pip`` lines in the cells, from the calls that replace them."""
    for file in files:
        if not file.path.endswith(".compiled.py") or SERVICE.encode() not in file.data:
            continue
        try:
            tree = ast.parse(file.data)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == f"{SERVICE}.pip"
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)


def _is_plain_install(arguments: str) -> bool:
    """Whether a line of pip installs packages by name only: no files, nothing that is known only in the job."""
    try:
        words = shlex.split(arguments, comments=True)
    except ValueError:
        return False
    packages = [word for word in words[1:] if word not in _FLAGS]
    return (
        words[:1] == ["install"]
        and bool(packages)
        and not re.search(r"[{}$`|&;<>*]", re.sub(r"[<>]=?\s*\d|'[^']*'|\"[^\"]*\"", "", arguments))
        and all(_PACKAGE.fullmatch(word) and not word.endswith(".whl") for word in packages)
    )

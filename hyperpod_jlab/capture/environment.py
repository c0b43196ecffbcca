"""Captures the packages that a run needs, as one document from which the launcher builds an environment on the nodes.

Whatever it is captured from becomes pip's format of requirements, which uv installs. What exists only on this machine and what is secret is left out, each with a finding.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture.captured import Captured, CodeFile, PreviewPart, ProjectFile
from hyperpod_jlab.capture.files import source_path
from hyperpod_jlab.capture.requirements import FIELD, Line, Requirements, path_inside, read_inside
from hyperpod_jlab.capture.secrets import MAX_PACKAGE_BYTES, is_package_file, read_package_file, without_credentials
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec

_PROBE = """
import json, os, site, sys, sysconfig
from importlib.metadata import distributions
packages, seen, folders = [], set(), list(sys.path)
if sys.prefix == sys.base_prefix and not os.environ.get("PYTHONNOUSERSITE"):
    folders.insert(0, site.getusersitepackages())  # a notebook sees them, an isolated Python does not
for package in distributions(path=folders):
    name = package.metadata["Name"]
    if name and name.lower() not in seen:
        seen.add(name.lower())
        direct = json.loads(package.read_text("direct_url.json") or "null")
        installer = (package.read_text("INSTALLER") or "").strip()
        packages.append([name, package.version, None if installer == "conda" else direct])
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], "platform": sysconfig.get_platform(),
                  "prefix": sys.prefix, "packages": packages}))
"""


@dataclass(frozen=True)
class _Installed:
    """What an interpreter has."""

    python: str
    platform: str
    prefix: str
    packages: list[tuple[str, str, dict[str, Any] | None]]


def with_environment(captured: Captured, spec: JobSpec, base: Path, interpreter: str | None) -> Captured:
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
    document: dict[str, Any] = {"format": 1, "from": kind}
    listed, root = _find_up(spec, base, "requirements.txt" if kind == "requirements" else "uv.lock")
    requirements, lock = Requirements(root), listed if kind == "lock" else None
    if kind == "requirements":
        if listed is None:
            raise _capture_error(
                f"no requirements.txt in {root} or above it in the repository",
                "no_requirements",
                "create it, or use --env-from venv",
            )
        requirements.read(listed)
    else:
        installed = _probe(interpreter or sys.executable)
        document |= {"python": installed.python, "platform": installed.platform}
        if lock is not None:
            _read_lock(lock, installed, interpreter or sys.executable, requirements)
        else:
            _freeze(installed, requirements)
        if lock is None:
            missing = "there is no uv.lock, so " if kind == "lock" else ""
            requirements.findings.append(
                Finding(
                    level="warning" if kind == "lock" else "info",
                    code="captured_packages",
                    message=f"{missing}all {len(installed.packages)} packages of {installed.prefix} are captured",
                    hint="run uv lock in the project, or use --env-from requirements",
                    field=FIELD,
                )
            )
    for arguments in captured.pip_lines:
        _check_pip_line(arguments, requirements.findings)
    document |= {
        "requirements": _text(requirements.lines),
        "constraints": _text(requirements.constraints),
        "pip": [arguments for arguments in captured.pip_lines if _is_plain_install(arguments)],
    }
    shown = [document["requirements"], *document["pip"]]
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
                field=FIELD,
            )
        )
    replaced = {clean.path for clean in cleaned}
    return dataclasses.replace(
        captured,
        files=(*captured.files, *cleaned, file),
        project=tuple(file for file in captured.project if f"work/{file.path}" not in replaced),
        findings=(*captured.findings, *requirements.findings),
        parts=(*captured.parts, part),
    )


def _check_pip_line(arguments: str, findings: list[Finding]) -> None:
    """Warn of a password in a ``%pip`` line: the cell is sent as it is."""
    clean_text = without_credentials(arguments)
    if clean_text != arguments:
        findings.append(
            Finding(
                level="warning",
                code="credentials_in_cell",
                message=f"a cell has credentials, and is sent as it is: %pip {clean_text}",
                hint="write ${NAME} in their place and use --secret NAME",
                field=FIELD,
            )
        )


def _cleaned_files(project: Sequence[ProjectFile], read: Collection[Path]) -> Iterator[CodeFile]:
    """The project's files that contain credentials of an index, without these.

    Raises:
        InvalidInputError: They are too large to be searched.
    """
    size = 0
    for file in project:
        if not is_package_file(file.path) and file.source.resolve() not in read:
            continue
        size += file.size
        if size > MAX_PACKAGE_BYTES:
            raise _capture_error(
                f"{file.path} and other package files are larger than {MAX_PACKAGE_BYTES >> 20} MiB, which are not searched for passwords",
                "project_too_large",
                "leave such files out with .hyperpodignore",
            )
        with contextlib.suppress(OSError):  # the copy reports it
            text = read_package_file(file)
            clean_text = without_credentials(text)
            if clean_text != text:
                data = clean_text.encode("utf-8", "surrogateescape")
                yield CodeFile(f"work/{file.path}", data, file.executable)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _project_folder(spec: JobSpec, base: Path) -> Path:
    if spec.files.root is not None:
        return base / Path(spec.files.root).expanduser()
    path = getattr(spec.source, "path", None)
    return base if path is None else source_path(base, path).parent


def _find_up(spec: JobSpec, base: Path, name: str) -> tuple[Path | None, Path]:
    """A file in the project's folder or above it up to the top of the repository, and the folder that its lines may not lead out of.

    That folder is the root that the spec names, if the file is in it; else the top of the repository; without one, the file's own folder. The search
    never goes above the home folder, or into a folder in which anybody may put a file.
    """
    folder = Path(os.path.abspath(_project_folder(spec, base)))  # noqa: PTH100 - follows no link
    home = os.path.expanduser("~")  # noqa: PTH111 - without an error where there is none
    homes = {Path(path) for path in (home, os.path.realpath(home))}
    found = None
    for parent in (folder, *folder.parents[:-1]):
        if parent != folder and _is_open_to_all(parent):
            break
        if found is None and os.path.lexists(parent / name):
            found = parent / name
            if parent == folder and spec.files.root is not None:
                return found, folder
        if parent in homes:
            break
        if os.path.lexists(parent / ".git"):
            return found, parent if found else folder
    return found, found.parent if found else folder


def _is_open_to_all(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _capture_error(message: str, code: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(message, code=code, hint=hint, detail={"field": FIELD})


def _probe(python: str) -> _Installed:
    """What an interpreter has installed, by its own word."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], cwd="/", capture_output=True, text=True, timeout=60, check=True
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


def _freeze(installed: _Installed, requirements: Requirements) -> None:
    builds, origin = set(), Line(Path(installed.prefix))
    for name, version, direct in sorted(installed.packages, key=lambda row: row[0].lower()):
        if len(f"{name}=={version}".split()) != 1:
            requirements.omit(repr(name), "its name or version is not valid")
            continue
        url = str((direct or {}).get("url") or "")
        vcs = (direct or {}).get("vcs_info")
        if url.startswith("file:") or (direct or {}).get("dir_info"):
            requirements.omit(f"{name} {version}", f"it is installed from {url}")
        elif vcs:
            requirements.add_package(f"{name} @ {vcs['vcs']}+{url}@{vcs['commit_id']}", requirements.lines, origin)
        elif url:
            requirements.add_package(f"{name} @ {url}", requirements.lines, origin)
        else:
            requirements.lines.append(f"{name}=={version}")
            build = _TORCH_BUILD.search(version)
            builds |= {build[1]} if build else set()
    requirements.lines[:0] = [f"--extra-index-url https://download.pytorch.org/whl/{build}" for build in sorted(builds)]


# --------------------------------------------------------------------------------------------------
# A project's lock of uv, which uv itself translates for all platforms.

_PYPI = "https://pypi.org/simple"
_UV_TIMEOUT_S = 20.0
_REGISTRY = re.compile(r'^source = \{ registry = "([^"\\\n]+)" \}$', re.MULTILINE)
"""As uv writes it: the lock is uv's own file, which is not parsed as TOML again."""
_FENCE = b'[project]\nname = "fence"\nversion = "0"\n'


def _read_lock(lock: Path, installed: _Installed, interpreter: str, requirements: Requirements) -> None:
    texts = {}
    for path in (lock, lock.with_name("pyproject.toml")):
        origin = Line(path)
        inside = path_inside(requirements.root, path, origin)
        texts[path.name] = read_inside(requirements.root, inside, origin, MAX_PACKAGE_BYTES)
    exported = _export(lock, texts, installed, interpreter)
    origin, lines = Line(lock), requirements.lines
    indexes = list(dict.fromkeys(_REGISTRY.findall(texts[lock.name])))
    for index in indexes:
        if "://" not in index:  # uv's own path to wheels, of which nothing is read here
            place = os.path.realpath(lock.parent / index)
            requirements.add_place("--find-links", place, lines, origin)
        elif index.rstrip("/") != _PYPI:
            option = "--extra-index-url" if _PYPI in indexes else "--index-url"
            is_first = not any(line.startswith("--index-url") for line in lines)
            option = option if is_first else "--extra-index-url"
            requirements.add_place(option, index, lines, origin)
    requirements.add(exported, lock, lines)


def _export(lock: Path, texts: dict[str, str], installed: _Installed, interpreter: str) -> str:
    """What uv makes of a lock.

    uv sees copies of the two files and nothing else of the project: no virtual environment, whose Python older versions start, no settings, and no other
    members of the workspace. The copies lie in a folder with a plain project file, where uv stops looking for a workspace in the folders above.
    """
    uv = _find_uv()
    if uv is None:
        raise _capture_error(
            f"{lock} can be read only by uv, which is not installed here",
            "no_uv",
            "install it with pip install uv, or use --env-from venv",
        )
    with tempfile.TemporaryDirectory(prefix="hpj-lock-") as name:
        folder = Path(name, "project")
        folder.mkdir()
        Path(name, "pyproject.toml").write_bytes(_FENCE)
        for file_name, text in texts.items():
            (folder / file_name).write_text(text, encoding="utf-8")
        command = [uv, "export", "--project", str(folder), "--frozen", "--offline", "--no-config"]
        command += ["--no-cache", "--no-header", "--no-annotate", "--format", "requirements.txt"]
        command += ["--no-python-downloads", "--python", interpreter]
        variables = {key: value for key, value in os.environ.items() if not key.startswith("UV_")}
        try:
            done = subprocess.run(
                command,
                cwd="/",
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_UV_TIMEOUT_S,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode("utf-8", "replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
        else:
            return done.stdout.decode("utf-8", "replace")
    reason = " ".join(without_credentials(reason).split())[-300:]
    raise _capture_error(
        f"uv cannot read {lock} for Python {installed.python}: {reason}",
        "bad_lock",
        "update it with uv lock, or run the notebook with a Python that the project supports",
    )


def _find_uv() -> str | None:
    """The program of the package uv beside our own Python, else the one on the PATH: never one in the current folder, nor a module of that name."""
    own = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    own.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    folders = [folder for folder in (*own, *named) if folder.startswith(os.sep)]
    return shutil.which("uv", path=os.pathsep.join(folders))


# --------------------------------------------------------------------------------------------------
# ``%pip install`` lines: those whose packages are known now are installed with the environment.

_FLAGS = {"-q", "-qq", "--quiet", "-U", "--upgrade", "--no-cache-dir"}
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,. -]+\])?\s*((===|[=<>!~]=|<|>).+)?")
_MAX_PIP_LINE = 4_000
"""What is larger runs in the run, as lines do that are more than names of packages."""


def _is_plain_install(arguments: str) -> bool:
    """Whether a line of pip installs packages by name only: no files, nothing that is known only in the job."""
    if len(arguments) > _MAX_PIP_LINE:
        return False
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

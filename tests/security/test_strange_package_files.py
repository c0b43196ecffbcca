"""A repository that somebody else wrote, looked at with ``hpj submit --dry-run --env-from``: nothing of it runs, and nothing outside of it is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hyperpod_jlab.capture import capture
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from tests.tiny_packages import wheel

HPJ = Path(sys.executable).with_name("hpj")
SECRET = "wJalrSECRETSECRET"
CAUGHT_S = 30


@dataclass
class Repository:
    """A clone in the folder of a user who has secrets beside it."""

    folder: Path
    home: Path
    canaries: Path

    def put(self, path: str, text: str, *, executable: bool = False) -> Path:
        """A file of the repository."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if executable else 0o644)
        return file

    def canary(self, path: str) -> None:
        """A program, or a module, that leaves a file where it ran."""
        mark = self.canaries / path.replace("/", "-")
        if path.endswith(".py"):
            self.put(path, f"open({str(mark)!r}, 'w').write('ran')\n")
        else:
            self.put(path, f"#!/bin/sh\necho ran >{mark}\nexec /usr/bin/false\n", executable=True)

    def look(self, *words: str, **variables: str) -> tuple[int, str]:
        """Preview a run of its script; the exit code and all that is printed."""
        done = subprocess.run(
            [HPJ, "submit", "train.py", "--dry-run", *words],
            cwd=self.folder,
            env={
                "HOME": str(self.home),
                "PATH": "/usr/bin:/bin",
                "HYPERPOD_CONFIG": str(self.home / "config.toml"),
                **variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=CAUGHT_S,
        )
        return done.returncode, done.stdout

    def captured(self, kind: str | None = None) -> str:
        """All that a capture in this process shows: the environment and the findings, or the error."""
        source = {"kind": "script", "path": "train.py"}
        spec = JobSpec.model_validate({"source": source, "environment": {"capture": kind}})
        try:
            captured = capture(spec, base=self.folder)
        except InvalidInputError as error:
            return f"refused: {error}"
        return repr((captured.parts, captured.findings))

    @property
    def ran(self) -> list[str]:
        """What of the repository ran."""
        return sorted(path.name for path in self.canaries.iterdir())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text(f"[default]\naws_secret_access_key = {SECRET}\n")
    (home / ".netrc").write_text(f"machine git.example login me password {SECRET}\n")
    (home / "token").write_text(f"{SECRET}\n")
    (home / "config.toml").write_text(f'default_cluster = "local"\n[storage]\npath = "{tmp_path}/partition"\n')
    made = Repository(home / "work" / "repository", home, tmp_path / "canaries")
    made.canaries.mkdir()
    made.put(".git/HEAD", "ref: refs/heads/main\n")
    made.put("train.py", "print(1)\n")
    yield made
    assert made.ran == []
    left = [path for path in (tmp_path / "partition").rglob("*") if path.is_file()]
    assert not [path for path in left if SECRET in path.read_text("latin-1")]


def locked(repository: Repository, settings: str = "") -> None:
    """Give it a lock by a real uv; then the settings."""
    wheel(repository.folder / "wheels", "alpha")
    project = (
        '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["alpha"]\n'
        '[tool.uv]\nno-index = true\nfind-links = ["wheels"]\npackage = false\n'
    )
    repository.put("pyproject.toml", project)
    command = [sys.executable, "-m", "uv", "lock", "-q", "--offline", "--no-cache"]
    subprocess.run(command, cwd=repository.folder, check=True)
    repository.put("pyproject.toml", project + settings)


MODULES = ("uv.py", "uv/__init__.py", "uv/__main__.py", "pip.py", "pip/__main__.py", "venv.py")
SHADOWS = ("sitecustomize.py", "usercustomize.py", "json.py", "tomllib.py", "packaging.py")
PROGRAMS = ("uv", "bin/uv", "python", "python3", ".venv/bin/python", ".venv/bin/python3")


@pytest.mark.parametrize("kind", ["lock", "requirements", "venv"])
def test_no_program_of_the_repository_is_started(repository: Repository, kind: str) -> None:
    locked(
        repository,
        'cache-dir = "cache"\nkeyring-provider = "subprocess"\npython-install-mirror = "file:///x"\n'
        '[tool.uv.workspace]\nmembers = ["**"]\n[tool.uv.sources]\nalpha = { path = "alpha" }\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    )
    repository.put("requirements.txt", "alpha\n")
    repository.put(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11\n")
    repository.put(".python-version", "3.11\n")
    repository.put("uv.toml", 'cache-dir = "cache"\n')
    repository.put(".env", "PYTHONPATH=.\n")
    for name in (*MODULES, *SHADOWS, "backend.py", "keyring", *PROGRAMS):
        if name != "uv":  # the package of this name is there already
            repository.canary(name)
    code, shown = repository.look("--env-from", kind, PATH=f".:bin:{os.defpath}:")
    assert code == 0, shown
    assert "alpha" in shown or kind == "venv"
    assert not (repository.folder / "cache").exists()


def test_a_program_called_uv_in_the_current_folder_is_not_the_installer(repository: Repository) -> None:
    locked(repository)
    repository.canary("uv")
    code, shown = repository.look("--env-from", "lock", PATH=f".::{os.defpath}")
    assert code == 0, shown
    assert "alpha==1.0" in shown


def test_a_kernel_in_the_repository_does_not_take_its_modules_for_installers(repository: Repository) -> None:
    """A kernel has the notebook's folder first in its path for modules."""
    locked(repository)
    for name in MODULES:
        repository.canary(name)
    lines = (
        "from pathlib import Path",
        "from hyperpod_jlab.capture import capture",
        "from hyperpod_jlab.core.spec import JobSpec",
        "source = {'kind': 'script', 'path': 'train.py'}",
        "spec = JobSpec.model_validate({'source': source, 'environment': {'capture': 'lock'}})",
        "print(capture(spec, base=Path.cwd()).parts[-1].text)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=repository.folder,
        env={"HOME": str(repository.home), "PATH": ".:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert "alpha==1.0" in done.stdout, done.stderr


def test_a_project_above_does_not_take_the_lock_over(repository: Repository) -> None:
    """uv looks for a workspace in the folders above the temporary copies too."""
    locked(repository)
    above = repository.home / "tmp"
    above.mkdir()
    (above / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["**"]\n')
    (above / "uv.lock").write_text("version = 1\nrequires-python = '>=3'\n")
    code, shown = repository.look("--env-from", "lock", TMPDIR=str(above))
    assert code == 0, shown
    assert "alpha==1.0" in shown
    assert sorted(path.name for path in above.iterdir()) == ["pyproject.toml", "uv.lock"]


def test_what_hpj_prints_of_a_refusal_is_the_line_and_not_the_secret(repository: Repository) -> None:
    repository.put("requirements.txt", "six\n-r ../../.aws/credentials\n")
    code, shown = repository.look("--env-from", "requirements")
    assert code != 0
    assert "requirements.txt, line 2: ../../.aws/credentials leads out of the project" in shown
    assert SECRET not in shown


OUTSIDE = [
    "-r ../../.aws/credentials",
    "-c ../../.netrc",
    "-r../../token",
    "-c../../token",
    "--requirement=../../token",
    "--requirem ../../token",
    "--constraint ../../token",
    "--no-index -r ../../token",
    "-r '../../token'",
    "-r requirements/../../../token",
    "-r /proc/self/environ",
    "-c /dev/zero",
    "-r /dev/stdin",
    "--find-links ../..",
    "-f ..",
]


@pytest.mark.parametrize("line", OUTSIDE)
def test_a_line_that_leads_out_of_the_project_is_refused(repository: Repository, line: str) -> None:
    repository.put("requirements.txt", f"six\n\n{line}\n")
    shown = repository.captured("requirements")
    assert shown.startswith("refused: ")
    assert "requirements.txt, line 3: " in shown
    assert "leads out of the project" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("name", ["requirements.txt", "uv.lock", "pyproject.toml", "more.txt"])
@pytest.mark.parametrize("target", [".aws/credentials", "token", "work", "../canaries", "/dev/zero"])
def test_a_link_to_outside_is_not_read(repository: Repository, name: str, target: str) -> None:
    locked(repository)
    repository.put("requirements.txt", "-r more.txt\n" if name == "more.txt" else "six\n")
    (repository.folder / name).unlink(missing_ok=True)
    (repository.folder / name).symlink_to(repository.home / target)
    kind = "lock" if name in {"uv.lock", "pyproject.toml"} else "requirements"
    shown = repository.captured(kind)
    assert shown.startswith("refused: ")
    assert "leads out of the project" in shown
    assert SECRET not in shown


def test_a_folder_that_is_a_link_to_outside_is_not_read(repository: Repository) -> None:
    (repository.folder / "more").symlink_to(repository.home)
    repository.put("requirements.txt", "-r more/token\n")
    shown = repository.captured("requirements")
    assert shown.startswith("refused: ")
    assert "leads out of the project" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("name", [".env", "secrets.yaml", ".aws/config", "deploy.pem", "linked"])
def test_a_file_of_secrets_in_the_project_is_not_read(repository: Repository, name: str) -> None:
    if name == "linked":
        repository.put(".netrc", SECRET)
        (repository.folder / name).symlink_to(".netrc")
    else:
        repository.put(name, SECRET)
    repository.put("requirements.txt", f"-r {name}\n")
    shown = repository.captured("requirements")
    assert shown.startswith("refused: ")
    assert "looks like a file of secrets" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("name", ["requirements.txt", "more.txt", "uv.lock", "pyproject.toml"])
@pytest.mark.parametrize("form", ["pipe", "folder", "loop", "nothing", "large"])
def test_what_is_no_regular_file_is_refused_at_once(repository: Repository, name: str, form: str) -> None:
    locked(repository)
    repository.put("requirements.txt", "-r more.txt\n")
    path = repository.folder / name
    path.unlink(missing_ok=True)
    if form == "pipe":
        os.mkfifo(path)
    elif form == "folder":
        path.mkdir()
    elif form == "large":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.symlink_to(name if form == "loop" else "gone")
    kind = "lock" if name in {"uv.lock", "pyproject.toml"} else "requirements"
    shown = repository.captured(kind)
    assert shown.startswith("refused: ")
    assert "cannot be read" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    "line",
    [
        f"aws_secret_access_key = {SECRET}",
        f"machine git.example login me password {SECRET}",
        f"--password {SECRET}",
        f"--no-index {SECRET}",
        f"export KEY='{SECRET}",
        f"- {SECRET}",
        f"six --hash={SECRET}",
        "ghp_" + SECRET * 2,
        f"{SECRET}: /x/{SECRET}",
        f'{{"key": "{SECRET}"}}',
        "\0" + SECRET,
    ],
)
def test_a_line_that_no_installer_understands_is_named_by_its_number(repository: Repository, line: str) -> None:
    repository.put("requirements.txt", f"six\n{line}\n")
    shown = repository.captured("requirements")
    assert shown.startswith("refused: ")
    assert "requirements.txt, line 2: this is neither a requirement nor an option" in shown
    assert SECRET not in shown


SLOW = {
    "a word": "a" * 40_000,
    "many lines": "six==1.17\n" * 100_000,
    "many comments": "# six\n" * 100_000,
    "addresses": "a://" * 40_000,
    "users": "https://" + "u:@" * 40_000,
    "references": "six @ https://h/" + "${A}" * 40_000,
    "blanks": "six" + " " * 40_000 + "==1",
    "hashes": "six==1 " + "--hash=sha256:" * 4_000,
    "backslashes": "\\\n" * 100_000,
    "brackets": "six; " + "(" * 1_900,
    "quotes": "--index-url '" + "x" * 40_000,
    "parameters": "six @ https://h/x" + "?token" * 10_000,
    "itself": "-r requirements.txt\n" * 3_000,
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_no_text_takes_longer_than_others(repository: Repository, text: str) -> None:
    repository.put("requirements.txt", text)
    repository.look("--env-from", "requirements")  # within its limit
    repository.look()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "a = " + "[" * 100_000, "[[package]]\n" * 10_000, "\0" * 1_000_000],
    ids=["brackets", "arrays", "packages", "zeros"],
)
def test_a_lock_that_is_none_is_an_error(repository: Repository, text: str) -> None:
    locked(repository)
    repository.put("uv.lock", text)
    shown = repository.captured("lock")
    assert shown.startswith("refused: ")
    assert "uv cannot read" in shown
    assert "Traceback" not in shown


def test_chains_of_files_end(repository: Repository) -> None:
    for number in range(100):
        repository.put(f"r{number}.txt", f"-r r{number + 1}.txt\n")
    repository.put("requirements.txt", "-r r0.txt\n")
    shown = repository.captured("requirements")
    assert shown.startswith("refused: ")
    assert "more than 64 files" in shown


@pytest.mark.parametrize("place", ["home", "open"])
def test_lists_in_folders_above_are_not_the_projects(repository: Repository, tmp_path: Path, place: str) -> None:
    """Above the home folder, and where anybody may put a file, nothing is looked for."""
    (repository.folder / ".git" / "HEAD").unlink()
    (repository.folder / ".git").rmdir()
    if place == "home":
        above = tmp_path
    else:
        above = repository.folder.parent
        above.chmod(0o1777)
    (above / "requirements.txt").write_text("planted\n")
    shown = repository.captured("requirements")
    assert shown.startswith("refused: ")
    assert "planted" not in shown
    assert "no requirements.txt" in shown


def test_the_root_that_the_user_names_is_the_limit(repository: Repository) -> None:
    repository.put("shared.txt", "six\n")
    repository.put("sub/requirements.txt", "-r ../shared.txt\n")
    repository.put("sub/train.py", "pass\n")
    words = ("--env-from", "requirements", "--project-root")
    assert "leads out of the project" in repository.look(*words, "sub")[1]
    code, shown = repository.look(*words, ".")
    assert "no requirements.txt" in shown
    repository.put("requirements.txt", "-r sub/requirements.txt\n")
    code, shown = repository.look(*words, ".")
    assert code == 0, shown


URLS: Sequence[str] = (
    f"https://me:{SECRET}@index.example/simple",
    f"https://{SECRET}@index.example/simple",
    f"https://index.example/simple?token={SECRET}",
    f"https://index.example/simple?a=b&access_token={SECRET}",
    f"https://index.example/simple#api-key={SECRET}",
    f"https://blob.example/x?sv=1&sig={SECRET}&x=1",
    f"https://s3.example/x?X-Amz-Security-Token={SECRET}",
)


@pytest.mark.parametrize("url", URLS)
def test_passwords_in_package_files_are_told_and_with_an_environment_taken_out(
    repository: Repository, url: str
) -> None:
    repository.put("requirements.txt", f"--extra-index-url {url}\nsix\n")
    repository.put("sub/pyproject.toml", f'[[tool.uv.index]]\nurl = "{url}"\n')
    shown = repository.captured()
    assert "requirements.txt, sub/pyproject.toml: the addresses have passwords or tokens" in shown
    assert SECRET not in shown
    shown = repository.captured("requirements")
    assert "the addresses have passwords" not in shown
    assert "are not sent" in shown
    assert SECRET not in shown


def test_package_files_without_passwords_are_no_warning(repository: Repository) -> None:
    repository.put(
        "requirements.txt",
        "--index-url https://me:${TOKEN}@index.example/simple?token=${TOKEN}\n"
        "a @ git+ssh://git@git.example/a#egg=token&subdirectory=x\n"
        "b @ https://h/b.whl#sha256=00\nc @ https://h/c?compat=1&design=2\n",
    )
    repository.put("notes.txt", f"https://me:{SECRET}@index.example\n")  # names no packages
    shown = repository.captured()
    assert "passwords" not in shown

"""What is captured of an environment, from real locks, requirements and interpreters."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hyperpod_jlab.capture import capture
from hyperpod_jlab.capture.environment import _is_plain_install
from hyperpod_jlab.capture.secrets import without_credentials
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from tests.tiny_packages import wheel

UV = (sys.executable, "-m", "uv")
PYTHON = "{}.{}".format(*sys.version_info[:2])


def spec_of(kind, **spec):
    data = {"source": {"kind": "command", "command": "true"}, **spec}
    return parse(JobSpec, {**data, "environment": {"capture": kind}})


def captured_from(folder, kind, interpreter=None, **spec):
    """The captured environment's document, and all that was captured."""
    captured = capture(spec_of(kind, **spec), base=folder, interpreter=interpreter)
    (file,) = (file for file in captured.files if file.path == ENVIRONMENT_FILE)
    return json.loads(file.data), captured


def messages(captured, code):
    return [finding.message for finding in captured.findings if finding.code == code]


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory):
    """A virtual environment with packages of all origins."""
    folder = tmp_path_factory.mktemp("interpreter")
    packages, venv = folder / "packages", folder / "venv"
    wheel(packages, "alpha")
    wheel(packages, "torchlike", "2.4.0+cu121")
    loose = wheel(folder / "loose", "loose")
    project = folder / "mine"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "mine"\nversion = "0.1"\n'
    )
    (project / "backend.py").write_text(
        "import zipfile\n"
        "def build_editable(folder, settings=None, metadata=None):\n"
        "    with zipfile.ZipFile(folder + '/mine-0.1-py3-none-any.whl', 'w') as archive:\n"
        "        info = 'mine-0.1.dist-info/'\n"
        "        archive.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: mine\\nVersion: 0.1\\n')\n"
        "        archive.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        archive.writestr(info + 'RECORD', '')\n"
        "    return 'mine-0.1-py3-none-any.whl'\n"
    )
    subprocess.run([*UV, "venv", "-q", "--python", sys.executable, venv], check=True)
    python = str(venv / "bin" / "python")
    install = [*UV, "pip", "install", "-q", "--offline", "--no-index", "--python", python]
    things = ["alpha", "torchlike", str(loose), "-e", str(project)]
    subprocess.run([*install, "--find-links", packages, *things], check=True)
    return python


def test_a_venv_is_frozen_without_what_is_only_here(interpreter, tmp_path):
    document, captured = captured_from(tmp_path, "venv", interpreter)
    lines = document["requirements"].splitlines()
    assert lines == ["--extra-index-url https://download.pytorch.org/whl/cu121", "alpha==1.0", "torchlike==2.4.0+cu121"]
    assert (document["python"], document["platform"]) == (PYTHON, sysconfig.get_platform())
    omitted = messages(captured, "package_omitted")
    assert [message.split(": ")[0].rpartition(" without ")[2] for message in omitted] == ["loose 1.0", "mine 0.1"]
    assert captured.parts[-1].text.splitlines()[1] == "alpha==1.0"


def test_a_project_without_a_lock_is_frozen(interpreter, tmp_path):
    document, _ = captured_from(tmp_path, "lock", interpreter)
    assert "alpha==1.0" in document["requirements"]


def test_packages_that_conda_installed_are_named_by_their_versions(interpreter, tmp_path):
    (info,) = Path(interpreter).parents[1].glob("lib/*/site-packages/loose-1.0.dist-info")
    (info / "INSTALLER").write_text("conda\n")  # whose addresses are those of its own builds
    document, _ = captured_from(tmp_path, "venv", interpreter)
    assert "loose==1.0" in document["requirements"].splitlines()


def test_conda_is_refused_with_what_to_do():
    data = {"source": {"kind": "command", "command": "true"}, "environment": {"capture": "conda"}}
    with pytest.raises(InvalidInputError) as caught:
        parse(JobSpec, data)
    assert caught.value.hint == "use --env-from venv, or --image"


def test_requirements_with_all_that_pip_knows(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("numpy>=1 ; python_version > '3' # yes\n-f wheels\n")
    (tmp_path / "limits.txt").write_text("numpy<3\n")
    (tmp_path / "requirements.txt").write_text(
        "# nothing\n-rmore/base.txt\n-c limits.txt\n--index-url=https://me:hunter2@index.example/simple\n"
        "-fhttps://me:hunter2@h/links\n--index https://me:hunter2@h/short\n-e.\n"
        "six==1.17 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n-e .\n./local[extra]\nfile:///x/y.whl\n"
        "z @ file:///z\nthing @ git+https://tok3n@git.example/a/b@main\nown @ git+ssh://git@git.example/a\n"
        "kept @ https://${USER}:${TOKEN}@files.example/kept.whl\n"
    )
    source = {"kind": "script", "path": "a/run.py"}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.py").write_text("pass\n")
    document, captured = captured_from(tmp_path, "requirements", source=source)
    assert document["requirements"].splitlines() == [
        "numpy>=1 ; python_version > '3'",
        f"--find-links {tmp_path}/more/wheels",
        "--index-url https://index.example/simple",
        "--find-links https://h/links",
        "--index https://h/short",
        "six==1.17      --hash=sha256:00      --hash=sha256:11",
        "thing @ git+https://git.example/a/b@main",
        "own @ git+ssh://git@git.example/a",
        "kept @ https://${USER}:${TOKEN}@files.example/kept.whl",
    ]
    assert document["constraints"] == "numpy<3\n"
    assert "python" not in document
    assert len(messages(captured, "package_omitted")) == 5
    assert len(messages(captured, "credentials_omitted")) == 4
    assert "hunter2" not in repr(captured)


def test_the_projects_own_files_travel_without_credentials(tmp_path):
    text = "--extra-index-url https://me:hunter2@index.example/simple\nsix\n"
    (tmp_path / "requirements.txt").write_text(text)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.txt").write_text(text)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    _, captured = captured_from(tmp_path, "requirements")
    assert [file.path for file in captured.project] == ["pyproject.toml"]
    files = {file.path: file.data for file in captured.files}
    for name in ("requirements.txt", "requirements/dev.txt"):
        assert files[f"work/{name}"] == text.replace("me:hunter2@", "").encode()
    *_, told = messages(captured, "credentials_omitted")
    assert told == (
        "the copies of requirements.txt, requirements/dev.txt are sent without the credentials in their URLs"
    )


@pytest.mark.parametrize(
    "line",
    [
        "six",
        "Flask[async,dotenv] >= 3.1, < 4 ; python_version > '3.8' and os_name == 'posix'",
        "six (==1.17)",
        "six==1.17 --hash=sha256:00 --hash sha256:11",
        "six==${VERSION}",
        "${NAME}==1",
        "git+https://git.example/a@main#egg=a&subdirectory=b",
        "git+ssh://git@git.example/a.git ; sys_platform == 'linux'",
        "https://files.example/a-1.0-py3-none-any.whl#sha256=00",
        "a@https://files.example/a.whl",
        "a[b] @ hg+https://hg.example/a ; python_version<'4'",
        "--pre",
        "--no-index",
        "--only-binary :all:",
        "--trusted-host h:80",
        "--extra-index-url https://h/simple",
        "--index-url ${INDEX}",
        "--find-links /fsx/wheels",
    ],
)
def test_a_line_that_installers_understand_is_sent_as_it_is(tmp_path, line):
    (tmp_path / "requirements.txt").write_text(line)
    document, captured = captured_from(tmp_path, "requirements")
    assert document["requirements"] == f"{line}\n"
    assert not messages(captured, "package_omitted") + messages(captured, "credentials_omitted")


def test_several_options_in_a_line(tmp_path):
    (tmp_path / "requirements.txt").write_text(
        "--index-url 'https://h/a' --extra-index-url=https://h/b --pre -f /fsx/wheels -cc.txt\n"
        "-e ./here ; python_version < '4'\n"
    )
    (tmp_path / "c.txt").write_text("six<2\n")
    document, captured = captured_from(tmp_path, "requirements")
    assert document["requirements"].splitlines() == [
        "--index-url https://h/a",
        "--extra-index-url https://h/b",
        "--pre",
        "--find-links /fsx/wheels",
    ]
    assert document["constraints"] == "six<2\n"
    assert len(messages(captured, "package_omitted")) == 1


def test_no_requirements(tmp_path):
    (tmp_path / ".git").mkdir()
    with pytest.raises(InvalidInputError) as caught:
        captured_from(tmp_path, "requirements")
    assert caught.value.code == "no_requirements"
    (tmp_path / "requirements.txt").write_text("-r gone.txt\n")
    with pytest.raises(InvalidInputError) as caught:
        captured_from(tmp_path, "requirements")
    assert caught.value.code == "no_such_file"


def test_a_lock_of_uv_has_hashes_and_its_indexes(tmp_path, monkeypatch):
    wheel(tmp_path / "packages", "alpha")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    project = tmp_path / "project"
    (project / "notebooks").mkdir(parents=True)
    (project / "pyproject.toml").write_text(
        '[project]\nname = "project"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["alpha"]\n'
        '[tool.uv]\nno-index = true\nfind-links = ["../packages"]\n'
    )
    subprocess.run([*UV, "lock", "-q", "--offline"], cwd=project, check=True)
    document, _ = captured_from(project / "notebooks", "lock")
    lines = document["requirements"].splitlines()
    assert lines[0] == f"--find-links {tmp_path}/packages"
    assert lines[1].split()[0] == "alpha==1.0"
    assert document["python"] == PYTHON
    (project / "uv.lock").write_text("version = 1\nrevision = 'x'\n")
    with pytest.raises(InvalidInputError) as caught:
        captured_from(project, "lock")
    assert caught.value.code == "bad_lock"


def test_an_interpreter_that_does_not_work(tmp_path):
    with pytest.raises(InvalidInputError) as caught:
        captured_from(tmp_path, "venv", "/bin/false")
    assert caught.value.code == "no_python"


@pytest.mark.parametrize(
    ("arguments", "is_plain"),
    [
        ("install six", True),
        ("install -q -U 'six>=1,<2' Flask[async]==3.1 # web", True),
        ("install six>=1.2", True),
        ("install", False),
        ("install -r requirements.txt", False),
        ("install -e .", False),
        ("install ./x.whl", False),
        ("install x.whl", False),
        ("install {name}", False),
        ("install $NAME", False),
        ("install --index-url https://index.example six", False),
        ("install git+https://git.example/a", False),
        ("install 'six", False),
        ("install six; rm x", False),
        ("uninstall six", False),
        ("list", False),
    ],
)
def test_which_lines_of_pip_are_known_before_the_run(arguments, is_plain):
    assert _is_plain_install(arguments) is is_plain


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://a:b@h/x", "https://h/x"),
        ("https://token@h/x", "https://h/x"),
        ("git+ssh://git@h/x", "git+ssh://git@h/x"),
        ("git+ssh://git:pw@h/x", "git+ssh://git@h/x"),
        ("https://${A}@h/x", "https://${A}@h/x"),
        ("https://me:${A}@h/x", "https://me:${A}@h/x"),
        ("https://${A}:b@h/x", "https://h/x"),
        ("https://me:p@ss@h/x", "https://h/x"),
        ("https://me@corp:pw@h:80/x@v1", "https://h:80/x@v1"),
        ("https://${A}:p@${B}@h/x", "https://h/x"),
        ("git+ssh://git@h:22/x", "git+ssh://git@h:22/x"),
        ("https://h/x@v1", "https://h/x@v1"),
        ("a @ https://h/x", "a @ https://h/x"),
        ("https://h/x?token=a&b=c", "https://h/x?token=&b=c"),
        ("https://h/x?b=c&api_key=a#x", "https://h/x?b=c&api_key=#x"),
        ("https://u:p@h/x?X-Amz-Signature=a", "https://h/x?X-Amz-Signature="),
        ("https://h/x?token=${A}", "https://h/x?token=${A}"),
        ("https://h/x?token=${A}b", "https://h/x?token="),
        ("https://h/x.whl#sha256=00&egg=token", "https://h/x.whl#sha256=00&egg=token"),
        ("https://h/x?compat=1&design=2", "https://h/x?compat=1&design=2"),
    ],
)
def test_credentials_are_taken_out_of_addresses(text, clean):
    assert without_credentials(text) == clean

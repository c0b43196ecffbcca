"""Environments that travel with runs: uv builds one on the first node that needs it, and all others find it by the digest of its content.

``<digest>`` is a whole environment: it is built elsewhere and renamed to that name once. The node that makes the folder
``<digest>.building-N`` builds in it, and touches a file there while it does. When the file stays untouched, the next node makes the folder
with the next number. So a torn build is never used, and two builders do no harm: the first one to rename wins.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import sys
import time
from collections import deque
from typing import Any, Deque, Dict, List, NoReturn, Sequence, Tuple

from .bundle_files import BundleFiles, read_json
from .environment import find_program, mask_secrets
from .errors import LauncherError
from .plan import Plan
from .system import describe_end, parse_wait_status

BUILD_FORMAT = 2
BEAT_S = 2.0
DEAD_AFTER_S = 30.0
"""How long a builder may leave its file untouched, by the clock of the one that looks at it."""
BUILD_POLL_S = 0.5
REMIND_S = 60.0
LAST_LINES = 15
MAX_REASON = 400
ENVIRONMENTS = "environments"
REASON_MARK = re.compile("[\u00d7\u2570\u2500\u25b6\u251c]")
REASON = re.compile("error|cause:|no space|" + REASON_MARK.pattern, re.IGNORECASE)
"""What the lines have that say why an installer failed; uv draws a little tree."""
CREDENTIALS = re.compile(r"(?<=://)[^/\s]+@")

PIP_VARIABLES = (
    ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
    ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
    ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
    ("PIP_CERT", "SSL_CERT_FILE"),
)
"""Variables of pip that hold for uv by another name."""

HARMLESS_VARIABLES = re.compile(
    "CACHE|CERT|COLOR|CONCURRENT|INSTALL_DIR|LINK_MODE|LOG|PASSWORD|PROGRESS|PROXY|QUIET|RETRIES|TIMEOUT|USERNAME|VERBOSE"
)
"""Settings of uv that do not decide which packages it takes."""
MAX_SETTINGS_FILE = 1 << 20


def environments_folder(bundle: str) -> str:
    """Where a run's environment lies: beside all runs of its user, or in the bundle where no other run sees it."""
    runs = os.path.dirname(os.path.dirname(bundle))
    own = os.path.dirname(runs)
    is_partition = os.path.basename(runs) == "runs" and os.path.basename(own).startswith(".hyperpod")
    return os.path.join(own if is_partition else bundle, ENVIRONMENTS)


def run_environment(raw_args: Sequence[str]) -> int:
    """Find or build the environment of this run for the Python that executes this; answers as JSON in a descriptor."""
    descriptor = int(raw_args[0])
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o022)
    bundle = os.path.dirname(os.path.abspath(__file__))
    answer: Dict[str, Any] = {}
    try:
        answer["path"] = PackageEnvironment(bundle).obtain()
    except LauncherError as error:
        answer["error"] = error.to_dict()
    except OSError as error:
        message = "the environment cannot be built: %s" % error
        hint = "check the free space and your quota on the storage partition"
        answer["error"] = LauncherError("environment_failed", message, hint).to_dict()
    os.write(descriptor, json.dumps(answer).encode("utf-8"))
    return 0


def say(text: str) -> None:
    """Write a line of ours into the node's log."""
    print("hyperpod: " + text, flush=True)


class PackageEnvironment:
    """The environment of one run."""

    def __init__(self, bundle: str) -> None:
        self._files = BundleFiles(bundle)
        self._plan = Plan.load(os.path.join(bundle, "launch.json"))
        self._secrets = {name: os.environ.get(name, "") for name in self._plan.secrets}
        path = os.path.join(bundle, self._plan.environment or "")
        document = read_json(path)
        if document is None or document.get("format") != 1:
            raise LauncherError("bad_plan", "%s is not a captured environment" % path)
        self._document = document
        self._trusted = {0, os.geteuid(), os.stat(bundle).st_uid}
        self._root = environments_folder(bundle)
        self._folder = os.path.join(self._root, self._key())
        self._seen: Tuple[Any, float] = (None, 0.0)
        self._beat_file = ""

    def _key(self) -> str:
        """The digest of what goes in, where it comes from, the setup lines (which may add to it), and the Python that it is for."""
        import hashlib
        import platform
        import sysconfig

        content = {name: value for name, value in self._document.items() if name not in ("platform", "from")}
        python = [sys.version, os.path.realpath(sys.executable)]
        system = [sysconfig.get_platform(), *platform.libc_ver()]
        parts = [BUILD_FORMAT, content, python, system, self._settings(), self._plan.setup]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()[:32]

    def _settings(self) -> Dict[str, List[str]]:
        """The variables that decide which packages uv takes, with the files that they name, and without the passwords in addresses, which change."""
        settings = {}
        for name, value in self._variables().items():
            is_setting = name.startswith("UV_") or name == "PIP_NO_INDEX"
            if not is_setting or HARMLESS_VARIABLES.search(name) or not value:
                continue
            settings[name] = [CREDENTIALS.sub("", value)]
            for path in filter(os.path.isfile, value.split()):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    settings[name].append(file.read(MAX_SETTINGS_FILE).decode("latin-1"))
        return settings

    def obtain(self) -> str:
        """The environment's folder; builds it, or waits for another builder, if it is not there."""
        self._files.make_folders(self._root)
        self._check_trusted(self._root)
        begin, remind_at = time.monotonic(), 0.0
        while not self._is_whole():
            newest = self._newest_claim()
            is_free = not newest or self._is_dead(newest)
            if is_free and self._files.claim_folder(self._claim(newest + 1)):
                self._build(newest + 1)
                continue
            now = time.monotonic()
            builder = read_json(os.path.join(self._claim(newest), "builder.json"))
            if builder is not None and now > remind_at:
                remind_at = now + REMIND_S
                say(
                    "waiting for the environment, which the run %s on %s builds (%d s)"
                    % (builder.get("run_id"), builder.get("host"), now - begin)
                )
            time.sleep(BUILD_POLL_S)
        self._check_trusted(self._folder)
        if not os.access(os.path.join(self._folder, "bin", "python"), os.X_OK):
            raise LauncherError(
                "environment_failed",
                "the Python of the environment %s is not on this node" % self._folder,
                "use nodes with the same Python, or remove the folder so that it is built again",
            )
        used = os.path.join(self._folder, "used")
        self._files.make_folders(used)
        os.close(self._files.open(os.path.join(used, self._plan.run_id), os.O_WRONLY))
        os.utime(os.path.join(used, self._plan.run_id))
        say("using the environment %s" % self._folder)
        return self._folder

    def _is_whole(self) -> bool:
        return os.path.lexists(os.path.join(self._folder, "bin", "python"))

    def _check_trusted(self, path: str) -> None:
        """Refuse a folder that another user made or may write to."""
        status = os.lstat(path)
        writable = status.st_mode & stat.S_IWOTH
        if status.st_mode & stat.S_IWGRP and not has_access_list(path):
            writable = True
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in self._trusted or writable:
            raise LauncherError(
                "untrusted_environment",
                "another user could have changed the environment in %s, so it is not used" % path,
                "remove the folder, or take the permission to write from others",
                {"path": path},
            )

    # ---- who builds

    def _claim(self, number: int) -> str:
        return "%s.building-%d" % (self._folder, number)

    def _claims(self) -> List[int]:
        start = os.path.basename(self._claim(0))[:-1]
        names = [name[len(start) :] for name in os.listdir(self._root) if name.startswith(start)]
        return [int(name) for name in names if name.isdigit()]

    def _newest_claim(self) -> int:
        return max(self._claims(), default=0)

    def _is_dead(self, number: int) -> bool:
        beat = None
        try:  # opened, because a network file system then asks its server
            with open(os.path.join(self._claim(number), "builder.json"), "rb") as file:
                beat = os.fstat(file.fileno()).st_mtime_ns
        except OSError:
            pass
        now = time.monotonic()
        if self._seen[0] != (number, beat):
            self._seen = ((number, beat), now)
        return now - self._seen[1] > DEAD_AFTER_S

    # ---- the build

    def _build(self, number: int) -> None:
        """Build in our claim and rename the result; then the claim ends, as do those of builders before us."""
        import shutil

        claim, begin = self._claim(number), time.monotonic()
        self._beat_file = os.path.join(claim, "builder.json")
        try:
            builder = {"run_id": self._plan.run_id, "host": os.uname().nodename}
            self._files.write(self._beat_file, builder)
            if self._is_whole():  # another builder was faster
                return
            if os.path.lexists(self._folder):
                say("the environment %s is damaged; it is built again" % self._folder)
                os.rename(self._folder, os.path.join(claim, "damaged"))
            say("building the environment %s" % self._folder)
            path = os.path.join(claim, "environment")
            self._install(claim, path)
            self._files.write(os.path.join(path, "hyperpod.json"), {"pip": self._document.get("pip")})
            try:
                os.rename(path, self._folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            if not self._is_whole():
                raise LauncherError("environment_failed", "the environment does not work")
            say("the environment was built in %.1f s" % (time.monotonic() - begin))
        except (LauncherError, OSError):
            if not self._is_whole():  # else the one that took over has removed our claim
                raise
        finally:
            for other in self._claims():
                if other <= number:
                    shutil.rmtree(self._claim(other), ignore_errors=True)

    def _install(self, claim: str, path: str) -> None:
        uv = self._find_uv()
        venv = [*uv, "venv", "--quiet", "--no-config", "--relocatable"]
        self._run([*venv, "--python", self._python(uv), path])
        # It looks in all indexes, as pip does.
        install = [*uv, "pip", "install", "--python", os.path.join(path, "bin", "python")]
        install += ["--compile-bytecode", "--index-strategy", "unsafe-best-match"]
        install += ["--no-index"] if os.environ.get("PIP_NO_INDEX") else []
        requirements = self._document.get("requirements") or ""
        if requirements:
            words = ["-r", self._write(claim, "requirements.txt", requirements)]
            constraints = self._document.get("constraints")
            if constraints:
                words += ["-c", self._write(claim, "constraints.txt", constraints)]
            self._run([*install, *words])
        options = [line + "\n" for line in requirements.splitlines() if line.startswith("--")]
        indexes = self._write(claim, "indexes.txt", "".join(options))
        for line in self._document.get("pip") or []:
            import shlex

            self._run([*install, "-r", indexes, *shlex.split(line, True)[1:]])

    def _write(self, folder: str, name: str, text: str) -> str:
        target = os.path.join(folder, name)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return target

    def _python(self, uv: Sequence[str]) -> str:
        """The Python that the environment is made of.

        Raises:
            LauncherError: It was captured with another minor version, which is not on this node.
        """
        wanted, own = self._document.get("python"), "%d.%d" % sys.version_info[:2]
        if wanted in (None, own):
            return sys.executable
        import subprocess

        command = [*uv, "python", "find", "--system", "--no-python-downloads", str(wanted)]
        found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", check=False)
        if found.returncode == 0:
            return os.fsdecode(found.stdout.strip())
        raise LauncherError(
            "python_version",
            "the environment was captured with Python %s, but the job would run it with Python %s" % (wanted, own),
            "choose Python %s on the cluster with --python or --image" % wanted,
        )

    def _find_uv(self) -> List[str]:
        import importlib.util

        path = os.environ.get("PATH", os.defpath).split(os.pathsep)
        folders = os.pathsep.join(folder for folder in path if os.path.isabs(folder))
        program = find_program("uv", {"PATH": folders}, "/")
        if program is not None:
            return [program]
        if importlib.util.find_spec("uv"):
            return [sys.executable, "-I", "-m", "uv"]
        raise LauncherError(
            "environment_failed",
            "the environment cannot be built: this node has no uv",
            "install uv on the nodes or in the image, or copy the program onto the storage partition and name its folder with --env PATH=...",
        )

    def _variables(self) -> Dict[str, str]:
        variables = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        }
        for source, target in PIP_VARIABLES:
            if source in variables:
                separator = "," if target == "UV_FIND_LINKS" else " "
                variables.setdefault(target, separator.join(variables.pop(source).split()))
        variables["UV_NO_PROGRESS"] = "1"
        if not os.access(os.path.expanduser("~"), os.W_OK):  # where uv keeps its cache
            variables["UV_NO_CACHE"] = "1"
        return variables

    def _run(self, words: List[str]) -> None:
        """Run uv to its end, in a folder that has no settings of a project; what it says goes to the node's log.

        Raises:
            LauncherError: It failed.
        """
        import select
        import subprocess

        last: Deque[str] = deque(maxlen=LAST_LINES)
        rest, data = b"", b"-"
        process = subprocess.Popen(
            words,
            cwd="/",
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        try:
            while data:
                os.utime(self._beat_file)
                if not select.select([descriptor], [], [], BEAT_S)[0]:
                    continue
                data = os.read(descriptor, 65536)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines if data or not rest else [*lines, rest]:
                    text = self._mask(line.decode("utf-8", "replace").rstrip())
                    print(text, flush=True)
                    last.append(text)
            process.wait()
        finally:  # at a stop it is not waited for: the node ends what is left
            process.kill()
        if process.returncode:
            self._fail(process.returncode, last)

    def _mask(self, text: str) -> str:
        return CREDENTIALS.sub("***@", mask_secrets(text, self._secrets))

    def _fail(self, code: int, last: Sequence[str]) -> NoReturn:
        import sysconfig

        end = describe_end(*parse_wait_status(-code if code < 0 else code << 8))
        reasons = [line for line in last if REASON.search(line)]
        text = " ".join(REASON_MARK.sub(" ", " ".join(reasons or last)).split())
        if len(text) > MAX_REASON:  # the cause is often at the end
            text = "%s ... %s" % (text[: MAX_REASON // 2], text[-MAX_REASON // 2 :])
        captured, here = self._document.get("platform"), sysconfig.get_platform()
        hint = "see the node's log"
        if captured not in (None, here):
            hint += "; the environment was captured on %s, this node is %s" % (captured, here)
        message = "the environment cannot be built: uv %s: %s" % (end, text)
        raise LauncherError("environment_failed", message, hint, {"lines": list(last)})


def has_access_list(path: str) -> bool:
    """Whether a folder has an ACL, so that the bits of its group are a mask."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):
        return False

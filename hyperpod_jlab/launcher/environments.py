"""Environments that travel with runs: built once by the first node that needs one, found by their content by all others.

An environment lies in a folder named after the digest of all that makes it what it is. Each build gets a folder of its own there, at the
place where it stays (installed scripts hold its path), and ``ready.json``, which is written once, names the build to use. So a torn build is
never used, and two builders that know nothing of each other do no harm. Leases only save work: their numbers count up, the holder of the
newest one builds and touches it while it does, and the others wait until the environment is there or the holder is dead.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from .bundle_files import BundleFiles, read_json
from .environment import find_program, mask_secrets
from .errors import LauncherError
from .plan import Plan
from .system import describe_end, has_exited, parse_wait_status, read_process

BUILD_FORMAT = 1
BEAT_S = 2.0
DEAD_AFTER_S = 30.0
"""How long a lease may stay untouched, by the clock of the one that looks at it."""
BUILD_POLL_S = 0.2
REMIND_S = 60.0
LAST_LINES = 15
MAX_REASON = 400
ENVIRONMENTS = "environments"
REASON_MARK = re.compile("[\u00d7\u2570\u2500\u25b6\u251c]")
REASON = re.compile("error|cause:|no space|" + REASON_MARK.pattern, re.IGNORECASE)
"""What the lines have that say why an installer failed; uv draws a little tree."""
CREDENTIALS = re.compile(r"(?<=://)[^/\s]+@")

VARIABLES_ALIKE = (
    ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
    ("UV_INDEX_URL", "PIP_INDEX_URL"),
    ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
    ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
    ("UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
    ("PIP_CERT", "SSL_CERT_FILE"),
)
"""Variables of one installer that the other has by another name: whichever builds, the settings hold."""

HARMLESS_VARIABLES = re.compile(
    "CACHE|CERT|COLOR|CONCURRENT|INSTALL_DIR|LINK_MODE|LOG|NO_INPUT|PASSWORD|PROGRESS|PROXY|QUIET|RETRIES|TIMEOUT|USERNAME|VERBOSE|VERSION_CHECK"
)
"""Settings of the installers that do not decide which packages they take."""
MAX_SETTINGS = 1 << 20


def environments_folder(bundle: str, unshared: bool) -> str:
    """Where a run's environment lies: beside all runs of its user, or in the bundle where no other run sees it."""
    runs = os.path.dirname(os.path.dirname(bundle))
    own = os.path.dirname(runs)
    is_partition = os.path.basename(runs) == "runs" and os.path.basename(own).startswith(
        ".hyperpod"
    )
    return os.path.join(bundle if unshared or not is_partition else own, ENVIRONMENTS)


def run_environment(raw_args: Sequence[str]) -> int:
    """Find or build the environment of this run for the Python that executes this; answers as JSON in a descriptor."""
    descriptor, unshared = int(raw_args[0]), "--unshared" in raw_args
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o022)
    bundle = os.path.dirname(os.path.abspath(__file__))
    answer: Dict[str, Any] = {}
    try:
        answer["path"] = PackageEnvironment(bundle, unshared).obtain()
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

    def __init__(self, bundle: str, unshared: bool) -> None:
        self._files = BundleFiles(bundle)
        self._plan = Plan.load(os.path.join(bundle, "launch.json"))
        self._secrets = {name: os.environ.get(name, "") for name in self._plan.secrets}
        path = os.path.join(bundle, self._plan.environment or "")
        document = read_json(path)
        if document is None or document.get("format") != 1:
            raise LauncherError("bad_plan", "%s is not a captured environment" % path)
        self._document = document
        self._trusted = {0, os.geteuid(), os.stat(bundle).st_uid}
        self._root = environments_folder(bundle, unshared)
        self._folder = os.path.join(self._root, self._key())
        self._beats: Dict[int, Tuple[int, float]] = {}
        self._lease = ""
        self._beat_at = 0.0

    def _key(self) -> str:
        """The digest of what goes in, where it comes from, the setup lines (which may add to it), and the Python that it is for."""
        import hashlib
        import platform
        import sysconfig

        content = {
            name: value
            for name, value in self._document.items()
            if name not in ("platform", "from")
        }
        python = [sys.version, os.path.realpath(sys.executable)]
        system = [sysconfig.get_platform(), *platform.libc_ver()]
        parts = [BUILD_FORMAT, content, python, system, self._settings(), self._plan.setup]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()[:32]

    def _settings(self) -> Dict[str, List[str]]:
        """The variables that decide which packages the installers take, with the files that they name, and without the passwords in addresses, which change."""
        settings = {}
        for name, value in self._variables().items():
            if not name.startswith(("PIP_", "UV_")) or HARMLESS_VARIABLES.search(name) or not value:
                continue
            settings[name] = [CREDENTIALS.sub("", value)]
            for path in filter(os.path.isfile, value.split()):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    settings[name].append(file.read(MAX_SETTINGS).decode("latin-1"))
        return settings

    def obtain(self) -> str:
        """The environment's folder; builds it, or waits for another builder, if it is not there."""
        for folder in (self._root, self._folder):
            self._files.make_folders(folder)
            self._check_trusted(folder)
        begin = reminded_at = time.monotonic()
        is_told = False
        while True:
            path = self._find()
            if path is not None:
                say("using the environment %s" % path)
                return path
            number = self._claim()
            if number is not None:
                return self._build(number)
            now = time.monotonic()
            if not is_told or now - reminded_at > REMIND_S:
                is_told, reminded_at = True, now
                say(
                    "waiting for the environment, which %s builds (%d s)"
                    % (self._builder(), now - begin)
                )
            time.sleep(BUILD_POLL_S)

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

    def _find(self) -> Optional[str]:
        ready = read_json(os.path.join(self._folder, "ready.json"))
        if ready is None:
            return None
        path = os.path.join(self._folder, os.path.basename(str(ready.get("build"))))
        if not os.access(os.path.join(path, "bin", "python"), os.X_OK):
            say("the environment %s is damaged; it is built again" % path)
            with contextlib.suppress(FileNotFoundError):  # another node has found it, too
                os.unlink(os.path.join(self._folder, "ready.json"))
            return None
        self._check_trusted(path)
        used = os.path.join(self._folder, "used")
        self._files.make_folders(used)
        os.close(self._files.open(os.path.join(used, self._plan.run_id), os.O_WRONLY))
        os.utime(os.path.join(used, self._plan.run_id))
        return path

    # ---- leases

    def _lease_path(self, number: int) -> str:
        return os.path.join(self._folder, "lease-%d.json" % number)

    def _newest_lease(self) -> int:
        names = os.listdir(self._folder)
        found = [re.fullmatch(r"lease-(\d+)\.json", name) for name in names]
        return max((int(match[1]) for match in found if match), default=0)

    def _claim(self) -> Optional[int]:
        """Take the next lease if the newest one is over; None: another node builds."""
        newest = self._newest_lease()
        if newest and not self._is_over(newest):
            return None
        process = read_process(os.getpid())
        document = {
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "started": process.started if process else None,
            "namespace": process_namespace(),
            "run_id": self._plan.run_id,
            "build": "build-" + os.urandom(6).hex(),
        }
        if not self._files.write_once(self._lease_path(newest + 1), document):
            return None
        if newest:  # what a dead builder left
            self._remove_build(read_json(self._lease_path(newest)))
        return newest + 1

    def _is_over(self, number: int) -> bool:
        path = self._lease_path(number)
        if os.path.exists(path + ".over"):
            return True
        lease = read_json(path) or {}
        here = (os.uname().nodename, process_namespace())
        if (lease.get("host"), lease.get("namespace")) == here and lease.get("started"):
            process = read_process(lease["pid"])
            if process is None or process.started != lease["started"] or has_exited(lease["pid"]):
                return True
        beat, now = os.stat(path).st_mtime_ns, time.monotonic()
        if self._beats.get(number, (None, 0.0))[0] != beat:
            self._beats[number] = (beat, now)
        return now - self._beats[number][1] > DEAD_AFTER_S

    def _builder(self) -> str:
        lease = read_json(self._lease_path(self._newest_lease())) or {}
        return "the run %s on %s" % (lease.get("run_id"), lease.get("host"))

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at > BEAT_S:
            self._beat_at = now
            os.utime(self._lease)

    def _remove_build(self, lease: Optional[Dict[str, Any]]) -> None:
        import shutil

        name = os.path.basename(str((lease or {}).get("build")))
        if name.startswith("build-"):
            shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)

    # ---- the build

    def _build(self, number: int) -> str:
        self._lease = self._lease_path(number)
        lease = read_json(self._lease) or {}
        path = os.path.join(self._folder, str(lease["build"]))
        begin = time.monotonic()
        say("building the environment %s" % path)
        try:
            self._install(path)
            self._files.write(
                os.path.join(path, "hyperpod.json"), {"pip": self._document.get("pip")}
            )
            is_first = self._files.write_once(
                os.path.join(self._folder, "ready.json"), {"format": 1, "build": lease["build"]}
            )
        except BaseException:
            self._remove_build(lease)
            self._files.write_once(self._lease + ".over", {})
            raise
        if not is_first:
            self._remove_build(lease)
        found = self._find()
        if found is None:
            raise LauncherError("environment_failed", "the environment %s does not work" % path)
        say("the environment was built in %.1f s" % (time.monotonic() - begin))
        return found

    def _install(self, path: str) -> None:
        uv = self._find_uv()
        python = os.path.join(path, "bin", "python")
        if self._document.get("conda"):
            self._create_conda(path)
        elif uv:
            self._run([*uv, "venv", "--quiet", "--no-config", "--python", self._python(uv), path])
        else:
            self._run([self._python(uv), "-m", "venv", path])
        install = [python, "-m", "pip", "install", "--progress-bar", "off"]
        if uv:  # it looks in all indexes, as pip does
            install = [*uv, "pip", "install", "--python", python, "--compile-bytecode"]
            install += ["--index-strategy", "unsafe-best-match"]
            install += ["--no-index"] if os.environ.get("PIP_NO_INDEX") else []
        requirements = self._document.get("requirements") or ""
        if requirements:
            words = ["-r", self._write(path, "requirements.txt", requirements)]
            constraints = self._document.get("constraints")
            if constraints:
                words += ["-c", self._write(path, "constraints.txt", constraints)]
            self._run([*install, *words], path)
        options = [line + "\n" for line in requirements.splitlines() if line.startswith("--")]
        indexes = self._write(path, "indexes.txt", "".join(options))
        for line in self._document.get("pip") or []:
            import shlex

            self._run([*install, "-r", indexes, *shlex.split(line, True)[1:]], path)

    def _write(self, path: str, name: str, text: str) -> str:
        target = os.path.join(path, name)
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
        if uv:
            import subprocess

            command = [*uv, "python", "find", "--system", "--no-python-downloads", str(wanted)]
            found = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", check=False
            )
            if found.returncode == 0:
                return os.fsdecode(found.stdout.strip())
        raise LauncherError(
            "python_version",
            "the environment was captured with Python %s, but the job would run it with Python %s"
            % (wanted, own),
            "choose Python %s on the cluster with --python or --image" % wanted,
        )

    def _find_uv(self) -> List[str]:
        import importlib.util

        path = os.environ.get("PATH", os.defpath).split(os.pathsep)
        folders = os.pathsep.join(folder for folder in path if os.path.isabs(folder))
        program = find_program("uv", {"PATH": folders}, "/")
        if program is not None:
            return [program]
        return [sys.executable, "-I", "-m", "uv"] if importlib.util.find_spec("uv") else []

    def _create_conda(self, path: str) -> None:
        names = ("micromamba", "mamba", "conda")
        programs = (find_program(name, os.environ, "/") for name in names)
        program = next((name for name in programs if name), None)
        if program is None:
            raise LauncherError(
                "conda_missing",
                "the environment is one of conda, but this node has no micromamba, mamba or conda on its PATH",
                "install one of them on the nodes, or use --env-from venv",
            )
        text = self._document["conda"]
        systems = set(re.findall(r"/((?:linux|osx|win)-[a-z0-9_]+)/[^/]+$", text, re.MULTILINE))
        machine = {"x86_64": "64"}.get(os.uname().machine, os.uname().machine)
        if systems - {"linux-" + machine}:
            raise LauncherError(
                "environment_platform",
                "the conda environment was captured on %s, but this node is linux-%s"
                % (", ".join(sorted(systems)), machine),
                "capture it on a machine like the nodes, or use --env-from requirements",
            )
        file = self._write(self._folder, os.path.basename(path) + ".txt", text)
        self._run([program, "create", "--yes", "--prefix", path, "--file", file])

    def _variables(self) -> Dict[str, str]:
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET")
        }
        for source, target in VARIABLES_ALIKE:
            if source in variables:
                separator = "," if target == "UV_FIND_LINKS" else " "
                variables.setdefault(target, separator.join(variables[source].split()))
        variables.update(PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1", UV_NO_PROGRESS="1")
        if not os.access(os.path.expanduser("~"), os.W_OK):  # where installers keep their caches
            variables.update(PIP_NO_CACHE_DIR="1", UV_NO_CACHE="1")
        return variables

    def _run(self, words: List[str], cwd: str = "/") -> None:
        """Run an installer to its end, in a folder that has no settings of a project; what it says goes to the node's log.

        Raises:
            LauncherError: It failed.
        """
        import select
        import subprocess

        last: Deque[str] = deque(maxlen=LAST_LINES)
        rest, data = b"", b"-"
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        try:
            while data:
                self._beat()
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
            raise self._failure(words, process.returncode, last)

    def _mask(self, text: str) -> str:
        return CREDENTIALS.sub("***@", mask_secrets(text, self._secrets))

    def _failure(self, words: List[str], code: int, last: Sequence[str]) -> LauncherError:
        status = -code if code < 0 else code << 8
        end = describe_end(*parse_wait_status(status))
        reasons = [line for line in last if REASON.search(line)]
        text = " ".join(REASON_MARK.sub(" ", " ".join(reasons or last)).split())
        if len(text) > MAX_REASON:  # the cause is often at the end
            text = "%s ... %s" % (text[: MAX_REASON // 2], text[-MAX_REASON // 2 :])
        import sysconfig

        captured, here = self._document.get("platform"), sysconfig.get_platform()
        hint = "see the node's log"
        if "ensurepip" in text or "No module named" in text:
            hint = "install uv on the nodes or in the image, or Python with venv and pip"
        if captured not in (None, here):
            hint += "; the environment was captured on %s, this node is %s" % (captured, here)
        name = words[words.index("-m") + 1] if "-m" in words[:3] else os.path.basename(words[0])
        message = "the environment cannot be built: %s %s: %s" % (name, end, text)
        return LauncherError("environment_failed", message, hint, {"lines": list(last)})


def has_access_list(path: str) -> bool:
    """Whether a folder has an ACL, so that the bits of its group are a mask."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):
        return False


def process_namespace() -> Optional[str]:
    """In which namespace process ids are meant."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None

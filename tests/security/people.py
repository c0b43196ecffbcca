"""The users on a stage: what each of them does runs in a process with that user's uid."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.security.stage import CHECKOUT, Stage

LIMIT = 10.0
"""Seconds that a command may take, whatever others have laid into its way."""
_GIVE_UP = 60.0
"""Seconds after which one is ended."""
_FAULTS = ("Traceback (most recent call last)", "internal error", "bug in hyperpod_jlab", '"internal"')


@dataclass(frozen=True)
class Answer:
    """What a command gave.

    Attributes:
        words: The command.
        code: Its exit code; None when it had to be ended.
        out: What it printed.
        err: What it printed on stderr.
        seconds: How long it took.
        busy: How many times slower than alone a process was on this machine then, as far as its load tells.
    """

    words: tuple[str, ...]
    code: int | None
    out: str
    err: str
    seconds: float
    busy: float

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error's one shape, from the last line of stderr (of ``--json``)."""
        found: dict[str, Any] = json.loads(self.err.strip().splitlines()[-1])
        return found

    @property
    def faults(self) -> list[str]:
        """All that must not be, whatever somebody else did: it hung, or ended in an error that is none of ours."""
        found = []
        if self.code is None:
            found.append(f"did not end in {_GIVE_UP:g} s")
        elif self.seconds > LIMIT * self.busy:
            found.append(f"took {self.seconds:.1f} s (busy: {self.busy:.1f})")
        found += [f"says {word!r}" for word in _FAULTS if word in self.out + self.err]
        if self.code is not None and self.code < 0:
            found.append(f"was ended by signal {-self.code}")
        return found

    def clean(self) -> Answer:
        """The answer itself, when it came in time, and with a result or an error of ours."""
        assert not self.faults, self.text
        return self

    def ok(self) -> Answer:
        """The answer itself, when the command succeeded."""
        self.clean()
        assert self.code == 0, self.text
        return self

    @property
    def text(self) -> str:
        """All of it, for a failed test."""
        said = "\n".join(part[-4000:] for part in (self.out, self.err))
        return f"{' '.join(self.words)}: {self.code}, {'; '.join(self.faults)}\n{said}"


class Going:
    """Something that a user has begun and that goes on."""

    def __init__(self, pid: int, reaper: int, out: IO[bytes], err: IO[bytes], words: tuple[str, ...]) -> None:
        self.pid = pid
        self._reaper = reaper
        self._out, self._err = out, err
        self._words = words
        self._began = time.monotonic()
        self._code: int | None = None
        self._over = False

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._over or self._wait(0)

    def answer(self, limit: float = _GIVE_UP) -> Answer:
        """Wait for its end; one that does not come is brought about."""
        ended = self._wait(limit)
        seconds = time.monotonic() - self._began
        if not ended:
            self.end()
        said = []
        for file in (self._out, self._err):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
            file.close()
        code = self._code if ended else None
        return Answer(self._words, code, said[0], said[1], seconds, _busy())

    def end(self) -> None:
        """End it at once."""
        if not self._over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._wait(10)

    def _wait(self, limit: float) -> bool:
        if self._over:
            return True
        handle = os.pidfd_open(self._reaper)
        try:
            if not select.select([handle], [], [], limit)[0]:
                return False
        finally:
            os.close(handle)
        self._code = os.waitstatus_to_exitcode(os.waitpid(self._reaper, 0)[1])
        self._code = self._code - 256 if self._code > 200 else self._code
        self._over = True
        return True


@dataclass
class Person:
    """A user.

    Attributes:
        stage: Where they are.
        name: Their name.
        uid: Their number, and that of their group.
        partition: The storage partition in their configuration.
        shared: What their configuration says of it.
        slots: Slots of their local cluster.
        more: Further lines of their configuration.
    """

    stage: Stage
    name: str
    uid: int
    partition: Path
    shared: bool = True
    slots: int = 2
    more: str = ""
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.stage.folder / self.name
        for folder in (self.home, self.project):
            folder.mkdir(mode=0o700)
            os.chown(folder, self.uid, self.uid)
        self.configure()

    @property
    def project(self) -> Path:
        """Where they work."""
        return self.home / "project"

    @property
    def state(self) -> Path:
        """Where their programs keep what is their own."""
        return self.home / ".programs"

    def configure(self) -> None:
        """Write their configuration anew."""
        lines = [
            "[storage]",
            f"path = {json.dumps(str(self.partition))}",
            f"shared = {json.dumps(self.shared)}",
            "[clusters.local]",
            f"slots = {self.slots}",
            self.more,
        ]
        config = self.home / "config.toml"
        config.write_text("\n".join(lines))
        os.chown(config, self.uid, self.uid)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of their shell."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        folders = {f"XDG_{kind}_HOME": str(self.state / kind.lower()) for kind in ("DATA", "STATE", "CACHE", "CONFIG")}
        return kept | folders | {
            "HOME": str(self.home),
            "LOGNAME": self.name,
            "USER": self.name,
            "HYPERPOD_CONFIG": str(self.home / "config.toml"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
            "IPYTHONDIR": str(self.state / "ipython"),
            "JUPYTER_CONFIG_DIR": str(self.state / "jupyter"),
        }  # fmt: skip

    def start(
        self,
        work: Callable[[], int | None],
        *,
        words: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Going:
        """Begin to do something as this user; `work` returns an exit code."""
        out, err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 - its answer closes them
        reading, writing = os.pipe()
        reaper = os.fork()
        if reaper == 0:
            with _no_way_back():
                self.stage.enter()
                # The namespace of processes holds for children only.
                child = os.fork()
                if child == 0:
                    with _no_way_back():
                        os.close(writing)
                        self._become({**self.environment, **(environment or {})}, out, err)
                        code = work()
                        sys.stdout.flush()
                        sys.stderr.flush()
                        os._exit(code or 0)
                os.write(writing, b"%d" % child)
                os.close(writing)
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                os._exit(code if code >= 0 else 256 + code)
        os.close(writing)
        with os.fdopen(reading, "rb") as pid:
            return Going(int(pid.read()), reaper, out, err, words)

    def _become(self, environment: Mapping[str, str], out: IO[bytes], err: IO[bytes]) -> None:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, opened in enumerate((nothing, out.fileno(), err.fileno())):
            os.dup2(opened, number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setgroups([])
        os.setresgid(self.uid, self.uid, self.uid)
        os.setresuid(self.uid, self.uid, self.uid)
        os.umask(0o022)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(self.project)
        _forget()

    def hpj(self, *words: str, at_first: Callable[[], object] | None = None, limit: float = _GIVE_UP) -> Answer:
        """Call ``hpj`` in the project's folder; `at_first` is called before, in the same process."""
        return self.begin(*words, at_first=at_first).answer(limit)

    def begin(self, *words: str, at_first: Callable[[], object] | None = None) -> Going:
        """Begin a call of ``hpj``."""

        def work() -> int:
            from hyperpod_jlab.cli.main import main

            if at_first is not None:
                at_first()
            return main(words)

        return self.start(work, words=(self.name, "hpj", *words))

    def program(self, *words: str | Path, environment: Mapping[str, str] | None = None) -> Going:
        """Begin a program of the virtual environment, as from a shell."""
        path = CHECKOUT / ".venv" / "bin" / str(words[0])
        command = [str(path), *map(str, words[1:])]
        return self.start(lambda: os.execv(path, command), words=(self.name, *command), environment=environment)

    def do(self, work: Callable[[], Any]) -> Any:
        """What `work` returns, done as this user.

        Raises:
            OSError: What it raised; other exceptions come as an `AssertionError` with the traceback.
        """
        kept = tempfile.TemporaryFile()  # noqa: SIM115

        def run() -> int:
            try:
                found: Any = (True, work())
            except OSError as error:
                found = (False, error)
            kept.write(pickle.dumps(found))
            kept.flush()
            return 0

        with kept:
            answer = self.start(run, words=(self.name, str(work))).answer()
            assert answer.code == 0, answer.text
            kept.seek(0)
            good, found = pickle.loads(kept.read())
        if not good:
            raise found
        return found

    def bundle(self, run_id: str) -> Path:
        """The folder of a run, as ``hpj show`` names it."""
        return folder_of(self.hpj("show", run_id, "--json").ok().json)

    def runs(self, *words: str) -> dict[str, dict[str, Any]]:
        """What ``hpj runs`` lists, by run id."""
        listed = self.hpj("runs", "--json", *words).ok().json["runs"]
        return {run["run_id"]: run for run in listed}


def folder_of(run: Mapping[str, Any]) -> Path:
    """The bundle's folder in a run's JSON."""
    told = run["bundle"]
    return Path(told["here"] if isinstance(told, dict) else told)


@contextlib.contextmanager
def _no_way_back():
    """A forked process never goes on with what pytest does."""
    try:
        yield
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 1)
    except BaseException:
        with contextlib.suppress(Exception):
            os.write(2, traceback.format_exc().encode())
        os._exit(99)
    os._exit(0)


def _forget() -> None:
    """Nothing that this process found out as root, elsewhere, holds for a user on a stage."""
    for name, module in list(sys.modules.items()):
        if name.startswith("hyperpod_jlab."):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def _busy() -> float:
    """How many wait for each CPU."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))

"""Samples of what the ranks and the node use."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .bundle_files import BundleFiles
from .contract import FORMAT
from .errors import LauncherError
from .open_files import find_log_folders
from .processes import Child, Children
from .system import available_cpus, send

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessUsage(NamedTuple):
    """What a process has used so far; `started` tells it from a later one with the same id."""

    pid: int
    parent: int
    started: int
    ticks: int
    memory: int


def read_usage() -> Dict[int, ProcessUsage]:
    """All processes that this one may see, by id; empty where there is no /proc."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                ticks = int(fields[11]) + int(fields[12])
                memory = int(fields[21]) * PAGE_BYTES
                usage = ProcessUsage(int(name), int(fields[1]), int(fields[19]), ticks, memory)
            except (OSError, ValueError, IndexError):
                continue
            found[usage.pid] = usage
    return found


def family(pid: int, usage: Mapping[int, ProcessUsage]) -> List[int]:
    """A process and all below it, as far as they are in `usage`."""
    children: Dict[int, List[int]] = {}
    for one in usage.values():
        children.setdefault(one.parent, []).append(one.pid)
    found, pending = [], [pid]
    while pending:
        one_pid = pending.pop()
        pending.extend(children.get(one_pid, ()))
        if one_pid in usage:
            found.append(one_pid)
    return found


def read_node_usage() -> Tuple[Optional[int], Optional[int], Optional[int]]:
    """Of the whole machine: ticks in which its CPUs were busy so far, bytes of memory in use, and all its memory."""
    busy = used = total = None
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/stat", "rb") as file:
            ticks = [int(text) for text in file.readline().split()[1:9]]
        busy = sum(ticks) - ticks[3] - ticks[4]  # idle, and idle while the disk is waited for
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
        with open("/proc/meminfo", "rb") as file:
            rows = {row.split(b":")[0]: int(row.split()[1]) * 1024 for row in file}
        total = rows[b"MemTotal"]
        used = total - rows[b"MemAvailable"]
    return busy, used, total


class GpuUsage(NamedTuple):
    """What nvidia-smi says of a GPU: percent of the time in which it was busy, bytes in use, and all its bytes."""

    number: int
    name: str
    utilization: Optional[float]
    memory: Optional[int]
    total_memory: Optional[int]


def parse_gpus(text: str, visible: Optional[str]) -> List[GpuUsage]:
    """The rows of nvidia-smi's answer, without GPUs that `visible` (CUDA_VISIBLE_DEVICES) leaves out; other lines are passed over."""
    wanted = [word.strip() for word in (visible or "").split(",") if word.strip()]
    found, chosen = [], []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 6 or not cells[0].isdigit():
            continue
        utilization, used, total = (_number(cell) for cell in cells[3:])
        gpu = GpuUsage(
            int(cells[0]),
            cells[2][:80],
            utilization,
            None if used is None else int(used) << 20,
            None if total is None else int(total) << 20,
        )
        found.append(gpu)
        if any(word == cells[0] or cells[1].startswith(word) for word in wanted):
            chosen.append(gpu)
    return chosen or found


def _number(text: str) -> Optional[float]:
    """A number as nvidia-smi writes it; None for [N/A] and the like."""
    try:
        return float(text)
    except ValueError:
        return None


class GpuQuery:
    """Asks nvidia-smi in a process of its own, which a driver that hangs can hold up without holding up the node."""

    ARGUMENTS = (
        "--query-gpu=index,uuid,name,utilization.gpu,memory.used,memory.total",
        "--format=csv,noheader,nounits",
    )
    TIMEOUT_S = 10.0
    MAX_BYTES = 1 << 16
    """As much as a pipe holds, so that it never waits for us; 128 GPUs are a tenth of it."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self._program = self._find_program()
        self._child: Optional[Child] = None
        self._pipe = -1
        self._kill_at = 0.0

    @property
    def is_available(self) -> bool:
        """Whether there is something to ask."""
        return self._program is not None

    @property
    def is_running(self) -> bool:
        """Whether an answer is waited for."""
        return self._child is not None

    @staticmethod
    def _find_program() -> Optional[str]:
        for folder in os.get_exec_path():
            path = os.path.join(folder, "nvidia-smi")
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def start(self) -> None:
        """Ask."""
        if self._program is None:
            return
        self._pipe, output = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._child = self._children.start(
                "nvidia-smi", [self._program, *self.ARGUMENTS], dict(os.environ), "/", output=output, is_counted=False
            )
        except LauncherError:
            self._program = None
            os.close(self._pipe)
        finally:
            os.close(output)
        self._kill_at = time.monotonic() + self.TIMEOUT_S

    def take(self) -> Optional[List[GpuUsage]]:
        """The answer; None while it is pending. Empty if nvidia-smi failed: it is not run again."""
        child = self._child
        if child is None:
            return []
        if not child.ended:
            if time.monotonic() >= self._kill_at:
                self.stop()
                return []
            return None
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(self._pipe, self.MAX_BYTES)
        os.close(self._pipe)
        self._child = None
        text = data.decode("utf-8", "replace")
        gpus = parse_gpus(text, os.environ.get("CUDA_VISIBLE_DEVICES"))
        if not gpus:
            self._program = None
        return gpus

    def stop(self) -> None:
        """Ask nothing more."""
        self._program = None
        if self._child is not None:
            send(self._child.pid, signal.SIGKILL)
            self._child = None
            os.close(self._pipe)


class ResourceLog:
    """Appends a sample of what the ranks and the node use to a file, seldomer the longer the node runs.

    Some samples also have the folders of TensorBoard events that the ranks write.

    It costs little: at most a two-hundredth of a CPU, and some 2,000 lines in a week. A file that can't be written is no
    reason to end a job.
    """

    INTERVAL_S = 2.0
    GPU_INTERVAL_S = 5.0
    SAMPLES_PER_INTERVAL = 200
    """After so many samples the interval is doubled."""
    MAX_SHARE = 0.005
    FOLDERS_INTERVAL_S = 4.0
    MAX_FOLDERS_INTERVAL_S = 60.0
    """To see what processes have open costs as much as all the rest: it is done seldomer, after a start in which much opens."""

    def __init__(self, files: BundleFiles, path: str, children: Children) -> None:
        self._files = files
        self._folders_interval = self.FOLDERS_INTERVAL_S
        self._folders_at = 0.0
        self._path = path
        self._gpu_query = GpuQuery(children)
        self._interval = self.GPU_INTERVAL_S if self._gpu_query.is_available else self.INTERVAL_S
        self._descriptor: Optional[int] = None
        self._is_line_broken = False
        self._count = 0
        self._next_at = time.monotonic()
        self._sampled_at = 0.0
        self._ticks: Dict[Tuple[int, int], int] = {}
        self._busy: Optional[int] = None
        self._is_off = not os.path.isdir("/proc/self")

    def poll(self, ranks: Mapping[int, int]) -> None:
        """Take a sample if it is time.

        Args:
            ranks: The process ids of the ranks that run.
        """
        if self._is_off:
            return
        now = time.monotonic()
        if self._gpu_query.is_running:
            gpus = self._gpu_query.take()
            if gpus is not None:
                self._sample(ranks, gpus, now)
        elif now >= self._next_at:
            self._next_at = now + self._interval
            if self._gpu_query.is_available:
                self._gpu_query.start()
            else:
                self._sample(ranks, [], now)

    def stop(self) -> None:
        """Take no more samples."""
        self._is_off = True
        self._gpu_query.stop()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _sample(self, ranks: Mapping[int, int], gpus: List[GpuUsage], now: float) -> None:
        began = time.process_time()
        usage, seconds = read_usage(), now - self._sampled_at if self._count else None
        busy, used, total = read_node_usage()
        if self._descriptor is None:
            self._write(self._head(gpus, total))
        document: Dict[str, Any] = {
            "time": round(time.time(), 2),
            "cpu": self._rate(busy, self._busy, seconds),
            "memory": used,
            "ranks": [[rank, *self._rank_usage(pid, usage, seconds)] for rank, pid in ranks.items()],
            "gpus": [[gpu.number, gpu.utilization, gpu.memory] for gpu in gpus],
        }
        if now >= self._folders_at:
            self._folders_at = now + self._folders_interval
            self._folders_interval = min(self._folders_interval * 2, self.MAX_FOLDERS_INTERVAL_S)
            pids = [one for pid in ranks.values() for one in family(pid, usage)]
            document["log_folders"] = find_log_folders(pids)
        self._write(document)
        self._ticks = {(one.pid, one.started): one.ticks for one in usage.values()}
        self._busy, self._sampled_at = busy, now
        self._count += 1
        if self._count % self.SAMPLES_PER_INTERVAL == 0:
            self._interval *= 2
        cost = time.process_time() - began
        self._next_at = max(self._next_at, now + cost / self.MAX_SHARE)

    def _rank_usage(
        self, pid: int, usage: Mapping[int, ProcessUsage], seconds: Optional[float]
    ) -> Tuple[Optional[float], int]:
        """CPUs that a rank and its helpers kept busy since the last sample, and the bytes that they have in memory.

        A page that several of them share counts for each.
        """
        ticks = memory = 0
        for one in family(pid, usage):
            found = usage[one]
            memory += found.memory
            ticks += found.ticks - self._ticks.get((found.pid, found.started), 0)
        return self._rate(ticks, 0, seconds), memory

    @staticmethod
    def _rate(ticks: Optional[int], before: Optional[int], seconds: Optional[float]) -> Optional[float]:
        if ticks is None or before is None or not seconds:
            return None
        return round(max(0.0, (ticks - before) / TICKS_PER_S / seconds), 3)

    @staticmethod
    def _head(gpus: List[GpuUsage], memory: Optional[int]) -> Dict[str, Any]:
        return {
            "format": FORMAT,
            "cpus": os.cpu_count(),
            "cpus_allowed": available_cpus(),
            "memory": memory,
            "gpus": [{"index": gpu.number, "name": gpu.name, "memory": gpu.total_memory} for gpu in gpus],
        }

    def _write(self, document: Mapping[str, Any]) -> None:
        data = json.dumps(document, separators=(",", ":")).encode("utf-8") + b"\n"
        if self._is_line_broken:
            data = b"\n" + data
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND
                self._descriptor = self._files.open(self._path, flags)
            self._is_line_broken = os.write(self._descriptor, data) < len(data)
        except OSError:  # the disk is full: the next sample may fit
            self._is_line_broken = True

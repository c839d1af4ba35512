"""What the machine has to give: processors and memory."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

UNKNOWN_MEMORY_MB = 4096
"""Taken where the system does not say how much memory is free."""


@dataclass(frozen=True, slots=True)
class Machine:
    """`cpus` that this process may use; `memory_mb` that is available without swapping."""

    cpus: int
    memory_mb: int


def this_machine() -> Machine:
    return Machine(cpus=_cpus(), memory_mb=_memory_mb())


def _cpus() -> int:
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _memory_mb() -> int:
    free = _meminfo_mb(Path("/proc/meminfo"))
    if free is None:
        return UNKNOWN_MEMORY_MB
    # In a container the limit of its group holds, not the memory of the host.
    limit = _number(Path("/sys/fs/cgroup/memory.max"))
    used = _number(Path("/sys/fs/cgroup/memory.current"))
    if limit is not None and used is not None:
        free = min(free, max(0, limit - used) >> 20)
    return free


def _meminfo_mb(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" is no number: there is no limit
        return None

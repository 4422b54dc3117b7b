"""Limits processes of this machine to the resources of a small board: a control group each (version 1 or 2)."""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.backends.docker.board_classes import Limits
from testbed.errors import MissingCapability

ROOT = Path("/sys/fs/cgroup")


class SmallMachines:
    """Groups for processes; use as a context manager, which takes the groups away once their processes are gone."""

    def __init__(self, limits: Limits, root: Path = ROOT) -> None:
        self._limits = limits
        self._root = root
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for group in self._made:
            with suppress(OSError):
                group.rmdir()

    def hold(self, pid: int) -> None:
        """Limit this process from now on to a small board of its own."""
        engine = self._limits.for_engine()
        memory = str(engine["mem_limit"])
        period, quota = str(engine.get("cpu_period", 100_000)), str(engine.get("cpu_quota", -1))
        try:
            if (self._root / "cgroup.controllers").exists():
                share = f"{quota if int(quota) > 0 else 'max'} {period}"
                self._join(self._root, pid, {"cpu.max": share, "memory.max": memory})
            else:
                times = {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota}
                self._join(self._root / "cpu", pid, times)
                self._join(self._root / "memory", pid, {"memory.limit_in_bytes": memory})
        except OSError as problem:
            raise MissingCapability(
                f"no control group can be made: {problem}",
                "run as root, with the controllers cpu and memory",
            ) from problem

    def _join(self, root: Path, pid: int, settings: dict[str, str]) -> None:
        group = root / f"testbed-{os.getpid()}-{pid}"
        group.mkdir()
        self._made.append(group)
        for name, value in settings.items():
            (group / name).write_text(value)
        (group / "cgroup.procs").write_text(str(pid))

"""Classes of boards: how much memory they have, how fast one of their cores is, and the limits that follow. Pure.

`docs/howto/images.md` has the table with its sources. Speed is counted in repetitions a second of `core_speed`:
one figure is known for a board (the Pi 4), the others follow from it by a second benchmark that was run on all of them.
"""

from dataclasses import dataclass
from typing import Any

from testbed.backends.docker.core_speed import BENCHMARK_REPETITIONS

PI_4_BENCHMARK_S = 79.216  # cpu-benchmark's README: Raspberry Pi 4, Ubuntu 22.04.3 (Python 3.10)
PI_4_MIPS = 1661
PERIOD_US = (
    10_000  # the share holds within each period; the engine's default of 100 ms is too coarse
)
LEAST_QUOTA_US = 1_000  # the kernel's
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Board:
    """A class of boards. `mips`: 7-zip 16.02's rating of one thread, from the results of sbc-bench."""

    memory: int  # bytes
    cores: int
    mips: int
    platform: str  # the nearest one that a topology can ask for

    @property
    def speed(self) -> float:
        """Repetitions of `core_speed` a second on one core."""
        return BENCHMARK_REPETITIONS / PI_4_BENCHMARK_S * self.mips / PI_4_MIPS


BOARDS = {
    "pi-zero": Board(512 * MIB, 1, 463, "linux/arm/v7"),  # 1 GHz ARM1176: really v6
    "pi-zero-2w": Board(512 * MIB, 4, 838, "linux/arm64"),  # 1 GHz Cortex-A53
    "pi-2": Board(1024 * MIB, 4, 620, "linux/arm/v7"),  # 0.9 GHz Cortex-A7
    "pi-3": Board(1024 * MIB, 4, 1007, "linux/arm64"),  # 1.2 GHz Cortex-A53
    "pi-4": Board(4096 * MIB, 4, PI_4_MIPS, "linux/arm64"),  # 1.5 GHz Cortex-A72
    "pi-5": Board(4096 * MIB, 4, 3196, "linux/arm64"),  # 2.4 GHz Cortex-A76
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a node of a class here. `share`: of one core of this machine; None if that core is no faster."""

    memory: int
    share: float | None
    slower: float = 1.0  # the reached part of the board's speed, if this machine is slower

    def for_engine(self) -> dict[str, Any]:
        """The limits as arguments of a container. Swap does not add memory, as a board's card does not either."""
        limits = {"mem_limit": self.memory, "memswap_limit": self.memory}
        if self.share is None:
            return limits
        period = max(PERIOD_US, round(LEAST_QUOTA_US / self.share))
        return {
            **limits,
            "cpu_period": period,
            "cpu_quota": max(LEAST_QUOTA_US, round(self.share * period)),
        }

    def in_words(self) -> str:
        """The limits as text for the user."""
        memory = f"{self.memory // MIB} MiB"
        if self.share is not None:
            return f"{self.share:.2f} of a core, {memory}"
        if self.slower > 0.95:
            return f"a whole core, {memory}"
        return f"a whole core, which is only {self.slower:.2f} of the board's, {memory}"


def limits(board: Board, speed_here: float) -> Limits:
    """The limits of one node on a machine (or an emulated processor) whose cores have this speed.

    A node is one process with one busy thread, so the limit is what one core of the board can do, not all of them.
    """
    share = board.speed / speed_here
    if share < 1:
        return Limits(board.memory, share)
    return Limits(board.memory, None, 1 / share)

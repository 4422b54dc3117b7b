"""Memory of containers, from the kernel's statistics of each process: PSS, in which shared pages count in parts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from testbed.errors import TestbedError

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes, averaged over all containers, except `largest`."""

    node: float  # the node's process
    shim: float  # the engine's process beside it
    largest: float  # of the nodes' processes
    largest_name: str

    @property
    def container(self) -> float:
        """Bytes of node and shim."""
        return self.node + self.shim

    def in_words(self) -> str:
        """The result as a sentence."""
        return (
            f"a node {self.node / MIB:.1f} MiB, its shim {self.shim / MIB:.1f} MiB; "
            f"the largest node ({self.largest_name}) {self.largest / MIB:.1f} MiB"
        )


def memory_of(pids: Mapping[str, int]) -> Memory:
    """The memory of the containers with these first processes, whose parents are the shims."""
    nodes = {name: pss(pid) for name, pid in pids.items()}
    largest = max(nodes, key=lambda name: nodes[name])
    shims = [pss(parent(pid)) for pid in pids.values()]
    return Memory(mean(nodes.values()), mean(shims), nodes[largest], largest)


def pss(pid: int) -> int:
    """The proportional set size in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise TestbedError(f"the kernel does not say how much memory process {pid} has")


def parent(pid: int) -> int:
    """The number of the process that started it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


# Processor time of other processes, to the nanosecond: all their threads, also those that have ended.


_OF_A_PROCESS = 2  # what Linux counts: time on a processor, by the scheduler's clock


def processor_s(pid: int) -> float:
    """Processor time so far. The number of a process' clock is made of its pid (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | _OF_A_PROCESS)

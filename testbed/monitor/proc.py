"""What the kernel tells of the machine, as numbers: the texts of /proc in, values out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ticks:
    """Time of all processors together since the machine started, in the kernel's ticks."""

    total: int
    idle: int  # also while waiting for a disk: a process that wants the processor gets it
    stolen: int  # wanted, but the host of this virtual machine gave it to others


def ticks(stat: bytes) -> Ticks | None:
    """From /proc/stat (proc(5)): user nice system idle iowait irq softirq steal, then guests, which are in user."""
    first = stat.partition(b"\n")[0].split()
    if len(first) < 9 or first[0] != b"cpu":
        return None
    numbers = [int(word) for word in first[1:9]]
    return Ticks(sum(numbers), numbers[3] + numbers[4], numbers[7])


def running(loadavg: bytes) -> int | None:
    """Processes that run or want to, from /proc/loadavg: `0.20 0.18 0.12 2/80 11206`."""
    words = loadavg.split()
    return int(words[3].partition(b"/")[0]) if len(words) > 3 else None


def stalled_us(pressure: bytes) -> int | None:
    """For how long at least one process waited for this resource, since the machine started (/proc/pressure)."""
    for line in pressure.splitlines():
        if line.startswith(b"some "):
            return number_after(line, b"total=")
    return None


def memory_bytes(meminfo: bytes, name: bytes) -> int | None:
    """A line of /proc/meminfo: `MemAvailable:   23907604 kB`."""
    kib = named(meminfo, name + b":")
    return None if kib is None else kib * 1024


def named(text: bytes, name: bytes) -> int | None:
    """The number in the line `name number ...`."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name:
            return int(words[1])
    return None


def number_after(text: bytes, mark: bytes) -> int | None:
    """The number that follows the mark."""
    _, found, rest = text.partition(mark)
    return int(rest.split()[0]) if found and rest.split() else None

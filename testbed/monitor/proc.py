"""The kernel's statistics of the machine, as numbers: /proc, and the processor limit of a container."""

from dataclasses import dataclass
from pathlib import Path


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


# The limit that a container sets to the processor time of all in it, and how much of it was used.


CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Used:
    """Of the group of control that this process sees as its top, since it was made."""

    processor_ns: int
    throttled_ns: int  # held back although a processor was free


@dataclass(frozen=True, slots=True)
class Limit:
    """So many processors' time, no more."""

    cores: float
    top: Path
    second_version: bool

    def used(self) -> Used | None:
        """So far; None if the kernel does not report it."""
        try:
            if self.second_version:
                stat = (self.top / "cpu.stat").read_bytes()
                usage, throttled = named(stat, b"usage_usec"), named(stat, b"throttled_usec")
                return None if usage is None else Used(usage * 1000, (throttled or 0) * 1000)
            usage = int((self.top / "cpuacct" / "cpuacct.usage").read_bytes())
            stat = (self.top / "cpu" / "cpu.stat").read_bytes()
            return Used(usage, named(stat, b"throttled_time") or 0)
        except (OSError, ValueError):
            return None


def find_limit(cores: int, top: Path = CGROUPS) -> Limit | None:
    """The limit that holds here, if it is less than all of the machine's processors."""
    second = _read(top / "cpu.max").split()  # `200000 100000`, or `max 100000`
    if len(second) == 2:
        quota, period = second
    else:
        quota = _read(top / "cpu" / "cpu.cfs_quota_us").strip()  # -1: none
        period = _read(top / "cpu" / "cpu.cfs_period_us").strip()
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return None
    allowed = int(quota) / int(period)
    return Limit(allowed, top, len(second) == 2) if 0 < allowed < cores else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

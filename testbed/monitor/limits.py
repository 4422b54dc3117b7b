"""The limit that a container sets to the processor time of all in it, and how much of it was used."""

from dataclasses import dataclass
from pathlib import Path

from testbed.monitor.proc import named

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
        """So far; None if the kernel does not tell."""
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

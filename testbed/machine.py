"""What machine a run was made on."""

import os
import platform
from pathlib import Path
from typing import Any


def machine_facts() -> dict[str, Any]:
    """For the manifest: enough to judge numbers from another machine."""
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "load_average": os.getloadavg()[0],
        "tcp_congestion_control": congestion_control(),
    }


def congestion_control() -> str:
    """How this machine's TCP fills a line, and so do new network namespaces: cubic, bbr, ...; or `unknown`."""
    try:
        return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    except OSError:
        return "unknown"


def cpu_model() -> str:
    """The processor's name, or `unknown`."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def memory_bytes() -> int:
    """All memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

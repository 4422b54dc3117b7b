"""`python -m benchmarks.support.peer_tbf PARENT`: links made by hand with `ip` and `tc ... tbf`, measured as ours are.

One question as a JSON line on stdin: `{"profiles": [Profile], "effort": {}}`; the answer on stdout has `results`.
All of it happens in network namespaces of this process, and goes with it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from testbed.errors import TestbedError
from testbed.links.calibration.exchange import Exchange
from testbed.links.calibration.measurement import Effort, full, lanes_for_full
from testbed.links.calibration.probes import probed_directions
from testbed.links.model import queue_bytes, tbf_burst
from testbed.links.namespaces import enter_core, inside, make_network, privileged
from testbed.syscalls import die_with_parent, disable_timer_slack, use_realtime_priority
from testbed.topology.model import Emulator, Profile, Shape

GATEWAY = "198.18.255.254"
NODE_IF = "eth0"  # where the measurement listens


def by_hand(number: int, profile: Profile) -> tuple[str, int, str]:
    """Address, namespace and far interface of a link, made as one would make it in a shell."""
    ns_fd = make_network()
    here, address = f"h{number}", f"198.18.{number // 256}.{number % 256}"
    namespace = f"/proc/{os.getpid()}/fd/{ns_fd}"
    _run("ip", "link", "add", here, "type", "veth", "peer", "name", NODE_IF)
    _run("ip", "link", "set", NODE_IF, "netns", namespace)
    _run("ip", "link", "set", here, "up")
    with inside(ns_fd):
        _run("ip", "address", "add", f"{address}/32", "dev", NODE_IF)
        _run("ip", "link", "set", NODE_IF, "up")
        _run("ip", "route", "add", f"{GATEWAY}/32", "dev", NODE_IF)
        _shape(NODE_IF, profile.up, profile.mtu)
    _run("ip", "route", "add", f"{address}/32", "dev", here)
    _shape(here, profile.down, profile.mtu)
    return address, ns_fd, here


def _shape(ifname: str, shape: Shape, mtu: int) -> None:
    if shape.rate_bps is None:
        return
    burst = tbf_burst(shape.rate_bps, mtu)
    limit = max(queue_bytes(shape, mtu), burst)
    rate = f"{round(shape.rate_bps)}bit"
    command = ["tc", "qdisc", "add", "dev", ifname, "root", "tbf"]
    _run(*command, "rate", rate, "burst", str(burst), "limit", str(limit))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"`{' '.join(command)}`: {done.stderr.strip()}")


def measure(profiles: Sequence[Profile], effort: Effort) -> list[dict[str, Any]]:
    """Measure rates and delays of links made by hand."""
    _run("ip", "address", "add", f"{GATEWAY}/32", "dev", "lo")
    _run("ip", "link", "set", "lo", "up")
    exchange = Exchange(GATEWAY)
    lanes = []
    number = 0
    for profile in profiles:
        names = []
        for _ in range(lanes_for_full(profile, effort)):
            number += 1
            names.append(str(number))
            address, ns_fd, far_if = by_hand(number, profile)
            exchange.open(names[-1], address, ns_fd, far_if)
        lanes.append((profile, tuple(names)))
    found = full(exchange, probed_directions(Emulator.TBF, lanes), effort, lambda _: None)
    return [one.to_json() for one in found]


def main() -> None:
    """Run as a process."""
    die_with_parent(int(sys.argv[1]))
    question = json.loads(sys.stdin.readline())
    profiles = [
        Profile(p["name"], Shape(**p["up"]), Shape(**p["down"]), p["mtu"])
        for p in question["profiles"]
    ]
    enter_core(unprivileged=not privileged())
    disable_timer_slack()
    use_realtime_priority()
    try:
        answer = {"ok": True, "results": measure(profiles, Effort(**question["effort"]))}
    except (TestbedError, OSError) as error:
        answer = {"ok": False, "error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()

"""The peer of the netns backend: Mininet with hosts around one Linux bridge, each on a TCLink with a rate.

Run with the system's Python, which has Debian's package `mininet`, inside namespaces of its own:
`python3 mininet_star.py <file>`. The file lists the hosts: [{"address", "rate_mbit", "command", "control"}].
Says `up` when the network stands (the hosts run nothing but Mininet's own shells). Then runs each host's command,
opens the gates, that of the broker (the first host) first, and says `ready` when all nodes are. Ends at the end of
standard input.
"""

import json
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from mininet.link import TCLink  # type: ignore[import-not-found]
from mininet.log import setLogLevel  # type: ignore[import-not-found]
from mininet.net import Mininet  # type: ignore[import-not-found]
from mininet.nodelib import LinuxBridge  # type: ignore[import-not-found]
from mininet.topo import Topo  # type: ignore[import-not-found]

DESCRIPTORS = 16384  # as Mininet itself asks for
PREFIX_LENGTH = 16
PAUSE_S = 0.05


def main(hosts: list[dict[str, Any]]) -> None:
    """Build, run the nodes, wait, take down."""
    setLogLevel("error")
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    Mininet.inited = True  # else it would raise limits of the whole machine (sysctl)
    topology = Topo()
    switch = topology.addSwitch("s1")
    for number, host in enumerate(hosts):
        name = topology.addHost(f"h{number}", ip=f"{host['address']}/{PREFIX_LENGTH}")
        topology.addLink(name, switch, bw=host["rate_mbit"])
    network = Mininet(topo=topology, switch=LinuxBridge, link=TCLink, controller=None)
    network.start()
    print("up", flush=True)
    processes = [network[f"h{number}"].popen(host["command"]) for number, host in enumerate(hosts)]
    controls = [host["control"] for host in hosts]
    for some in (controls[:1], controls[1:]):
        until_all(some, lambda control: ask(control, "go") is not None)
        until_all(some, lambda control: bool((ask(control, "status") or {}).get("ready")))
    print("ready", flush=True)
    sys.stdin.read()
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait()
    network.stop()


def until_all(controls: list[str], holds: Any) -> None:
    """Ask each node again and again until all of them satisfy the condition."""
    waiting = controls
    while waiting := [control for control in waiting if not holds(control)]:
        time.sleep(PAUSE_S)


def ask(control: str, do: str) -> dict[str, Any] | None:
    """A node's answer; None if it does not listen yet."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(control)
        except OSError:
            return None
        line.sendall(json.dumps({"do": do}).encode() + b"\n")
        with line.makefile("rb") as answers:
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))

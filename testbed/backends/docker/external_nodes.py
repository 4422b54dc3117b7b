"""External nodes, which run programs from other images: their containers, their states and their output."""

import datetime
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker.errors import NotFound
from docker.types import LogConfig, Mount

from testbed.backends.common.base import ExternalState
from testbed.backends.docker.containers import (
    EXTERNAL_ROLE,
    ROLE_LABEL,
    Container,
    lab_containers,
    labels_of,
)
from testbed.backends.docker.engine import LOOK_TIMEOUT_S, engine, engine_errors
from testbed.errors import TestbedError
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import External, Node, Topology

# The output of external nodes, saved in our own log format, also across containers that were replaced.


_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z ")


@engine_errors()
def save_output(container: Container, run: RunPlace) -> None:
    """Save the container's output so far; keep the output of earlier containers of the same node."""
    output = engine(LOOK_TIMEOUT_S).api.logs(container.id, timestamps=True).decode(errors="replace")
    path = run.log(container.node)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes().decode(errors="replace") if path.exists() else ""
    path.write_bytes(continued(before, list(output_lines(container.node, output))).encode())


@engine_errors()
def last_line(container: Container) -> str:
    """The last line that the container has written."""
    output = engine(LOOK_TIMEOUT_S).api.logs(container.id, tail=1).decode(errors="replace")
    return output.strip()


def continued(before: str, lines: Sequence[dict[str, Any]]) -> str:
    """The log with these lines, some of which it may contain already: its older lines stay."""
    if not lines:
        return before
    since = lines[0]["t"]
    older = [line for line in before.split("\n") if _time(line) < since]
    return "".join(f"{line}\n" for line in [*older, *map(json.dumps, lines)])


def _time(line: str) -> float:
    """The time of a log line; infinity if the line is torn."""
    try:
        return int(json.loads(line)["t"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def output_lines(node: str, output: str) -> Iterator[dict[str, Any]]:
    """The stamped output that the engine has stored, as lines of our own log format."""
    for line in output.split("\n"):
        stamp = _STAMP.match(line)
        if stamp is None:
            continue
        moment = datetime.datetime.fromisoformat(f"{stamp[1]}+00:00")
        nanoseconds = int(f"{stamp[2] or '':0<9}"[:9])
        yield {
            "t": int(moment.timestamp()) * 10**9 + nanoseconds,
            "node": node,
            "event": "output",
            "text": line[stamp.end() :].removesuffix("\r"),
        }


# The descriptions of an external node's containers, for the engine, and the files in them.
#
# Any image must work, also one without a shell that could wait at a gate. So a small container of our own, the holder,
# has the network namespace; its link is made, captured and set up; then the program starts inside that namespace.


HOSTS = "/etc/hosts"
_LOGS_KEPT = {"max-size": "20m", "max-file": "1"}


def holder_container(image: str, node: Node, lab: LabPlace, run: RunPlace) -> dict[str, Any]:
    """The container that only holds a network namespace."""
    return {
        "image": image,
        "command": ["sleep", "infinity"],
        "name": f"{run.run}-{node.name}",
        "hostname": node.name,
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "labels": labels_of(node.name, lab, run),
    }


def external_container(
    image: str, node: Node, holder: str, lab: LabPlace, run: RunPlace
) -> dict[str, Any]:
    """The container of the program itself: with the rights that its image expects, but no network outside the lab."""
    external = external_of(node)
    files = _files(lab, node)
    mounts = [
        Mount(inside, str(path), type="bind", read_only=True) for inside, path in files.items()
    ]
    if HOSTS not in files:
        # Writable: some programs write to it.
        mounts.append(Mount(HOSTS, str(_hosts(lab, node)), type="bind"))
    return {
        "image": image,
        "command": list(external.command) or None,
        "name": f"{run.run}-{node.name}-external",
        "network_mode": f"container:{holder}",
        "environment": dict(external.env),
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type=LogConfig.types.JSON, config=_LOGS_KEPT),
        "mounts": mounts,
        "labels": {**labels_of(node.name, lab, run), ROLE_LABEL: EXTERNAL_ROLE},
    }


def write_external_files(lab: LabPlace, node: Node) -> None:
    """Write the files that the topology gives to the external node."""
    contents = dict(external_of(node).files)
    for inside, path in _files(lab, node).items():
        _write(path, contents[inside])


def write_hosts_files(lab: LabPlace, topology: Topology) -> None:
    """Write the hosts file of every external node, with the names of all nodes; running programs see changes."""
    lines = [f"{node.address} {node.name}\n" for node in topology.nodes]
    names = "".join(["127.0.0.1 localhost\n", *lines])
    for node in topology.nodes:
        if node.external:
            _write(_hosts(lab, node), names)


def external_of(node: Node) -> External:
    """What an external node runs."""
    assert node.external is not None, f"{node.name} is no external node"
    return node.external


def _hosts(lab: LabPlace, node: Node) -> Path:
    return lab.node(node.name) / "hosts"


def _files(lab: LabPlace, node: Node) -> dict[str, Path]:
    folder = lab.node(node.name) / "files"
    return {inside: folder / str(n) for n, (inside, _) in enumerate(external_of(node).files)}


def _write(path: Path, content: str) -> None:
    """Write in place, so that a running container sees the new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    path.chmod(0o644)  # the program may run as any user


_PAUSE_S = 0.1
_LISTEN = "0A"  # state of a socket in /proc/net/tcp
# Loopback addresses in /proc/net/tcp: 127.x.x.x, ::1.
_LOOPBACK = re.compile("([0-9A-F]{24})?[0-9A-F]{6}7F|0{24}01000000")


def external_containers(lab: LabPlace) -> list[Container]:
    """The lab's containers that run programs of external nodes."""
    return lab_containers(lab, EXTERNAL_ROLE)


def external_states(lab: LabPlace, topology: Topology) -> dict[str, ExternalState]:
    """The states of all external nodes, from the engine; a program that listens on its node's port is ready.

    Called through `testbed.lab.external_nodes`, so that labs without external nodes do not load the engine's client.
    """
    wanted = {node.name: node.external for node in topology.nodes if node.external}
    found = {container.node: container for container in external_containers(lab)}
    return {name: _state(found.get(name), external.port) for name, external in wanted.items()}


def wait_for_ports(lab: LabPlace, nodes: Sequence[Node], patience_s: float = 20.0) -> None:
    """Wait until each of these programs listens or has ended, up to a limit; a later check reports the others."""
    deadline = time.monotonic() + patience_s
    waiting = {node.name: external_of(node).port for node in nodes}
    while waiting and time.monotonic() < deadline:
        found = {container.node: container for container in external_containers(lab)}
        states = {name: _state(found.get(name), port) for name, port in waiting.items()}
        waiting = {n: p for n, p in waiting.items() if states[n].running and not states[n].ready}
        time.sleep(_PAUSE_S if waiting else 0.0)


def listens(pid: int, port: int) -> bool:
    """Whether a socket in the network namespace of this process listens on this TCP port, not only on loopback."""
    for table in ("tcp", "tcp6"):
        try:
            rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            address, its_port = fields[1].rsplit(":", 1)
            if fields[3] == _LISTEN and int(its_port, 16) == port and not is_loopback(address):
                return True
    return False


def is_loopback(address: str) -> bool:
    """Whether this address, as /proc/net/tcp writes it, can be reached from the same namespace only."""
    return _LOOPBACK.fullmatch(address) is not None


def _state(container: Container | None, port: int | None) -> ExternalState:
    if container is None:
        return ExternalState(False, False, "not started")
    if container.state != "running":
        return ExternalState(False, False, _how_it_ended(container))
    return ExternalState(True, port is None or _listens(container, port), container.status_text)


def _how_it_ended(container: Container) -> str:
    last_output = ""
    with suppress(TestbedError):  # it was removed meanwhile
        last_output = last_line(container)
    return f"{container.status_text}: {last_output}" if last_output else container.status_text


@engine_errors()
def _listens(container: Container, port: int) -> bool:
    try:
        about = engine(LOOK_TIMEOUT_S).api.inspect_container(container.id)
    except NotFound:  # it was removed meanwhile
        return False
    return listens(int(about["State"]["Pid"]), port)

"""Other people's programs as containers: how they fare."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from docker.errors import NotFound

from testbed.backends.base import GuestState
from testbed.backends.containers import GUEST, Box, boxes
from testbed.backends.engine import LOOK_TIMEOUT_S, engine, engine_talk
from testbed.backends.guest_output import last_line
from testbed.backends.guest_recipe import external_of
from testbed.errors import TestbedError
from testbed.places import LabPlace
from testbed.topology.model import Node, Topology

_PAUSE_S = 0.1
_LISTEN = "0A"  # state of a socket in /proc/net/tcp
_LOOPBACK = re.compile(
    "([0-9A-F]{24})?[0-9A-F]{6}7F|0{24}01000000"
)  # its addresses: 127.x.x.x, ::1


def guests_of(lab: LabPlace) -> list[Box]:
    """The lab's containers that run somebody else's program."""
    return boxes(lab, GUEST)


def guest_states(lab: LabPlace, topology: Topology) -> dict[str, GuestState]:
    """All external nodes, asked from the engine; a guest that listens where its node says is ready.

    Called by way of `testbed.lab.guests`, so that labs without guests need not load the engine's client.
    """
    wanted = {node.name: node.external for node in topology.nodes if node.external}
    found = {box.node: box for box in guests_of(lab)}
    return {name: _state(found.get(name), external.port) for name, external in wanted.items()}


def wait_for_ports(lab: LabPlace, nodes: Sequence[Node], patience_s: float = 20.0) -> None:
    """Until each of these guests listens, has ended, or has had time enough; who is not ready is told by others."""
    deadline = time.monotonic() + patience_s
    waiting = {node.name: external_of(node).port for node in nodes}
    while waiting and time.monotonic() < deadline:
        found = {box.node: box for box in guests_of(lab)}
        states = {name: _state(found.get(name), port) for name, port in waiting.items()}
        waiting = {n: p for n, p in waiting.items() if states[n].running and not states[n].ready}
        time.sleep(_PAUSE_S if waiting else 0.0)


def listens(pid: int, port: int) -> bool:
    """Whether somebody listens on this TCP port in the network namespace of this process, and not to itself only."""
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


def _state(guest: Box | None, port: int | None) -> GuestState:
    if guest is None:
        return GuestState(False, False, "not started")
    if guest.state != "running":
        return GuestState(False, False, _how_it_ended(guest))
    return GuestState(True, port is None or _listens(guest, port), guest.words)


def _how_it_ended(guest: Box) -> str:
    said = ""
    with suppress(TestbedError):  # it has gone meanwhile
        said = last_line(guest)
    return f"{guest.words}: {said}" if said else guest.words


@engine_talk()
def _listens(guest: Box, port: int) -> bool:
    try:
        about = engine(LOOK_TIMEOUT_S).api.inspect_container(guest.id)
    except NotFound:  # it has gone meanwhile
        return False
    return listens(int(about["State"]["Pid"]), port)

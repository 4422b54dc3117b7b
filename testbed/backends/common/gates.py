"""Opens the gates of nodes through their control sockets, many at a time."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.control import ControlError, request, request_all
from testbed.places import LabPlace
from testbed.topology.model import Node, NodeKind

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.002, 0.05  # short at first: most nodes are ready soon
_READY_S = 2.0
_READY_PAUSE_S = 0.01
_LOOK_EVERY_S = 1.0  # how often to check whether the nodes still run

RunningNodes = Callable[[], frozenset[str]]
Done = Callable[[str], None]


def open_brokers_first(
    lab: LabPlace, nodes: Sequence[Node], running_nodes: RunningNodes, patience_s: float, done: Done
) -> dict[str, str]:
    """Open the brokers' gates, then the others': a client that finds no broker would wait before it tries again."""
    failed: dict[str, str] = {}
    for brokers in (True, False):
        controls = {
            node.name: lab.node_control(node.name)
            for node in nodes
            if (node.kind is NodeKind.BROKER) is brokers
        }
        failed |= open_gates(controls, running_nodes, patience_s, done)
        if brokers:
            wait_for_ready({n: at for n, at in controls.items() if n not in failed})
    return failed


def open_gates(
    controls: dict[str, Path], running_nodes: RunningNodes, patience_s: float, done: Done
) -> dict[str, str]:
    """Send `go` to each node as soon as it listens; return errors by node.

    `running_nodes` returns the nodes that still run, so that dead ones are not waited for.
    """
    waiting = dict(controls)
    failed: dict[str, str] = {}
    now = time.monotonic()
    deadline, look_at = now + patience_s, now + _LOOK_EVERY_S
    pause_s = _FIRST_PAUSE_S
    while waiting:
        for name in _opened(waiting):
            del waiting[name]
            done(name)
        now = time.monotonic()
        if waiting and now >= look_at:
            look_at = now + _LOOK_EVERY_S
            alive = running_nodes()
            for name in [name for name in waiting if name not in alive]:
                del waiting[name]
                failed[name] = "it has ended"
        if waiting and now > deadline:
            failed.update(dict.fromkeys(waiting, f"no answer after {patience_s:.0f} s"))
            break
        if waiting:
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _LAST_PAUSE_S)
    return failed


def _opened(waiting: dict[str, Path]) -> list[str]:
    return [name for name, control in waiting.items() if _accepts(control, "go")]


def _accepts(control: Path, do: str) -> bool:
    try:
        request(control, {"do": do})
    except ControlError:
        return False
    return True


def wait_for_ready(controls: Mapping[str, Path], patience_s: float = _READY_S) -> None:
    """Wait until each of these nodes is ready, up to a limit; a later check reports nodes that are not."""
    deadline = time.monotonic() + patience_s
    waiting = dict(controls)
    while waiting and time.monotonic() < deadline:
        for name, answer in request_all(waiting, {"do": "status"}).items():
            if answer.get("ready"):
                del waiting[name]
        time.sleep(_READY_PAUSE_S if waiting else 0.0)


def nodes_past_gate(controls: Mapping[str, Path]) -> frozenset[str]:
    """The nodes whose gate is open and that run."""
    answers = request_all(controls, {"do": "status"})
    return frozenset(name for name, answer in answers.items() if answer.get("state") == "running")

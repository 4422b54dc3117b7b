"""Waiting until every node says that it is connected."""

import time
from collections.abc import Collection, Mapping
from itertools import islice

from testbed.backends.base import GuestState
from testbed.control import ControlError, request
from testbed.errors import A_FEW, NodeFailure, few
from testbed.events import Emit, StageAdvanced, StageEnded, StageStarted
from testbed.keeper.client import Keeper
from testbed.keeper.held_process import UNKNOWN
from testbed.lab.guests import guest_states
from testbed.places import LabPlace
from testbed.topology.model import Node, NodeKind, Topology

PATIENCE_S = 60.0
STAGE = "connecting nodes"
_LOOK_EVERY_S = 1.0  # how often it is checked whether the waited-for still live
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_BUSY = 4  # asking hundreds of nodes takes time from those that connect: the pause is so many times as long


def wait_until_ready(
    place: LabPlace,
    topology: Topology,
    emit: Emit,
    patience_s: float = PATIENCE_S,
    without: Collection[str] = (),
) -> None:
    """Ask all nodes (`without`: but these) until each is ready; NodeFailure names those that never were.

    Nobody waits for one that has ended.
    """
    waiting = [
        node
        for node in topology.nodes
        if node.kind is not NodeKind.ROUTER and node.name not in without
    ]
    ended: dict[str, str] = {}
    emit(StageStarted(STAGE, len(waiting)))
    deadline = time.monotonic() + patience_s
    look_at = time.monotonic() + _LOOK_EVERY_S
    while waiting:
        if time.monotonic() > look_at:
            look_at = time.monotonic() + _LOOK_EVERY_S
            dead = _dead(place)
            ended |= {node.name: dead[node.name] for node in waiting if node.name in dead}
        guests = guest_states(place, topology) if any(node.external for node in waiting) else {}
        ended |= {n.name: guests[n.name].words for n in waiting if _has_ended(n, guests)}
        waiting = [node for node in waiting if node.name not in ended]
        still, asked_at = [], time.monotonic()
        for node in waiting:
            ready = guests[node.name].ready if node.external else is_ready(place, node.name)
            if ready:
                emit(StageAdvanced(STAGE, detail=node.name))
            else:
                still.append(node)
        waiting = still
        if waiting and time.monotonic() > deadline:
            break
        if waiting:
            asking_s = time.monotonic() - asked_at
            time.sleep(min(_LONGEST_PAUSE_S, max(_PAUSE_S, _BUSY * asking_s)))
    if waiting or ended:
        raise _failure(place, [node.name for node in waiting], ended, patience_s)
    emit(StageEnded(STAGE))


def _has_ended(node: Node, guests: Mapping[str, GuestState]) -> bool:
    return bool(node.external) and not guests[node.name].running


def _dead(place: LabPlace) -> dict[str, str]:
    """Nodes whose processes have ended, and how; none if there is no keeper to be asked."""
    keeper = Keeper.connect(place)
    if keeper is None:
        return {}
    nodes = keeper.status()["nodes"].items()
    return {name: _how(node["exit_code"]) for name, node in nodes if not node["running"]}


def _how(exit_code: int | None) -> str:
    known = exit_code not in (None, UNKNOWN)
    return f"exit code {exit_code}" if known else "its process is gone"


def _failure(
    place: LabPlace, silent: list[str], ended: Mapping[str, str], patience_s: float
) -> NodeFailure:
    told = [f"{name} has ended ({words})" for name, words in islice(ended.items(), A_FEW)]
    if len(ended) > A_FEW:
        told.append(f"{len(ended) - A_FEW} more have ended")
    if silent:
        told.append(f"not connected after {patience_s:.0f} s: {few(silent)}")
    names = [*ended, *silent]
    hint = f"see `testbed logs {place.name} {names[0]}`; `testbed up` again retries"
    return NodeFailure("; ".join(told), hint, names)


def is_ready(place: LabPlace, node: str) -> bool:
    """Whether the node answers and is connected."""
    try:
        return bool(request(place.node_control(node), {"do": "status"})["ready"])
    except ControlError:
        return False

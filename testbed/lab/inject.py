"""One publication by hand."""

import time
from collections.abc import Mapping

from nodes.protocol.interests import OPENING, is_plain
from nodes.protocol.space import AREA
from nodes.protocol.wire import MAX_PAYLOAD_BYTES
from testbed.control import request
from testbed.errors import InputError
from testbed.lab.run_record import INJECTED
from testbed.lab.status import refuse_dead_lab
from testbed.places import LabPlace
from testbed.progress import Emit, Warned, ignore
from testbed.records import LabRecord, did_you_mean, extend_manifest, read_manifest
from testbed.topology.model import NodeKind, Topology, from_json
from testbed.topology.names import topic_problem
from testbed.topology.units import SIZE


def inject(
    record: LabRecord,
    node: str,
    topic: str,
    priority: int,
    size: int,
    emit: Emit = ignore,
    values: Mapping[str, float] | None = None,
) -> str:
    """Let a sensor publish now, at its place, and return the message's id. Warn if no interest matches."""
    topology = from_json(read_manifest(record.run_place)["topology"])
    sensors = [sensor.name for sensor in topology.of_kind(NodeKind.SENSOR)]
    if node not in sensors:
        raise InputError(
            f"no sensor named {node!r} in lab {record.name}", did_you_mean(node, sensors)
        )
    if problem := topic_problem(topic):
        raise InputError(*problem)
    if not is_plain(topic):
        raise InputError(f"no topic begins with {OPENING}", "write one like alerts")
    _check_values(topology, values or {})
    if size > MAX_PAYLOAD_BYTES:
        raise InputError(f"a message has at most {SIZE.write(MAX_PAYLOAD_BYTES)}", "send several")
    refuse_dead_lab(record)
    place, wanted = topology.place(node, values or {}), sorted(topology.subscriptions)
    if topic not in wanted:
        emit(Warned(f"no node subscribes to {topic!r}; {did_you_mean(topic, wanted)}"))
    elif not topology.receivers(topic, priority, place):
        emit(Warned(f"nobody wants {topic!r} of level {priority} from where {node} is"))
    question = {
        "do": "publish",
        "topic": topic,
        "priority": priority,
        "size": size,
        "place": place,
    }
    now_ns = time.time_ns()  # not later than the node's own time of it
    identity = str(request(LabPlace.of(record.name).node_control(node), question)["id"])
    what = {name: value for name, value in question.items() if name != "do"}
    entry = {"t_ns": now_ns, "node": node, **what, "id": identity}
    extend_manifest(record.run_place, **{INJECTED: [entry]})
    return identity


def _check_values(topology: Topology, values: Mapping[str, float]) -> None:
    known = {one.name: one for one in topology.space if one.name not in AREA}
    for name, value in values.items():
        if name not in known:
            raise InputError(
                f"the lab has no dimension {name!r}",
                did_you_mean(name, list(known)) if known else "`space:` in its file names them",
            )
        if not known[name].holds(value):
            low, high = known[name].low, known[name].high
            raise InputError(
                f"{name} goes from {low:g} to {high:g}, not {value:g}", "choose a value in between"
            )

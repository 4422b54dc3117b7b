"""One publication by hand."""

from nodes.wire import MAX_PAYLOAD_BYTES
from testbed.control import request
from testbed.errors import InputError
from testbed.events import Emit, Warned, ignore
from testbed.lab.health import refuse_the_dead
from testbed.places import LabPlace
from testbed.records import LabRecord, did_you_mean, read_manifest
from testbed.scenario import expected_receivers
from testbed.topology.model import NodeKind, from_json
from testbed.topology.names import topic_problem
from testbed.topology.units import SIZE


def inject(
    record: LabRecord, node: str, topic: str, priority: int, size: int, emit: Emit = ignore
) -> str:
    """Let a sensor publish now; returns the message's id. Warns if nobody has subscribed to the topic."""
    topology = from_json(read_manifest(record.run_place)["topology"])
    sensors = [sensor.name for sensor in topology.of_kind(NodeKind.SENSOR)]
    if node not in sensors:
        raise InputError(
            f"no sensor named {node!r} in lab {record.name}", did_you_mean(node, sensors)
        )
    if problem := topic_problem(topic):
        raise InputError(*problem)
    if size > MAX_PAYLOAD_BYTES:
        raise InputError(f"a message has at most {SIZE.write(MAX_PAYLOAD_BYTES)}", "send several")
    refuse_the_dead(record)
    if not expected_receivers(topology, topic):
        wanted = sorted({each for node in topology.nodes for each in node.topics})
        emit(Warned(f"nobody subscribes to {topic!r}; {did_you_mean(topic, wanted)}"))
    question = {"do": "publish", "topic": topic, "priority": priority, "size": size}
    return str(request(LabPlace.of(record.name).node_control(node), question)["id"])

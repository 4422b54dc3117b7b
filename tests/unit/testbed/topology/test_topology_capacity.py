"""Every message of a scenario fits into an empty queue, or the file is refused."""

import pytest

from nodes.protocol.wire import HEADER_SIZE, MAX_PAYLOAD_BYTES, Kind, Message, encode
from testbed.topology import TopologyErrors, load_text


def lab(size: int, delivery: str = "") -> str:
    return f"""
nodes: {{hub: {{kind: broker}}, gauge: {{kind: sensor}}}}
delivery: {{method: fifo{delivery}}}
scenario:
  duration: 1s
  events: [{{at: 0s, publish: {{from: gauge, topic: "高知/{{node}}", size: {size}B}}}}]
"""


def test_the_required_capacity_is_that_of_the_encoded_message() -> None:
    needed = len(encode(Message(Kind.PUBLISH, topic="高知/gauge", payload=bytes(500))))
    assert load_text(lab(500, f", limit_bytes: {needed}"), "x")
    with pytest.raises(TopologyErrors, match=f"allow at least {needed}"):
        load_text(lab(500, f", limit_bytes: {needed - 1}"), "x")


def test_the_largest_payload_fits_without_any_parameters() -> None:
    assert load_text(lab(MAX_PAYLOAD_BYTES), "x")
    with pytest.raises(TopologyErrors, match="at most 8MB"):
        load_text(lab(MAX_PAYLOAD_BYTES + 1), "x")


def test_a_small_queue_is_enough_where_nothing_is_published() -> None:
    text = f"nodes: {{hub: {{kind: broker}}}}\ndelivery: {{limit_bytes: {HEADER_SIZE}}}\n"
    assert load_text(text, "x")

"""MQTT publications are matched with their receptions, in captures made by hand."""

import pyarrow as pa

from analysis.metrics import mqtt


def packet(link: str, way: tuple[str, str], at: int, **more: object) -> dict[str, object]:
    """A PUBLISH on a link, as `mqtt` has it."""
    src, dst = way
    message = {
        "link": link,
        "direction": "up" if link == src else "down",
        "src": src,
        "dst": dst,
        "kind": "PUBLISH",
        "topic": "rain",
        "digest": "3 mm",
        "qos": 1,
        "retain": False,
        "dup": False,
        "packet_id": 1,
        "payload_bytes": 4,
        "first_ns": at,
        "last_ns": at,
        "complete": True,
    }
    return {**message, **more}


def paired(packets: list[dict[str, object]]) -> list[tuple[object, ...]]:
    found = mqtt.deliveries(pa.Table.from_pylist(packets, mqtt.SCHEMA))
    assert found.schema == mqtt.DELIVERIES_SCHEMA
    names = ("origin", "sent_first_ns", "receiver", "received_last_ns", "sure")
    rows = found.sort_by([("receiver", "ascending"), ("received_last_ns", "ascending")]).to_pylist()
    return [tuple(row[name] for name in names) for row in rows]


def crossing(src: str, dst: str, sent: int, came: int, **more: object) -> list[dict[str, object]]:
    return [packet(src, (src, dst), sent, **more), packet(dst, (src, dst), came, **more)]


def test_equal_publications_of_several_publishers_are_matched_by_their_order_at_the_broker() -> (
    None
):
    packets = [
        *crossing("slow", "broker", 1, 30),  # sent first, but it arrives second
        *crossing("fast", "broker", 5, 10),
        *crossing("broker", "town", 11, 15, packet_id=7),
        *crossing("broker", "town", 31, 35, packet_id=8),
    ]
    assert paired(packets) == [
        ("fast", 5, "town", 15, True),
        ("slow", 1, "town", 35, True),
    ]


def test_a_repetition_counts_only_where_the_first_copy_did_not_come() -> None:
    packets = [
        *crossing("ridge", "broker", 1, 5),
        *crossing("ridge", "broker", 8, 9, dup=True),  # its acknowledgement was late
        packet("broker", ("broker", "town"), 11),  # cut off before it reached the town
        *crossing("broker", "town", 21, 25, dup=True),
        *crossing("broker", "hall", 11, 14),
        *crossing("broker", "hall", 22, 26, dup=True),
    ]
    assert paired(packets) == [
        ("ridge", 1, "hall", 14, True),
        ("ridge", 1, "town", 25, True),
    ]


def test_a_pair_is_not_sure_where_a_receiver_got_fewer_than_were_sent() -> None:
    packets = [
        packet("broker", ("broker", "ridge"), 0, kind="CONNACK", digest=None),
        *crossing("ridge", "broker", 1, 5, qos=0, packet_id=None),
        *crossing("ridge", "broker", 8, 9, qos=0, packet_id=None),
        *crossing("broker", "town", 11, 14, qos=0, packet_id=None),
    ]
    assert paired(packets) == [("ridge", 1, "town", 14, False)]


def test_a_broker_that_did_not_forward_a_publication_is_not_its_receiver() -> None:
    accepted = packet("broker", ("broker", "ridge"), 0, kind="CONNACK", digest=None)
    assert paired([accepted, *crossing("ridge", "broker", 1, 5)]) == []

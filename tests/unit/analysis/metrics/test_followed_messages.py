"""Messages are followed from sightings on links to deliveries; metrics of messages made by hand."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.subscriptions import subscriptions_of
from analysis.metrics import deliveries, hops, messages, publications
from analysis.metrics.deliveries import in_order


def table_of(schema: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def test_a_message_is_followed_through_several_brokers() -> None:
    """origin -> a -> b -> c -> town, with a second copy that reaches c on a longer path."""
    base = {
        "direction": None,
        "kind": "PUBLISH",
        "priority": 5,
        "origin": "origin",
        "id": "1",
        "topic": "x",
    }
    base |= {
        "payload_bytes": 1,
        "published_ns": 0,
        "complete": True,
        "frames": 1,
        "websocket_bytes": 2,
    }
    base |= {"header_bytes": 29, "pieces": 1, "packets": 1, "label_bytes": 0}
    base |= {"flags": 0, "overlay_kind": None, "carried_kind": None}
    way = [("origin", "a"), ("a", "b"), ("b", "c"), ("c", "town"), ("b", "d"), ("d", "c")]
    seen = []
    for number, (src, dst) in enumerate(way):
        up, down = 100 * number + 10, 100 * number + 60
        seen.append(
            {
                **base,
                "link": src,
                "direction": "up",
                "src": src,
                "dst": dst,
                "hops": number + 1,
                "first_ns": up,
                "last_ns": up,
            }
        )
        seen.append(
            {
                **base,
                "link": dst,
                "direction": "down",
                "src": src,
                "dst": dst,
                "hops": number + 1,
                "first_ns": down,
                "last_ns": down,
            }
        )
    crossed = hops.hops(hops.published(pa.Table.from_pylist(seen, messages.SCHEMA)))
    published = table_of(
        publications.SCHEMA,
        ("1", "origin", "x", 5, 1, 0, 0.0, None),
        ("2", "origin", "x", 3, 1, 0, 0.0, [7, 3_000_000_000]),
        ("3", "origin", "x", 2, 1, 0, 0.0, [7, 1]),
    )
    wanted = {"town": ["{5}x"], "absent": ["{5}x", "{1 0-9 b2d05e00-b2d05e00}x", "{2 * *}y"]}
    logged = table_of(publications.RECEPTIONS, ("1", "town", 2, 1))
    dropped = table_of(publications.DROPS, ("1", "b", "x"))
    found = deliveries.deliveries(
        deliveries.Followed(published, crossed, logged, dropped),
        subscriptions_of(wanted),
        ["a", "b", "c", "d"],
    ).to_pylist()
    assert {(row["id"], row["receiver"]) for row in found} == {
        ("1", "town"),
        ("1", "absent"),
        ("2", "absent"),
    }, "nothing else was wanted"
    by_receiver = {row["receiver"]: row for row in found if row["id"] == "1"}
    assert by_receiver["town"]["path"] == ["origin", "a", "b", "c", "town"]
    assert by_receiver["town"]["hops"] == 4
    assert by_receiver["town"]["received_ns"] == 360
    assert (by_receiver["town"]["confirmed"], by_receiver["absent"]["confirmed"]) == (True, False)
    assert (by_receiver["town"]["handed"], by_receiver["town"]["suppressed"]) == (2, 1)
    assert by_receiver["absent"]["reason"] == "not forwarded by d"


FLOWS = st.lists(
    st.tuples(
        st.sampled_from(["town", "hall"]),  # receiver
        st.sampled_from([1, 5]),  # level
        st.integers(0, 8),  # published
        st.none() | st.integers(0, 20),  # received
    ),
    max_size=25,
)


@given(FLOWS)
def test_a_delivery_is_out_of_order_if_a_later_publication_of_its_flow_arrived_before(
    rows: list[tuple[str, int, int, int | None]],
) -> None:
    names = ("receiver", "priority", "published_ns", "received_ns")
    known = [
        {"origin": "gauge", "topic": "slope", **dict(zip(names, row, strict=True))} for row in rows
    ]
    columns = [deliveries.SCHEMA.field(name) for name in (*deliveries.FLOW, *names[2:])]
    found = in_order(pa.Table.from_pylist(known, pa.schema(columns)))["out_of_order"].to_pylist()
    expected = [
        None
        if came is None
        else any(
            (other, level) == (receiver, priority)
            and later > published
            and at is not None
            and at < came
            for other, level, later, at in rows
        )
        for receiver, priority, published, came in rows
    ]
    assert found == expected

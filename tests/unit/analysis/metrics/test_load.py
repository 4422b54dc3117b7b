"""Load of nodes: the counts equal those of pandas, and those by hand."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics import load, messages

SECOND = 1_000_000_000
BLANK: dict[str, Any] = {
    "priority": 5, "hops": 1, "id": "1", "topic": "x", "payload_bytes": 1, "published_ns": 0, "frames": 1,
    "websocket_bytes": 2, "header_bytes": 29, "pieces": 1, "packets": 1, "label_bytes": 0, "flags": 0,
    "overlay_kind": None, "carried_kind": None, "joined": 1,
}  # fmt: skip


def sighting(
    link: str,
    direction: str,
    src: str,
    dst: str,
    at_s: float,
    kind: str = "PUBLISH",
    origin: str = "sensor",
    complete: bool = True,
) -> dict[str, Any]:
    """A message on a link; its last byte is 0.1 s behind its first."""
    first = round(at_s * SECOND)
    return BLANK | {
        "link": link,
        "direction": direction,
        "src": src,
        "dst": dst,
        "kind": kind,
        "origin": origin,
        "complete": complete,
        "first_ns": first,
        "last_ns": first + SECOND // 10,
    }


def crossing(src: str, dst: str, at_s: float, **more: Any) -> list[dict[str, Any]]:
    """The message up on the sender's link, and down on the receiver's."""
    return [
        sighting(src, "up", src, dst, at_s, **more),
        sighting(dst, "down", src, dst, at_s + 0.1, **more),
    ]


HAND_MADE = [
    *crossing("sensor", "a", 10.0),
    *crossing("a", "b", 10.3),
    *crossing("b", "town", 10.5),
    *crossing("sensor", "a", 10.85),  # leaves in one second, is whole in the next
    *crossing("a", "b", 11.5, kind="HEARTBEAT", origin=None),
    sighting("town", "down", "b", "town", 11.0, complete=False),  # its end never arrived
    sighting("router", "up", "sensor", "a", 10.0),  # at a router, not at an end of its path
    *crossing("sensor", "a", 9.0),  # before the measured time
    *crossing("sensor", "a", 13.0),  # after the measured time
]
COUNTED = {  # node, second: received, sent, publications received, forwarded
    ("sensor", 0): (0, 2, 0, 0),
    ("a", 0): (1, 1, 1, 1),
    ("b", 0): (1, 1, 1, 1),
    ("town", 0): (1, 0, 1, 0),
    ("a", 1): (1, 1, 1, 0),
    ("b", 1): (1, 0, 0, 0),
}


def load_of(
    rows: list[dict[str, Any]],
    begin_ns: int,
    end_ns: int,
    unit_s: float = 1.0,
    beta: float = 1.0,
    cut: int = 0,
) -> list[dict[str, Any]]:
    """The load of these messages, counted in two parts."""
    parts = [pa.Table.from_pylist(part, messages.SCHEMA) for part in (rows[:cut], rows[cut:])]
    counts = [load.count_load(part, begin_ns, end_ns, unit_s) for part in parts]
    found = load.load(pa.concat_tables(counts), beta=beta)
    assert found.schema == load.SCHEMA
    return list(found.to_pylist())


def counted(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, ...]]:
    return {(row["node"], row["unit"]): tuple(row[name] for name in load.COUNTED) for row in rows}


def test_a_run_made_by_hand_is_counted_as_by_hand() -> None:
    found = load_of(HAND_MADE, 10 * SECOND, 12 * SECOND)
    assert counted(found) == COUNTED
    assert {row["load"] for row in found} == {1.0, 2.0}
    weighed = load_of(HAND_MADE, 10 * SECOND, 12 * SECOND, beta=0.5)
    assert {(row["node"], row["unit"]): row["load"] for row in weighed}["sensor", 0] == 1.0


def test_publications_that_travel_joined_are_one_message() -> None:
    three = [
        row | {"id": str(n), "joined": 3} for n in range(3) for row in crossing("a", "b", 10.0)
    ]
    found = load_of([*three, *crossing("a", "b", 10.5)], 10 * SECOND, 12 * SECOND)
    assert counted(found) == {("a", 0): (0, 2, 0, 4), ("b", 0): (2, 0, 4, 0)}


def by_pandas(
    rows: list[dict[str, Any]], begin_ns: int, end_ns: int, unit_ns: int
) -> dict[tuple[str, int], tuple[int, ...]]:
    """The same counts by pandas, one node and one direction after the other."""
    frame = pd.DataFrame(rows)
    parts = []
    for end, direction, moment in (("src", "up", "first_ns"), ("dst", "down", "last_ns")):
        own = frame[(frame.direction == direction) & (frame.link == frame[end])]
        if direction == "down":
            own = own[own.complete]
        own = own[(own[moment] >= begin_ns) & (own[moment] <= end_ns)]
        publication = own.kind == "PUBLISH"
        sent = direction == "up"
        parts.append(
            pd.DataFrame(
                {
                    "node": own.link,
                    "unit": ((own[moment] - begin_ns) // unit_ns).clip(
                        upper=max(0, -(-(end_ns - begin_ns) // unit_ns) - 1)
                    ),
                    "received": int(not sent),
                    "sent": int(sent),
                    "publications_received": 0 if sent else publication.astype(int),
                    "forwarded": (publication & (own.origin != own.link)).astype(int) * sent,
                }
            )
        )
    sums = pd.concat(parts).groupby(["node", "unit"]).sum()
    return {
        place: tuple(int(n) for n in row)
        for place, row in zip(sums.index, sums.to_numpy(), strict=True)
    }


NODES = ("sensor", "a", "b", "town")
sightings = st.builds(
    sighting,
    link=st.sampled_from((*NODES, "router")),
    direction=st.sampled_from(("up", "down")),
    src=st.sampled_from(NODES),
    dst=st.sampled_from(NODES),
    at_s=st.integers(0, 60).map(lambda tenths: 9 + tenths / 10),
    kind=st.sampled_from(("PUBLISH", "HEARTBEAT")),
    origin=st.sampled_from(NODES),
    complete=st.booleans(),
)


@given(
    st.lists(sightings, min_size=1, max_size=60),
    st.sampled_from((0.5, 1.0, 7.0)),
    st.integers(0, 60),
)
def test_the_load_equals_that_of_pandas(
    rows: list[dict[str, Any]], unit_s: float, cut: int
) -> None:
    found = load_of(rows, 10 * SECOND, 14 * SECOND, unit_s, cut=cut)
    assert counted(found) == by_pandas(rows, 10 * SECOND, 14 * SECOND, round(unit_s * SECOND))


def test_nodes_without_any_load_are_spread_as_well() -> None:
    idle = {"received": 0, "sent": 0, "publications_received": 0, "forwarded": 0}
    none = {name: {**idle, "load": 0.0, "momentary": 0.0} for name in "ab"}
    found = load.spread(none, units=10.0)
    assert (found["fairness"], found["correlation"], found["per_unit"]) == (None, None, 0.0)
    one = {**none, "a": {**idle, "load": 5.0, "momentary": 2.0}}
    assert load.spread(one, units=None)["fairness"] == 0.5
    assert load.spread({}, units=None)["largest"] is None

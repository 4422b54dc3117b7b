"""Why a delivery took its time: its hops, what crossed each link before it, the disturbances near it, and the cause.

A capture records a packet when it has passed a link. So between the moment at which a message was ready for a hop and
its last byte on a link, everything else that this link carried kept it waiting:

    ready        ready + delays of the links up to this one          last byte of the message on this link
      |  propagation  |         other messages cross this link          |
      +---------------+-------------------------------------------------+

The main cause is chosen in this order: the largest of waiting, transmission and propagation on the whole path; if it is
waiting, the hop with the longest; on this hop a disturbance that lasted a third of the waiting, else retransmission if
it is more than the queue, else the link that was busiest with other messages, else the sending node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.inputs.disturbances import REPAIR, Disturbance, disturbances
from analysis.inputs.link_settings import (
    LinkDirection,
    SettingsOfLinks,
    links_of_hop,
    settings_at,
    settings_of_links,
)
from analysis.inputs.results import table
from analysis.inputs.run_folder import Run
from analysis.metrics import clock_errors, events
from analysis.metrics.delay_parts import PARTS, USUAL_PACKET_BYTES
from analysis.metrics.deliveries import (
    LOST,
    NEVER_SENT,
    Hop,
    Journey,
    brokers_at,
    nodes_in_reason,
)
from analysis.metrics.hops import on_path
from analysis.metrics.repair import BY_LOG
from analysis.metrics.tables import grouped, message_bytes

Array = npt.NDArray[Any]
NEAR_S = 5.0  # a disturbance that ended so long before the publication may still delay it
BLOCKED_SHARE = 1 / 3  # of a hop's waiting: TCP waits up to twice as long as a link was cut
BUSY_SHARE = 1 / 4  # of a hop's queue: with less on its link, the link was not what it waited for


class Cause(StrEnum):
    """What took most of the time."""

    DISTURBANCE = "disturbance"  # a link was cut, or a node was down
    OTHER_MESSAGES = "other messages"  # they crossed a link before it
    NODE = "node"  # it waited in a node, and its link did not carry enough to explain it
    RETRANSMISSION = "retransmission"
    TRANSMISSION = "transmission"
    PROPAGATION = "propagation"
    UNKNOWN = "unknown"  # a hop was not captured on both links
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Others:
    """Messages of one level and topic that crossed a link while the message waited for it."""

    level: int | None  # None: control messages
    topic: str | None
    messages: int
    bytes: int  # of them in this time
    copies: bool = False  # of the message itself, to other receivers


@dataclass(frozen=True, slots=True)
class Crossing:
    """A link of a hop, and what it carried before the message."""

    link: str
    direction: str
    rate_bps: float | None
    from_ns: int  # the earliest moment at which the message could have passed the link
    last_ns: int | None  # its last byte there
    others: tuple[Others, ...]  # the most bytes first
    busy_s: float  # transmission time of the others on this link


@dataclass(frozen=True, slots=True)
class HopTaken:
    """A hop of the message; times and parts are None where it was not captured."""

    number: int
    src: str
    dst: str
    ready_ns: int | None = None
    received_ns: int | None = None
    took_s: float | None = None
    queue_s: float | None = None
    transmission_s: float | None = None
    propagation_s: float | None = None
    retransmission_s: float | None = None
    sent: int = 0  # copies
    repeated: int = 0  # of them marked as repetitions
    blocked_s: float = 0.0  # of its time in which a disturbance stopped it
    disturbance: Disturbance | None = None  # the one of its nodes and links that lasted longest
    former: str | None = None  # the sender's broker when it published; None: it is still `dst`
    crossings: tuple[Crossing, ...] = ()

    @property
    def waited_s(self) -> float:
        return max(self.queue_s or 0.0, 0.0) + (self.retransmission_s or 0.0)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The main cause, and how long it lasted."""

    cause: Cause
    seconds: float | None
    hop: HopTaken | None = None
    crossing: Crossing | None = None
    disturbance: Disturbance | None = None
    elsewhere_s: float = 0.0  # waiting on the other hops


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of one delivery, or of its loss."""

    delivery: Mapping[str, Any]  # its row of `deliveries`
    level_deliveries: int  # expected of its level
    faster: int  # of them
    hops: tuple[HopTaken, ...]  # of a lost message: as far as it was seen
    disturbances: tuple[Disturbance, ...]  # during its journey or shortly before
    conclusion: Conclusion

    @property
    def lost(self) -> bool:
        return bool(self.delivery["status"] == LOST)


@dataclass(frozen=True)
class Evidence:
    """The tables of a run, as far as they concern the deliveries to be explained."""

    manifest: Mapping[str, Any]
    brokers: Sequence[str]
    deliveries: pa.Table  # all
    hops: Sequence[dict[str, Any]]  # of these messages
    messages: pa.Table  # on the links and in the time of these messages
    deaths: Sequence[Mapping[str, Any]] = ()  # rows of `repair`
    connected: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    """Client -> times and brokers of its links."""

    @cached_property
    def settings(self) -> SettingsOfLinks:
        return settings_of_links(self.manifest)

    @cached_property
    def router(self) -> Mapping[str, str | None]:
        return routers(self.manifest)

    @cached_property
    def disturbances(self) -> list[Disturbance]:
        """Those of the manifest, and deaths of brokers that only the logs show."""
        died = [
            Disturbance("died", (row["node"],), row["died_ns"], row["died_ns"], REPAIR, row)
            for row in self.deaths
            if row["known_from"] == BY_LOG
        ]
        return sorted([*disturbances(self.manifest), *died], key=lambda one: one.from_ns)


def routers(manifest: Mapping[str, Any]) -> dict[str, str | None]:
    """The router whose link each node shares."""
    return {node["name"]: node.get("router") for node in manifest["topology"]["nodes"]}


# The choice of deliveries.


COLUMNS = (
    *("id", "receiver", "origin", "topic", "priority", "payload_bytes", "published_ns", "status"),
    *("reason", "hops", "path", "received_ns", "delay_s", "duplicates", *PARTS, "deadline_s"),
    *("late", clock_errors.COLUMN, "observed_s"),
)


def slowest(
    deliveries: pa.Table, count: int, level: int | None = None, receiver: str | None = None
) -> list[dict[str, Any]]:
    """The slowest deliveries that were made: the highest level first, in it the slowest first."""
    made = deliveries.filter(pc.field("delay_s").is_valid())
    if level is not None:
        made = made.filter(pc.field("priority") == level)
    if receiver is not None:
        made = made.filter(pc.field("receiver") == receiver)
    order = [("priority", "descending"), ("delay_s", "descending")]
    order += [(name, "ascending") for name in ("published_ns", "id", "receiver")]
    return _rows(made.take(pc.select_k_unstable(made, min(count, made.num_rows), order)))


def of_message(deliveries: pa.Table, identity: str) -> list[dict[str, Any]]:
    """The deliveries of a message: the lost ones first, then the slowest."""
    rows = _rows(deliveries.filter(pc.field("id") == identity))
    return sorted(rows, key=lambda row: (row["status"] != LOST, -(row["delay_s"] or 0.0)))


def _rows(deliveries: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deliveries.select(
        [name for name in COLUMNS if name in deliveries.column_names]
    ).to_pylist()
    return found


# Reading.


MESSAGE_COLUMNS = [
    *("link", "direction", "src", "dst", "kind", "priority", "hops", "id", "topic"),
    *("payload_bytes", "websocket_bytes", "label_bytes", "header_bytes", "packets", "joined"),
    *("first_ns", "last_ns", "complete"),
]


def read_evidence(run: Run, deliveries: pa.Table, picked: Sequence[Mapping[str, Any]]) -> Evidence:
    """The evidence on the picked deliveries, from the tables of an analysed run."""
    ids = pa.array({delivery["id"] for delivery in picked}, pa.string())
    hops = table(run, "hops", where=pc.field("id").isin(ids)).to_pylist()
    router = routers(run.manifest)
    wanted = pc.scalar(False)
    for delivery in picked:
        way, _ = way_of(delivery, hops, run.brokers)
        links = {link for pair in way for link, _ in links_of_hop(*pair, router)}
        wanted |= (
            pc.field("link").isin(pa.array(links, pa.string()))
            & (pc.field("last_ns") >= delivery["published_ns"])
            & (pc.field("first_ns") <= _end_ns(delivery))
        )
    messages = table(run, "messages", MESSAGE_COLUMNS, wanted)
    deaths = table(run, "repair").to_pylist()
    connected = events.connected(events.read_events(run.metrics), run.brokers)
    return Evidence(run.manifest, run.brokers, deliveries, hops, messages, deaths, connected)


def explain_all(run: Run, deliveries: pa.Table, picked: Sequence[Mapping[str, Any]]) -> list[Why]:
    """Explain deliveries of an analysed run."""
    evidence = read_evidence(run, deliveries, picked)
    return [explain(delivery, evidence) for delivery in picked]


# The explanation. Pure.


def explain(delivery: Mapping[str, Any], evidence: Evidence) -> Why:
    """Explain one delivery."""
    near = near_disturbances(delivery, evidence)
    way, number = way_of(delivery, evidence.hops, evidence.brokers)
    rows = on_path({**delivery, "path": _path(way), "hops": number}, evidence.hops)
    first = number - len(way) + 1
    hops = tuple(
        _hop(at, pair, row, delivery, evidence, near)
        for at, (pair, row) in enumerate(zip(way, rows, strict=True), start=first)
    )
    count, faster = _rank(delivery, evidence.deliveries)
    return Why(delivery, count, faster, hops, near, conclude(delivery, hops, near))


def way_of(
    delivery: Mapping[str, Any], hops: Sequence[Mapping[str, Any]], brokers: Sequence[str]
) -> tuple[list[tuple[str, str]], int]:
    """The hops to the receiver and the number of the last; of a lost message as far as it was seen."""
    if delivery["path"]:
        way = list(pairwise(delivery["path"]))
        return way, delivery["hops"] or len(way)
    own = [hop for hop in hops if hop["id"] == delivery["id"]]
    fields = ([hop[name] for name in Hop._fields] for hop in own)
    journey = Journey(delivery["origin"], (Hop(*values) for values in fields), brokers)

    def way_to(node: str) -> list[tuple[str, str]]:
        return list(pairwise(journey.outcome(node).path or ()))

    named = nodes_in_reason(delivery["reason"] or NEVER_SENT)
    broken = [hop for hop in own if _ended_on(hop, named)]
    if broken:
        last = min(broken, key=lambda hop: hop["hops"])
        return [*way_to(last["src"]), (last["src"], last["dst"])], last["hops"]
    way = way_to(named[0]) if named else []
    return way, (journey.outcome(named[0]).hops or len(way)) if way else 0


def _ended_on(hop: Mapping[str, Any], named: Sequence[str]) -> bool:
    """Whether a message whose loss names these nodes was last seen on this hop."""
    ends = (hop["src"], hop["dst"])
    return hop["received_last_ns"] is None and (ends == named or ends[1:] == named)


def _path(way: Sequence[tuple[str, str]]) -> list[str]:
    return [way[0][0], *(dst for _, dst in way)] if way else []


def _end_ns(delivery: Mapping[str, Any]) -> int:
    """When the delivery was made; of a lost one, the end of the observation."""
    if delivery["received_ns"] is not None:
        return int(delivery["received_ns"])
    return int(delivery["published_ns"] + round((delivery.get("observed_s") or 0.0) * 1e9))


def _rank(delivery: Mapping[str, Any], deliveries: pa.Table) -> tuple[int, int]:
    """The number of expected deliveries of the same level, and how many of them were faster."""
    delays = deliveries.filter(pc.field("priority") == delivery["priority"])["delay_s"]
    if delivery["delay_s"] is None:
        return len(delays), len(delays) - delays.null_count
    return len(delays), int(pc.sum(pc.less(delays, delivery["delay_s"])).as_py() or 0)


def near_disturbances(delivery: Mapping[str, Any], evidence: Evidence) -> tuple[Disturbance, ...]:
    """Those of the nodes and links that it met, during its journey or shortly before."""
    begin, end = delivery["published_ns"], _end_ns(delivery)
    way, _ = way_of(delivery, evidence.hops, evidence.brokers)
    pairs = [*way, (delivery["origin"], delivery["receiver"])]
    seen = {hop[side] for hop in evidence.hops for side in ("src", "dst") if _same(hop, delivery)}
    met = _met(pairs, delivery, evidence) | (seen & {*evidence.brokers})
    return tuple(
        one
        for one in evidence.disturbances
        if one.from_ns <= end
        and one.until_ns >= begin - NEAR_S * 1e9
        and _concerns(one, way or pairs, met)
    )


def _met(
    pairs: Iterable[tuple[str, str]], delivery: Mapping[str, Any], evidence: Evidence
) -> set[str]:
    """The nodes of these hops, their routers, and the brokers to which they were connected meanwhile."""
    nodes = {node for pair in pairs for node in pair}
    for node in [*nodes]:
        nodes |= {link for link, _ in links_of_hop(node, "", evidence.router)}
        nodes |= {*brokers_at(evidence.connected.get(node, ()), delivery["published_ns"])}
    return nodes - {""}


def _concerns(one: Disturbance, pairs: Iterable[tuple[str, str]], nodes: set[str]) -> bool:
    if one.kind == "partition":
        return any(one.separates(*pair) for pair in pairs)
    return not nodes.isdisjoint(one.targets)


def _same(hop: Mapping[str, Any], delivery: Mapping[str, Any]) -> bool:
    return bool(hop["id"] == delivery["id"])


def _hop(
    number: int,
    pair: tuple[str, str],
    row: Mapping[str, Any] | None,
    delivery: Mapping[str, Any],
    evidence: Evidence,
    near: Iterable[Disturbance],
) -> HopTaken:
    src, dst = pair
    links = links_of_hop(src, dst, evidence.router)
    if row is None:
        return HopTaken(number, src, dst)
    ready, received = row["ready_ns"], row["received_last_ns"]
    end = _end_ns(delivery) if received is None else received
    begin = delivery["published_ns"] if ready is None else ready
    former = _former_broker(src, delivery, evidence)
    blocking = [one for one in near if one.blocks(src, dst, links)]
    if former is not None and former != dst:
        before = links_of_hop(src, former, evidence.router)
        blocking += [one for one in near if one.blocks(src, former, before)]
    met = _met([pair], delivery, evidence)
    concerned = [one for one in near if one.from_ns < end and _concerns(one, [pair], met)]
    whole = ready is not None and received is not None
    return HopTaken(
        number,
        src,
        dst,
        ready,
        received,
        (received - ready) / 1e9 if whole else None,
        **{part: row[part] for part in PARTS},
        sent=row["sent"],
        repeated=row["repeated"],
        blocked_s=_blocked_s(blocking, begin, end),
        disturbance=max(
            concerned,
            key=lambda one: (one in blocking, _overlap_ns(one, begin, end), one.from_ns),
            default=None,
        ),
        crossings=() if ready is None else tuple(_crossings(row, links, end, evidence)),
        former=None if former == dst else former,
    )


def _former_broker(client: str, delivery: Mapping[str, Any], evidence: Evidence) -> str | None:
    """The broker to which a client was connected when the message was published."""
    connected = evidence.connected.get(client, ())
    before = [broker for at_ns, broker in connected if at_ns <= delivery["published_ns"]]
    return before[-1] if before else None


def _overlap_ns(one: Disturbance, begin_ns: int, end_ns: int) -> int:
    return max(0, min(one.until_ns, end_ns) - max(one.from_ns, begin_ns))


def _blocked_s(blocking: Iterable[Disturbance], begin_ns: int, end_ns: int) -> float:
    """How long at least one of them lasted in this time."""
    total, until = 0, begin_ns
    for one in sorted(blocking, key=lambda one: one.from_ns):
        begin, end = max(one.from_ns, until), min(one.until_ns, end_ns)
        total += max(end - begin, 0)
        until = max(until, end)
    return total / 1e9


def _crossings(
    row: Mapping[str, Any], links: Sequence[LinkDirection], end_ns: int, evidence: Evidence
) -> Iterator[Crossing]:
    delay_s = 0.0
    for link, direction in links:
        history = evidence.settings.get((link, direction))
        known = settings_at(history, row["ready_ns"]) if history else None
        delay_s += known.delay_s if known else 0.0
        from_ns = row["ready_ns"] + round(delay_s * 1e9)
        there = evidence.messages.filter(
            (pc.field("link") == link) & (pc.field("direction") == direction)
        )
        own = (
            (pc.field("id") == row["id"])
            & (pc.field("src") == row["src"])
            & (pc.field("dst") == row["dst"])
        )
        mine = there.filter(own & (pc.field("hops") == row["hops"]) & pc.field("complete"))
        last_ns = pc.min(mine["last_ns"]).as_py()
        others = crossed_between(
            there.filter(~own), from_ns, end_ns if last_ns is None else last_ns, row["id"]
        )
        busy_s = _busy_s(others, known.byte_s if known else 0.0)
        yield Crossing(
            link,
            direction,
            known.rate_bps if known else None,
            from_ns,
            last_ns,
            tuple(one for one, _ in others),
            busy_s,
        )


def _busy_s(others: Iterable[tuple[Others, float]], byte_s: float) -> float:
    return sum(wire_bytes for _, wire_bytes in others) * byte_s


def crossed_between(
    messages: pa.Table, from_ns: int, until_ns: int, identity: str
) -> list[tuple[Others, float]]:
    """The messages on a link in this time by level and topic, and their bytes with those of packets' headers.

    A message of which only a part crossed the link in this time counts with this part of its bytes.
    """
    rows = messages.filter((pc.field("last_ns") >= from_ns) & (pc.field("first_ns") < until_ns))
    if not rows.num_rows or until_ns <= from_ns:
        return []
    first, last = rows["first_ns"].to_numpy(), rows["last_ns"].to_numpy()
    inside = np.minimum(last, until_ns) - np.maximum(first, from_ns)
    share = np.where(last > first, inside / np.maximum(last - first, 1), 1.0)
    size = message_bytes(rows).fill_null(0).to_numpy() * share
    packets = rows["packets"].fill_null(0).to_numpy() / rows["joined"].fill_null(1).to_numpy()
    publication = pc.equal(rows["kind"], "PUBLISH")
    counted = pa.table(
        {
            "level": pc.if_else(publication, rows["priority"], pa.scalar(None, pa.int32())),
            "topic": pc.if_else(publication, rows["topic"], pa.scalar(None, pa.string())),
            "copies": pc.and_(publication, pc.equal(rows["id"], identity)),
            "bytes": size,
            "wire": size + packets * share * USUAL_PACKET_BYTES,
        }
    )
    found = grouped(
        counted,
        ["level", "topic", "copies"],
        messages=("bytes", "count"),
        bytes=("bytes", "sum"),
        wire=("wire", "sum"),
    ).to_pylist()
    found.sort(key=lambda row: (-row["bytes"], row["level"] or 0, row["topic"] or ""))
    return [
        (
            Others(row["level"], row["topic"], row["messages"], round(row["bytes"]), row["copies"]),
            row["wire"],
        )
        for row in found
    ]


def conclude(
    delivery: Mapping[str, Any], hops: Sequence[HopTaken], near: Sequence[Disturbance]
) -> Conclusion:
    """The main cause of the delay, or where the message was lost."""
    if delivery["status"] == LOST:
        last = hops[-1] if hops else None
        latest = max(near, key=lambda one: one.from_ns, default=None)
        return Conclusion(Cause.LOST, None, last, None, (last and last.disturbance) or latest)
    known = [hop for hop in hops if hop.queue_s is not None]
    if len(known) < len(hops) or not hops:
        timed = [hop for hop in hops if hop.took_s is not None]
        longest = max(timed, key=lambda hop: hop.took_s or 0.0, default=None)
        took_s = longest.took_s if longest else None
        return Conclusion(Cause.UNKNOWN, took_s, longest)
    waited = sum(hop.waited_s for hop in hops)
    transmitted = sum(hop.transmission_s or 0.0 for hop in hops)
    propagated = sum(hop.propagation_s or 0.0 for hop in hops)
    most = max(waited, transmitted, propagated)
    if most == propagated:
        return Conclusion(
            Cause.PROPAGATION, propagated, max(hops, key=lambda hop: hop.propagation_s or 0.0)
        )
    if most == transmitted:
        slow = max(hops, key=lambda hop: hop.transmission_s or 0.0)
        return Conclusion(Cause.TRANSMISSION, transmitted, slow, _slowest_link(slow))
    longest = max(hops, key=lambda hop: hop.waited_s)
    return replace(_waiting(longest), elsewhere_s=waited - longest.waited_s)


def _waiting(hop: HopTaken) -> Conclusion:
    """Why it waited on this hop."""
    near = hop.disturbance
    if near is not None and hop.blocked_s >= hop.waited_s * BLOCKED_SHARE:
        return Conclusion(Cause.DISTURBANCE, hop.waited_s, hop, None, near)
    queue_s, again_s = hop.queue_s or 0.0, hop.retransmission_s or 0.0
    if again_s > queue_s:
        return Conclusion(Cause.RETRANSMISSION, again_s, hop, None, near)
    busiest = max(hop.crossings, key=lambda one: one.busy_s, default=None)
    if busiest is not None and busiest.others and busiest.busy_s >= queue_s * BUSY_SHARE:
        return Conclusion(Cause.OTHER_MESSAGES, queue_s, hop, busiest, near)
    return Conclusion(Cause.NODE, queue_s, hop, None, near)


def _slowest_link(hop: HopTaken) -> Crossing | None:
    limited = [one for one in hop.crossings if one.rate_bps]
    return min(limited, key=lambda one: one.rate_bps or 0.0, default=None)

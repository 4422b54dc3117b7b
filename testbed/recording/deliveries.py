"""Which deliveries of a scenario are missing, by the nodes' logs: lost, with the reason, or still under way. Pure.

The analysis counts the same deliveries as expected: each publication in a log, at each receiver that wants it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nodes.overlay.reliability.settings import reliability_settings
from testbed.recording.publications import PUBLISHED
from testbed.topology.model import NodeKind, Topology

RECEIVED, DROPPED = "receive", "drop"  # events of a node's log
MARKS = tuple(f'"{event}"' for event in (PUBLISHED, RECEIVED, DROPPED))  # in the lines that count
NO_LINK = "there is no link"  # how the reason of a drop begins
UNKNOWN = "the report says where"
IsDown = Callable[[str, int], bool]  # whether a node was down at a time, in ns since 1970


class Missing(NamedTuple):
    """A delivery that did not happen."""

    receiver: str
    size: int
    reason: str | None  # of its loss, if a log says it
    custody: bool  # nodes keep it until the receiver acknowledges it


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The deliveries of a scenario."""

    expected: int
    missing: tuple[Missing, ...]

    @property
    def received(self) -> int:
        return self.expected - len(self.missing)


def deliveries_of(
    topology: Topology, logs: Iterable[Mapping[str, Any]], since_ns: int, is_down: IsDown
) -> Deliveries:
    """The deliveries of all publications since this time; `logs`: records of all nodes, in any order."""
    published: dict[str, Mapping[str, Any]] = {}
    received: set[tuple[str, str]] = set()
    drops: dict[str, list[Mapping[str, Any]]] = {}
    for record in logs:
        match record.get("event"):
            case str(event) if event == PUBLISHED and record["t"] >= since_ns:
                published[record["id"]] = record
            case str(event) if event == RECEIVED:
                received.add((record["id"], record["node"]))
            case str(event) if event == DROPPED and "id" in record:
                drops.setdefault(record["id"], []).append(record)
    parameters = dict(topology.overlay.parameters)
    has_custody = reliability_settings(topology.overlay.method, parameters).custody
    brokers = frozenset(node.name for node in topology.of_kind(NodeKind.BROKER))
    expected = 0
    missing = []
    for identity, one in published.items():
        for receiver in _receivers(topology, one):
            expected += 1
            if (identity, receiver) in received:
                continue
            if is_down(receiver, one["t"]):
                reason: str | None = f"{receiver} was down"
            else:
                reason = _reason(receiver, drops.get(identity, ()), brokers)
            custody = has_custody(one["priority"])
            missing.append(Missing(receiver, int(one["size"]), reason, custody))
    return Deliveries(expected, tuple(missing))


def _receivers(topology: Topology, published: Mapping[str, Any]) -> Iterator[str]:
    place = tuple(published.get("place") or ())
    for receiver in topology.receivers(published["topic"], published["priority"], place):
        if receiver != published["node"]:
            yield receiver


def _reason(
    receiver: str, drops: Iterable[Mapping[str, Any]], brokers: frozenset[str]
) -> str | None:
    """Where the message was dropped on its way to the receiver; the analysis uses the same words."""
    found = [drop for drop in drops if drop["peer"] == receiver]
    found = found or [drop for drop in drops if drop["peer"] in brokers]
    if not found:
        return None
    node, why = found[0]["node"], str(found[0].get("reason") or "")
    return f"not forwarded by {node}" if why.startswith(NO_LINK) else f"queue full at {node}"


class UnderWay(NamedTuple):
    """What nodes still had to send at the end."""

    queued: int = 0  # messages
    most_bytes: int = 0  # that the peer of one link had not acknowledged

    def may_hold(self, missing: Missing) -> bool:
        """Whether this message may be among it. Heartbeats are under way at any time, and are small."""
        return bool(self.queued) or self.most_bytes >= max(missing.size, 1)


LONGER = "a longer `settle` waits for messages under way"


def may_come(found: Deliveries, under_way: UnderWay, gone: frozenset[str]) -> tuple[Missing, ...]:
    """The missing deliveries that a longer wait may have brought. `gone`: nodes down or cut off at the end."""
    return tuple(
        one
        for one in found.missing
        if one.receiver not in gone
        and (one.custody or (one.reason is None and under_way.may_hold(one)))
    )


def missing_text(found: Deliveries, coming: Sequence[Missing], settle_s: float) -> str:
    """The sentence on missing deliveries; empty if none is missing. `coming`: those that `may_come`."""
    if not found.missing:
        return ""
    reasons = Counter(one.reason or UNKNOWN for one in found.missing)
    reasons -= Counter(one.reason or UNKNOWN for one in coming)
    count = f"{len(found.missing)} of {found.expected} deliveries"
    missing = f"{count} were still missing {settle_s:g} s after the scenario's end"
    if not reasons:
        return f"{missing}; {LONGER}"
    lost = ", ".join(f"{reason} ({number})" for reason, number in reasons.most_common())
    if not coming:
        return f"{count} {'is' if len(found.missing) == 1 else 'are'} lost: {lost}"
    return (
        f"{missing}: {reasons.total()} lost ({lost}), and {len(coming)} that may be under way; "
        f"{LONGER}"
    )

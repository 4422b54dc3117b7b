"""repair: a row for each broker that died: detection, clients that moved, and time until all deliveries resumed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.inputs.manifest import actions_of
from analysis.inputs.run_folder import Run
from analysis.metrics.events import Event, broker_of, in_order
from analysis.metrics.tables import grouped, schema

# Duration of the repair after a broker's death. Pure: records in, rows out.
#
# A *flow* is the publications of one node on one topic. A publication is *whole* when every receiver has it. A
# flow is repaired when the first publication after the death is whole. The death hit it if a publication that was in
# transit, or made until the repair, was lost, or took more than LATE times as long as any of its level before the
# death. The repair ends when each flow that was hit is repaired.


LATE = 2.0
NOTICING = ("disconnect", "unreachable", "lost-peer")
BY_MANIFEST, BY_LOG = "manifest", "log"
NEVER_NS = 1 << 62


class Death(NamedTuple):
    """A broker that died, and the source of this: manifest or log."""

    node: str
    t_ns: int
    known_from: str


class Published(NamedTuple):
    """The outcome of a publication; `done_ns`: when its last receiver had it, None: never."""

    origin: str
    topic: str
    priority: int
    published_ns: int
    expected: int
    delivered: int
    done_ns: int | None

    @property
    def took_s(self) -> float | None:
        return None if self.done_ns is None else (self.done_ns - self.published_ns) / 1e9


def deaths_in_manifest(manifest: Mapping[str, Any], brokers: Collection[str]) -> list[Death]:
    """The brokers that were killed on purpose, from `actions` in the manifest."""
    return [
        Death(node, int(fault["t_ns"]), BY_MANIFEST)
        for fault in actions_of(manifest)
        if fault["action"] == "crash"
        for node in fault["targets"]
        if node in brokers
    ]


def lives_without_stop(
    events: Iterable[Event], brokers: Collection[str]
) -> list[tuple[str, int, int]]:
    """Lives of brokers that ended without `stop`: (node, last record of its log, next start).

    If no broker's last life ended with `stop`, the whole lab was killed, and no death is reported.
    """
    lives: defaultdict[str, list[list[Event]]] = defaultdict(list)
    for event in in_order(events):
        if event.node in brokers:
            if event.event == "start" or event.node not in lives:
                lives[event.node].append([])
            lives[event.node][-1].append(event)
    orderly = any(_stopped(mine[-1]) for mine in lives.values())
    found = []
    for node, mine in sorted(lives.items()):
        ends = [life[0].t_ns for life in mine[1:]] + [NEVER_NS]
        for life, again_ns in zip(mine, ends, strict=True):
            if not _stopped(life) and (orderly or again_ns < NEVER_NS):
                found.append((node, life[-1].t_ns, again_ns))
    return found


def _stopped(life: Iterable[Event]) -> bool:
    return any(event.event == "stop" for event in life)


def repairs(
    deaths: Sequence[Death],
    publications: Iterable[Published],
    events: Iterable[Event],
    brokers: Collection[str],
) -> list[dict[str, Any]]:
    """A row for each death, in the order of time."""
    flows: defaultdict[tuple[str, str], list[Published]] = defaultdict(list)
    for publication in sorted(publications, key=lambda one: one.published_ns):
        flows[publication.origin, publication.topic].append(publication)
    every = in_order(events)
    return [
        {
            "node": death.node,
            "died_ns": death.t_ns,
            "known_from": death.known_from,
            "noticed_s": _noticed_s(death, every),
            **_moved(death, every, brokers),
            **_healed(death, flows.values()),
        }
        for death in sorted(deaths, key=lambda one: (one.t_ns, one.node))
    ]


def _noticed_s(death: Death, events: Sequence[Event]) -> float | None:
    """Time until the first other node logged the loss."""
    for event in events:
        if event.t_ns >= death.t_ns and event.peer == death.node and event.event in NOTICING:
            return (event.t_ns - death.t_ns) / 1e9
    return None


def _moved(death: Death, events: Sequence[Event], brokers: Collection[str]) -> dict[str, Any]:
    """The broker's clients, how many of them moved to another broker, and when the last one had."""
    attached_to: dict[str, str] = {}
    came: dict[str, int] = {}
    for event in events:
        if (broker := broker_of(event, brokers)) is None:
            continue
        if event.t_ns < death.t_ns:
            attached_to[event.node] = broker
        else:
            came.setdefault(event.node, event.t_ns)
    clients = [node for node, broker in attached_to.items() if broker == death.node]
    moved = [came[node] for node in clients if node in came]
    return {
        "clients": len(clients),
        "moved": len(moved),
        "moved_s": (max(moved) - death.t_ns) / 1e9 if moved else None,
    }


def _healed(death: Death, flows: Iterable[Sequence[Published]]) -> dict[str, Any]:
    """The repair of all flows."""
    every = list(flows)
    usual = _usual(death, every)
    judged = [one for flow in every if (one := _judge(death, flow, usual))]
    hit = [one for one in judged if one.hit]
    healed = [one.whole_ns for one in hit if one.whole_ns is not None]
    repair_s = (max(healed) - death.t_ns) / 1e9 if healed else 0.0
    return {
        "flows": len(judged),
        "flows_hit": len(hit),
        "lost": sum(one.lost for one in hit),
        "healed": len(healed) == len(hit),
        "repair_s": repair_s if len(healed) == len(hit) else None,
    }


def _usual(death: Death, flows: Iterable[Sequence[Published]]) -> dict[int, float]:
    """The slowest publication of each level that was whole before the death."""
    usual: dict[int, float] = {}
    for flow in flows:
        for one in flow:
            if one.done_ns is not None and one.took_s is not None and one.done_ns < death.t_ns:
                usual[one.priority] = max(usual.get(one.priority, 0.0), one.took_s)
    return usual


class _Judged(NamedTuple):
    hit: bool
    lost: int  # deliveries, before the flow was whole again
    whole_ns: int | None


def _judge(death: Death, flow: Sequence[Published], usual: Mapping[int, float]) -> _Judged | None:
    """The repair of one flow; None if nothing was published after the death."""
    if not any(one.published_ns >= death.t_ns for one in flow):
        return None
    touched = [
        one
        for one in flow
        if (one.done_ns is None or one.done_ns >= death.t_ns)
        and one.published_ns >= death.t_ns - usual.get(one.priority, 0.0) * 1e9
    ]
    # A publication in transit may have passed the dead broker already: only later ones prove the repair.
    done = [
        one.done_ns for one in touched if one.done_ns is not None and one.published_ns >= death.t_ns
    ]
    whole_ns = min(done, default=None)
    before = [one for one in touched if whole_ns is None or one.published_ns <= whole_ns]
    lost = [one for one in before if one.done_ns is None]
    late = any(_is_late(one, usual) for one in before)
    return _Judged(bool(lost) or late, sum(one.expected - one.delivered for one in lost), whole_ns)


def _is_late(one: Published, usual: Mapping[int, float]) -> bool:
    return (one.took_s or 0.0) > LATE * usual.get(one.priority, float("inf"))


SCHEMA = schema("""
    node string, died_ns long, known_from string, noticed_s double, clients long, moved long, moved_s double,
    flows long, flows_hit long, lost long, healed boolean, repair_s double
""")
ROW = "a broker that died"
COLUMNS = {
    "node": "broker that died",
    "died_ns": "when",
    "known_from": "`manifest` or `log`",
    "noticed_s": "until the first other node logs that it is gone",
    "clients": "sensors and subscribers that were connected to it",
    "moved": "how many of these are connected to a broker again",
    "moved_s": "until the last of these was connected again",
    "flows": "pairs of publisher and topic that were judged: something was published after the death",
    "flows_hit": "flows that the death delayed or interrupted",
    "lost": "deliveries of these flows that were lost until the repair",
    "healed": "all flows that were hit delivered again before the end",
    "repair_s": "until the last flow that was hit delivered again; 0 if none was hit, null if not healed",
}
NEEDED = ["id", "origin", "topic", "priority", "published_ns", "received_ns"]


def repair(
    run: Run,
    deliveries: pa.Table,
    last_sent_ns: Callable[[str, int], int],
    events: Sequence[Event],
    brokers: Collection[str],
) -> pa.Table:
    """Deaths from the manifest, and lives of brokers that ended without `stop` in their logs.

    `deliveries`: the columns NEEDED. `last_sent_ns`: the time of a node's last captured message before a time.
    """
    deaths = deaths_in_manifest(run.manifest, brokers)
    named = {death.node for death in deaths}
    for node, logged_ns, again_ns in lives_without_stop(events, brokers):
        if node not in named:
            deaths.append(Death(node, max(logged_ns, last_sent_ns(node, again_ns)), BY_LOG))
    rows = repairs(deaths, _publications(deliveries), events, brokers) if deaths else []
    return pa.Table.from_pylist(rows, SCHEMA)


def last_sent_ns(messages: Path, node: str, before_ns: int) -> int:
    """The time of the last captured message from this node before a time; 0 if there is none."""
    mine = (pc.field("direction") == "up") & (pc.field("link") == node) & (pc.field("src") == node)
    rows = pq.read_table(
        messages, columns=["last_ns"], filters=mine & (pc.field("last_ns") < before_ns)
    )
    return pc.max(rows["last_ns"]).as_py() or 0


def _publications(deliveries: pa.Table) -> list[Published]:
    found = grouped(
        deliveries,
        ["id", "origin", "topic", "priority", "published_ns"],
        expected=("id", "count"),
        delivered=("received_ns", "count"),
        done_ns=("received_ns", "max"),
    )
    rows = (Published(**row) for row in found.drop_columns("id").to_pylist())
    return [row if row.delivered == row.expected else row._replace(done_ns=None) for row in rows]

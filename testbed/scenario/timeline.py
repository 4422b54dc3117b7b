"""The timeline of a scenario, for people: when each event begins, how long it lasts, and which nodes it affects."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from testbed.hazards.record import SITES
from testbed.scenario.compile import hazard_histories
from testbed.topology.model import ActionEvent, ActionKind, Arrivals, PublishEvent, Topology
from testbed.topology.publication_times import SECOND_NS, publication_schedule
from testbed.topology.units import DURATION, RATE, SHARE, SIZE, write_frequency


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One event, at one moment or several; times in seconds of the scenario."""

    what: str
    description: str  # of its values
    nodes: tuple[str, ...]
    share: float
    moments_s: tuple[float, ...]  # with `when`: after the trigger fires
    lasts_s: float | None  # each time; None: instant, or without an end
    when: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "what": self.what,
            "description": self.description,
            "nodes": list(self.nodes),
            "share": self.share,
            "moments_s": list(self.moments_s),
            "lasts_s": self.lasts_s,
            "when": self.when,
        }


def timeline_rows(topology: Topology) -> tuple[TimelineRow, ...]:
    """All rows, in the order in which the events begin; events that wait for a trigger come last."""
    found: dict[TimelineRow, list[float]] = {}
    for row in _rows(topology):
        found.setdefault(replace(row, moments_s=()), []).extend(row.moments_s)
    rows = [replace(row, moments_s=tuple(sorted(moments))) for row, moments in found.items()]
    return tuple(sorted(rows, key=lambda row: (row.when is not None, row.moments_s[0])))


def _rows(topology: Topology) -> Iterator[TimelineRow]:
    duration_s = topology.scenario.duration_s
    for each in topology.scenario.publish:
        when = None if each.when is None else each.when.describe()
        lasts_s = _published_for(each, duration_s)
        description = _publication(each)
        yield TimelineRow(
            "publish", description, each.nodes, each.share, (each.at_s,), lasts_s, when
        )
    for event in topology.scenario.actions:
        when = None if event.when is None else event.when.describe()
        yield TimelineRow(
            *(event.kind.value, _description(event), event.nodes, event.share),
            *((event.at_s,), event.for_s, when),
        )
    yield from _hazard(topology)


def _hazard(topology: Topology) -> Iterator[TimelineRow]:
    """One row for the hazard, and one for the failures of its sites."""
    hazard = topology.scenario.hazard
    if hazard is None:
        return
    kind, histories = hazard.kind.value, hazard_histories(topology, hazard)
    sites = f"{len(histories)} {SITES[hazard.kind]}{'s' if len(histories) != 1 else ''}"
    yield TimelineRow(kind, sites, hazard.nodes, 1.0, (0.0,), topology.scenario.duration_s)
    failed = [history for history in histories if history.failed_s is not None]
    if failed:
        moments_s = tuple(sorted(round(history.failed_s or 0.0, 1) for history in failed))
        sensors = {name for history in failed for name in history.site.sensors}
        named = tuple(name for name in hazard.nodes if name in sensors)
        yield TimelineRow(f"{kind}: level 5", "", named, 1.0, moments_s, None)


def _published_for(publish: PublishEvent, duration_s: float) -> float | None:
    """The time from a node's first message to its last; of Poisson arrivals, the time in which they come."""
    schedule = publication_schedule(publish, duration_s)
    times = schedule.ticks()
    if times <= 1 or publish.when is not None:
        return None
    if schedule.poisson:
        return (schedule.end_ns - schedule.begin_ns) / SECOND_NS
    return (schedule.moment(times - 1) - schedule.begin_ns) / SECOND_NS


def _publication(publish: PublishEvent) -> str:
    words = [f"level {publish.priority}", publish.topic, SIZE.write(publish.size)]
    if publish.period_s is not None and publish.arrivals is Arrivals.POISSON:
        words.append(f"about {write_frequency(publish.per_period / publish.period_s)}, Poisson")
    elif publish.period_s is not None:
        each = DURATION.write(publish.period_s)
        words.append(f"every {each}" if publish.per_period == 1 else f"{publish.per_period}/{each}")
    if publish.count is not None:
        most = publish.arrivals is Arrivals.POISSON
        words.append(f"at most {publish.count} times" if most else f"{publish.count} times")
    return " ".join(words)


def _description(event: ActionEvent) -> str:
    describe = _DESCRIPTIONS.get(event.kind)
    return "" if describe is None else describe(dict(event.details))


def _churn(details: dict[str, Any]) -> str:
    leave, join = details["leave_per_s"] * 60, details["join_per_s"] * 60
    return f"{leave:g}/min leave ({details['by']}), {join:g}/min join"


_SHAPE = {
    "rate_bps": ("rate", RATE),
    "delay_s": ("delay", DURATION),
    "jitter_s": ("jitter", DURATION),
    "loss": ("loss", SHARE),
    "queue_bytes": ("queue", SIZE),
    "burst_bytes": ("burst", SIZE),
}


def _link(details: dict[str, Any]) -> str:
    words = [details["profile"]] if details["profile"] else []
    for name, value in details["values"]:
        key, unit = _SHAPE[name]
        words.append(f"{key} {unit.write(value)}")
    if len(details["directions"]) == 1:
        words.append(details["directions"][0])
    return " ".join(words)


_DESCRIPTIONS: dict[ActionKind, Callable[[dict[str, Any]], str]] = {
    ActionKind.MARK: lambda one: str(one["name"]),
    ActionKind.FLAP: lambda one: (
        f"{DURATION.write(one['down_s'])} down, {DURATION.write(one['up_s'])} up"
    ),
    ActionKind.CHURN: _churn,
    ActionKind.LINK: _link,
    ActionKind.PARTITION: lambda one: " | ".join(f"{len(side)} nodes" for side in one["sides"]),
    ActionKind.LOAD: lambda one: f"{RATE.write(one['rate_bps'])} to {one['to']}",
    ActionKind.EXEC: lambda one: " ".join(one["command"]),
}

"""How many publications an event makes, found without making them: absurd numbers are refused before memory is used."""

from testbed.topology.model import Publish

MAX_PUBLICATIONS = 1_000_000
SECOND_NS = 1_000_000_000


def nanoseconds(seconds: float) -> int:
    """Whole nanoseconds."""
    return round(seconds * SECOND_NS)


def end_ns(publish: Publish, duration_s: float) -> int:
    """When the event's last publication must have begun: its own end or the scenario's, whichever is first."""
    end = nanoseconds(duration_s)
    if publish.for_s is not None:
        end = min(end, nanoseconds(publish.at_s + publish.for_s))
    return end


def ticks(publish: Publish, duration_s: float, start_ns: int | None = None) -> int:
    """How often one node publishes that begins at `start_ns` (default: with the event); its end is excluded."""
    start = nanoseconds(publish.at_s) if start_ns is None else start_ns
    end = end_ns(publish, duration_s)
    if publish.period_s is None:
        return 1 if start <= end else 0
    period_ns = max(1, nanoseconds(publish.period_s))
    fitting = max(0, -((start - end) // period_ns))
    return fitting if publish.count is None else min(fitting, publish.count)


def most_publications(publish: Publish, duration_s: float) -> int:
    """No more than this many from all nodes of the event."""
    return len(publish.nodes) * ticks(publish, duration_s)

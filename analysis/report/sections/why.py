"""The report's section on the causes of the longest delays, and the same in lines of text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.formatting import percent, rate, seconds, seconds_with_error, size
from analysis.inputs.disturbances import ACTIONS, LINK_CHANGES, Disturbance
from analysis.inputs.manifest import NEVER_NS
from analysis.inputs.run_folder import Run
from analysis.metrics import clock_errors
from analysis.report.sections.actions import change_rows, fault_rows
from analysis.stats.why import Cause, Crossing, HopTaken, Others, Why, explain_all, slowest

MOST_ROWS = 5  # of the report
MOST_GROUPS = 2  # of other messages in a sentence
MOST_NAMED = 4  # disturbances, and nodes of one
MANY_HOPS = 4  # more of them are shown only if they took a noticeable share
ELSEWHERE = 0.2  # of all waiting: less on other hops is left out of a sentence
NOTICEABLE = 0.05  # of the delay
PARTS = ("queue", "transmission", "propagation", "retransmission")


def view(run: Run, deliveries: pa.Table) -> dict[str, Any] | None:
    """The view of the template: the slowest deliveries of the most urgent level; None if none was made."""
    if not deliveries.num_rows:
        return None
    level = pc.max(deliveries["priority"]).as_py()
    picked = slowest(deliveries, MOST_ROWS, level)
    if not picked:
        return None
    found = explain_all(run, deliveries, picked)
    rows = [{**row_of(why, run.start_ns), "lines": lines(why, run.start_ns)} for why in found]
    return {"level": str(level), "rows": rows}


def row_of(why: Why, start_ns: int) -> dict[str, Any]:
    """A delivery and its cause in one sentence."""
    delivery = why.delivery
    return {
        "id": delivery["id"],
        "origin": delivery["origin"],
        "receiver": delivery["receiver"],
        "level": delivery["priority"],
        "delay": "lost" if why.lost else _delay(why),
        "why": sentence(why, start_ns),
    }


def _delay(why: Why) -> str:
    return seconds_with_error(why.delivery["delay_s"], why.delivery.get(clock_errors.COLUMN) or 0.0)


# The cause in a sentence.


def sentence(why: Why, start_ns: int) -> str:
    """The main cause."""
    end = why.conclusion
    hop, of = end.hop, f"{seconds(end.seconds)} of {_delay(why)}" if end.seconds else ""
    between = f"between {hop.src} and {hop.dst}" if hop else ""
    disturbed = disturbance_text(end.disturbance, start_ns) if end.disturbance else ""
    link = link_text(end.crossing) if end.crossing else ""
    match end.cause:
        case Cause.DISTURBANCE:
            if hop and hop.former:
                between = f"between {hop.src} and {hop.former}, its broker before {hop.dst}"
            text, disturbed = f"It waited {of} {between}: {disturbed}", ""
        case Cause.TRANSMISSION:
            most = f", most on {link}" if link else ""
            return f"Its own {size(why.delivery['payload_bytes'])} took {of}{most}."
        case Cause.PROPAGATION:
            return f"The delay of its links is {of}, most {between}."
        case Cause.OTHER_MESSAGES if end.crossing:
            text = f"It waited {of} for {link}, behind {others_text(end.crossing.others)}"
        case Cause.NODE if hop:
            text = f"It waited {of} in {hop.src}; the links to {hop.dst} carried little else"
        case Cause.RETRANSMISSION:
            text = f"It waited {of} for packets {between} that were lost and sent again"
        case Cause.LOST:
            text = f"It did not arrive: {why.delivery['reason']}"
        case _:
            text = _unknown(why, of, between)
    if end.elsewhere_s >= ELSEWHERE * (end.elsewhere_s + (end.seconds or 0.0)):
        text += f"; on other hops {seconds(end.elsewhere_s)}" if end.elsewhere_s else ""
    return f"{text}; near it: {disturbed}." if disturbed else f"{text}."


def _unknown(why: Why, of: str, between: str) -> str:
    if not of:
        return f"It took {_delay(why)}; the captures do not show where"
    return f"It took {of} {between}; the captures do not show why"


def link_text(crossing: Crossing) -> str:
    """A link with its direction and rate."""
    limit = "no rate limit" if crossing.rate_bps is None else rate(crossing.rate_bps)
    return f"the link of {crossing.link} ({crossing.direction}, {limit})"


def others_text(others: Sequence[Others]) -> str:
    """The messages that a link carried before: the largest groups, and the number of the others."""
    if not others:
        return "nothing"
    texts = [_group_text(one) for one in others[:MOST_GROUPS]]
    if rest := others[MOST_GROUPS:]:
        texts.append(f"{size(sum(one.bytes for one in rest))} of {_counted(rest)} more")
    *before, last = texts
    return f"{', '.join(before)} and {last}" if before else last


def _group_text(one: Others) -> str:
    if one.level is None:
        what = f"{one.messages} control message{'s' if one.messages != 1 else ''}"
    elif one.copies:
        what = f"{one.messages} of its own copies to other receivers"
    else:
        what = f"{_counted([one])} of level {one.level} ({one.topic})"
    return f"{size(one.bytes)} of {what}"


def _counted(groups: Iterable[Others]) -> str:
    count = sum(one.messages for one in groups)
    return f"{count} message{'s' if count != 1 else ''}"


def disturbance_text(one: Disturbance, start_ns: int) -> str:
    """What it was, of which nodes or links, and from when to when of the scenario."""
    named = ", ".join(one.targets[:MOST_NAMED])
    if (more := len(one.targets) - MOST_NAMED) > 0:
        named += f" and {more} more"
    begin = f"{(one.from_ns - start_ns) / 1e9:.1f} s"
    if one.until_ns == NEVER_NS:
        span = f"from {begin} on"
    elif one.until_ns == one.from_ns:
        span = f"at {begin}"
    else:
        span = f"{begin} to {(one.until_ns - start_ns) / 1e9:.1f} s"
    return f"{_what(one, start_ns)} ({named}, {span})"


def _what(one: Disturbance, start_ns: int) -> str:
    """In the words of the report's tables."""
    if one.source == ACTIONS:
        return str(fault_rows({ACTIONS: [one.entry]}, start_ns)[0]["what"])
    if one.source == LINK_CHANGES:
        change = change_rows({LINK_CHANGES: [one.entry]}, start_ns)[0]
        return f"{change.what} to {change.values}" if change.values else change.what
    return one.kind


# The explanation in lines.


def lines(why: Why, start_ns: int) -> list[str]:
    """The delivery, its cause, its hops with what crossed their links before it, and what was near."""
    return [
        _headline(why),
        _published(why, start_ns),
        sentence(why, start_ns),
        *_hop_lines(why),
        f"near it: {_near(why, start_ns)}",
        f"repeated by nodes: {_again(why)}",
    ]


def _headline(why: Why) -> str:
    delivery, count = why.delivery, why.level_deliveries
    head = f"{delivery['id']} to {delivery['receiver']}"
    of = f"{count} deliveries of level {delivery['priority']}"
    if why.lost:
        return f"{head}: lost; {why.faster} of {of} arrived"
    if count == 1:
        return f"{head}: {_delay(why)}, the only delivery of level {delivery['priority']}"
    place = f"slower than {percent(why.faster / count)} of"
    if why.faster in (0, count - 1):
        place = "the slowest of" if why.faster else "the fastest of"
    return f"{head}: {_delay(why)}, {place} {of}"


def _published(why: Why, start_ns: int) -> str:
    delivery = why.delivery
    at = f"{(delivery['published_ns'] - start_ns) / 1e9:.3f} s of the scenario"
    text = f"published by {delivery['origin']} at {at}: {delivery['topic']}, "
    text += size(delivery["payload_bytes"])
    if delivery.get("deadline_s") is not None and not why.lost:
        text += f"; {'after' if delivery['late'] else 'within'} its deadline of "
        text += seconds(delivery["deadline_s"])
    return text


def _hop_lines(why: Why) -> Iterator[str]:
    """A line for each hop, and one for its busiest link if the message waited there."""
    delay_s = why.delivery["delay_s"] or 0.0
    least = NOTICEABLE * delay_s if len(why.hops) > MANY_HOPS else 0.0
    folded = [hop for hop in why.hops if hop.took_s is not None and hop.took_s < least]
    for hop in why.hops:
        if hop in folded:
            continue
        yield _hop_line(hop, why.delivery["published_ns"])
        busiest = max(hop.crossings, key=lambda one: one.busy_s, default=None)
        if busiest is not None and _waited_noticeably(hop, delay_s):
            where = link_text(busiest) if busiest.others else "its links"
            yield f"   before it on {where}: {others_text(busiest.others)}"
    if folded:
        took = seconds(sum(hop.took_s or 0.0 for hop in folded))
        yield f"{len(folded)} more hop{'s' if len(folded) != 1 else ''}: {took} in all"


def _waited_noticeably(hop: HopTaken, delay_s: float) -> bool:
    """Whether the hop cost a share of the delay; of a lost message, whether it ended there."""
    return hop.waited_s >= NOTICEABLE * delay_s if delay_s else hop.received_ns is None


def _hop_line(hop: HopTaken, published_ns: int) -> str:
    text = f"{hop.number}. {hop.src} → {hop.dst}: "
    if hop.ready_ns is None:
        return text + "not captured"
    begin = seconds((hop.ready_ns - published_ns) / 1e9)
    if hop.received_ns is None:
        return text + f"ready after {begin}, never complete at {hop.dst}"
    text += f"{begin} to {seconds((hop.received_ns - published_ns) / 1e9)}"
    known = [(name, getattr(hop, f"{name}_s")) for name in PARTS]
    parts = [f"{name} {seconds(value)}" for name, value in known if value]
    blocked = [f"blocked for {seconds(hop.blocked_s)}"] if hop.blocked_s else []
    return "; ".join([text, *([", ".join(parts)] if parts else []), *blocked])


def _near(why: Why, start_ns: int) -> str:
    """Disturbances during the journey or shortly before, the latest first."""
    if not why.disturbances:
        return "no fault, no link change"
    latest = why.disturbances[::-1]
    texts = [disturbance_text(one, start_ns) for one in latest[:MOST_NAMED]]
    more = len(latest) - MOST_NAMED
    return "; ".join(texts) + (f"; {more} more" if more > 0 else "")


def _again(why: Why) -> str:
    """Copies of the message beyond the first on each hop."""
    texts = [
        f"{hop.src} → {hop.dst} {hop.sent - 1} time{'s' if hop.sent != 2 else ''}"
        + (f" ({hop.repeated} marked as repetition)" if hop.repeated else "")
        for hop in why.hops
        if hop.sent > 1
    ]
    if count := why.delivery["duplicates"]:
        texts.append(f"{count} duplicate{'s' if count != 1 else ''} arrived")
    return "; ".join(texts) or "no"

"""Whether a run can be believed: did the machine, the emulator and the capture keep up? Reasons are sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis import calibration, headroom
from analysis.headroom import LATE_RELAY_S
from analysis.machine import Watch, drops, facts, read_watch
from analysis.runfolder import Run

LATE_PLAY_S = 0.020  # 99 % of publications began within this of their time


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the metrics say about the measurement itself."""

    late_p99_s: float | None  # of publications against the scenario
    lost_tail_links: tuple[str, ...]  # whose capture ends within a packet
    missing_bytes: Mapping[
        str, int
    ]  # link -> bytes that were acknowledged by later ones, yet never captured
    compressed_messages: int
    unlogged_messages: int  # on the wire, but in no log
    unseen_receptions: int  # in a subscriber's log, but not in the captures
    lost_deliveries: int
    least_delay_p99_s: float | None = None  # the smallest of all levels
    first_published_ns: int | None = None
    orphan_pieces: int = 0  # of divided messages, whose beginning was not captured
    compressed_links: tuple[str, ...] = ()  # with WebSockets that agreed on permessage-deflate
    clock_doubts: tuple[str, ...] = ()  # sentences on clocks that were not the lab machine's


def verdict(run: Run, evidence: Evidence) -> dict[str, Any]:
    """The summary's `fidelity`: ok, or the reasons for doubt; and what is known of the machine itself."""
    watch = read_watch(run, evidence.first_published_ns)
    slow = [
        *_of_dropped(run, watch),
        *_of_lateness(evidence),
        *_of_emulator(run, watch),
        *(headroom.doubts(watch, evidence.least_delay_p99_s) if watch else ()),
    ]
    reasons = [
        *slow,
        *_of_capture(run, evidence),
        *_of_play(run, evidence),
        *evidence.clock_doubts,
        *calibration.reasons(run),
        *(str(warning) for warning in run.manifest.get("warnings", [])),
    ]
    return {
        "ok": not reasons,
        "reasons": reasons,
        "machine": _machine(watch, slow, evidence),
        **_lateness(run),
    }


def _lateness(run: Run) -> dict[str, Any]:
    """How long after their times publications and actions began: n, p50_s, p99_s, max_s of each, if that is known."""
    if run.simulated:  # nothing is ever late
        return {}
    play = run.manifest.get("play") or {}
    known = {"publications": play.get("lateness"), "actions": play.get("action_lateness")}
    return {"lateness": known} if any(known.values()) else {}


def _machine(watch: Watch | None, slow: list[str], evidence: Evidence) -> dict[str, Any] | None:
    """Null if nobody watched it."""
    if watch is None:
        return None
    limit_s = headroom.wakeup_limit_s(evidence.least_delay_p99_s)
    return {"ok": not slow, "reasons": slow, **facts(watch), "wakeup_limit_s": limit_s}


def _of_dropped(run: Run, watch: Watch | None) -> list[str]:
    counts = run.manifest.get("capture") or {}
    dropped = {link: n for link, count in counts.items() if (n := count.get("dropped", 0))}
    if not dropped:
        return []
    worst = max(dropped, key=lambda link: dropped[link])
    lost = (
        f"The capture lost {sum(dropped.values())} packets on {len(dropped)} links, most on {worst}"
    )
    when = drops(watch) if watch else []
    return [f"{lost}; first {watch.when(when[0][0])}." if watch and when else f"{lost}."]


def _of_capture(run: Run, evidence: Evidence) -> list[str]:
    if run.simulated:  # there is nothing that a capture could have missed
        return _of_messages(evidence)
    reasons = []
    if not run.captures_wanted:
        return ["The topology switches the capture off: nothing was measured on the links."]
    present = {node.name for node in run.captured()}
    absent = [node.name for node in run.nodes if node.name not in present]
    if absent:
        reasons.append(f"{_some('link', absent)} no capture.")
    if run.manifest.get("capture") is None:
        reasons.append("The manifest does not say whether the capture lost packets.")
    if evidence.lost_tail_links:
        reasons.append(
            f"{_some('capture', evidence.lost_tail_links)} a last packet that was cut off, or bytes that are no packet."
        )
    if evidence.missing_bytes and not _overloaded(run):
        size = sum(evidence.missing_bytes.values())
        reasons.append(
            f"{size} bytes of TCP streams are missing from the captures of "
            f"{_listed(sorted(evidence.missing_bytes))}."
        )
    if evidence.compressed_messages:
        reasons.append(
            f"{evidence.compressed_messages} messages were compressed by a WebSocket extension and could not be read."
        )
    if evidence.compressed_links:
        reasons.append(
            f"{_some('link', evidence.compressed_links)} WebSocket connections that agreed on permessage-deflate, and "
            "nothing in them could be read; switch compression off at one end (in Python's websockets: "
            "`compression=None`) and run again."
        )
    return reasons + _of_messages(evidence)


def _of_messages(evidence: Evidence) -> list[str]:
    reasons = []
    if evidence.orphan_pieces:
        reasons.append(
            f"{evidence.orphan_pieces} pieces belong to messages whose beginning is missing from the captures."
        )
    if evidence.unlogged_messages:
        reasons.append(
            f"{evidence.unlogged_messages} messages were seen on the links but are in no node's log."
        )
    if evidence.unseen_receptions:
        reasons.append(
            f"{evidence.unseen_receptions} deliveries are in the subscribers' logs but not in the captures."
        )
    return reasons


def _of_play(run: Run, evidence: Evidence) -> list[str]:
    play = run.manifest.get("play")
    unsettled = play is not None and not play.get("settled", True) and not _overloaded(run)
    if unsettled and evidence.lost_deliveries:  # otherwise all came while the lab was stopped
        return [
            "The run ended while messages were still under way: some of the lost ones may only have been late."
        ]
    return []


def _overloaded(run: Run) -> bool:
    """On purpose: messages are still under way at the end, and streams end before what a queue dropped came again."""
    return bool((run.manifest.get("play") or {}).get("overloaded"))


def _of_lateness(evidence: Evidence) -> list[str]:
    late = evidence.late_p99_s
    if late is None or late <= LATE_PLAY_S:
        return []
    return [
        f"The nodes published late: the 99th percentile is {late * 1000:.0f} ms after the scenario's time "
        f"(more than {LATE_PLAY_S * 1000:.0f} ms)."
    ]


def _of_emulator(run: Run, watch: Watch | None) -> list[str]:
    """From the rows that count; without them the relay's own sum, which begins with the scenario, if one was played."""
    if watch is not None and watch.counting:
        return headroom.relay_doubts(watch)
    relay = run.manifest.get("details", {}).get("relay") or {}
    late = relay.get("late_max_s") or 0.0
    if late <= LATE_RELAY_S:
        return []
    return [
        f"The link emulator was up to {late * 1000:.0f} ms late with a packet (more than {LATE_RELAY_S * 1000:.0f} ms)."
    ]


def _some(what: str, names: list[str] | tuple[str, ...]) -> str:
    """ "Link a has", "Links a and b have", "12 links (a, b, c, ...) have"."""
    if len(names) == 1:
        return f"{what.capitalize()} {names[0]} has"
    if len(names) <= 3:
        return f"{what.capitalize()}s {_listed(names)} have"
    return f"{len(names)} {what}s ({', '.join(names[:3])}, ...) have"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    if len(names) > 3:
        return f"{len(names)} links ({', '.join(names[:3])}, ...)"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

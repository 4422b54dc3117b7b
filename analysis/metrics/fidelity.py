"""Whether a run can be trusted: did the machine, the emulator and the capture keep up? Reasons are sentences."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.inputs import calibration
from analysis.inputs.machine import Row, Watch, drops, machine_summary, read_watch
from analysis.inputs.run_folder import Run

# Spare capacity of the machine during the measurement. A reason for doubt has a number, a limit and a time.
#
# Why these limits: docs/explanation/analysis.md, "Machine load and wake-up latency".


LEAST_IDLE = 0.10  # of the CPU time of a second
MOST_BUSY_SECONDS = 0.05  # share of the seconds that may have less
LATE_WAKEUP_S = (
    0.020  # 99 % of the wake-ups came within this, or sooner if the delays measured are short:
)
WAKEUP_OF_DELAY = 0.1  # of the smallest 99th percentile of the delays ...
LEAST_WAKEUP_LIMIT_S = 0.001  # ... but Linux guarantees no less than this
LATE_RELAY_S = 0.020  # no packet left a user-space link later than this
LEAST_FREE_BYTES = 256 << 20
MOST_SWAPPED_BYTES = 1 << 20  # read back in a second
LEAST_WATCHED = 0.9  # of the time that counts


def wakeup_limit_s(least_delay_p99_s: float | None) -> float:
    """The wake-up latency up to which delays of this size can be trusted."""
    if least_delay_p99_s is None:
        return LATE_WAKEUP_S
    return min(LATE_WAKEUP_S, max(LEAST_WAKEUP_LIMIT_S, WAKEUP_OF_DELAY * least_delay_p99_s))


def machine_warnings(watch: Watch, least_delay_p99_s: float | None) -> list[str]:
    """Reasons for doubt from the rows that count; a reason, too, if there are too few."""
    if watch.wanted_s <= 0:
        return []
    return [
        *_gaps(watch),
        *_processors(watch),
        *_wakeups(watch, wakeup_limit_s(least_delay_p99_s)),
        *_memory(watch),
    ]


def relay_warnings(watch: Watch) -> list[str]:
    """Reasons for doubt if the user-space links forwarded packets late."""
    worst = _worst(watch, lambda row: row.relay_late_max_s)
    if worst is None or (late := worst.relay_late_max_s or 0.0) <= LATE_RELAY_S:
        return []
    return [
        f"The link emulator was up to {_ms(late)} late with a packet, {watch.when(worst)} "
        f"(more than {_ms(LATE_RELAY_S)})."
    ]


def _gaps(watch: Watch) -> list[str]:
    if watch.watched_s >= LEAST_WATCHED * watch.wanted_s:
        return []
    return [
        f"The machine was monitored for only {watch.watched_s:.0f} of the {watch.wanted_s:.0f} seconds of the scenario."
    ]


def _processors(watch: Watch) -> list[str]:
    known = [row for row in watch.counting if row.cpu_idle is not None]
    busy = [row for row in known if (row.cpu_idle or 0.0) < LEAST_IDLE]
    if len(busy) <= MOST_BUSY_SECONDS * len(known):
        return []
    return [
        f"The processors were overloaded: less than {_percent(LEAST_IDLE)} was idle in {len(busy)} of "
        f"{len(known)} seconds (more than {_percent(MOST_BUSY_SECONDS)} of them), first {watch.when(busy[0])}."
    ]


def _wakeups(watch: Watch, limit_s: float) -> list[str]:
    p99 = machine_summary(watch)["wakeup_p99_s"]
    worst = _worst(watch, lambda row: row.wakeup_max_s)
    if worst is None or p99 is None or p99 <= limit_s:
        return []
    why = "" if limit_s == LATE_WAKEUP_S else ", a tenth of the shortest delays measured"
    return [
        f"Processes woke up late: the 99th percentile is {_ms(p99)} (more than {_ms(limit_s)}{why}), "
        f"the worst {_ms(worst.wakeup_max_s or 0.0)}, {watch.when(worst)}."
    ]


def _memory(watch: Watch) -> list[str]:
    reasons = []
    least = _worst(watch, lambda row: _negative(row.memory_free_bytes))
    free = None if least is None else least.memory_free_bytes
    if least is not None and free is not None and free < LEAST_FREE_BYTES:
        reasons.append(
            f"Memory was short: {_mib(free)} were left, {watch.when(least)} (less than {_mib(LEAST_FREE_BYTES)})."
        )
    most = _worst(watch, lambda row: row.swapped_in_bytes)
    swapped = 0 if most is None else most.swapped_in_bytes or 0
    if most is not None and swapped > MOST_SWAPPED_BYTES:
        reasons.append(
            f"The machine swapped: {_mib(swapped)} came back from disk within a second, {watch.when(most)} "
            f"(more than {_mib(MOST_SWAPPED_BYTES)})."
        )
    return reasons


def _worst(watch: Watch, value: Callable[[Row], float | None]) -> Row | None:
    """The row with the greatest value."""
    known = [(found, row) for row in watch.counting if (found := value(row)) is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _negative(value: int | None) -> int | None:
    return None if value is None else -value


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


LATE_PLAY_S = 0.020  # 99 % of publications began within this of their time


@dataclass(frozen=True, slots=True)
class Evidence:
    """Values of the metrics that concern the measurement itself."""

    late_p99_s: float | None  # lateness of publications
    lost_tail_links: tuple[str, ...]  # with a capture that ends within a packet
    missing_bytes: Mapping[str, int]  # link -> bytes that were acknowledged but not captured
    compressed_messages: int
    unlogged_messages: int  # on the wire, but not in a log
    unseen_receptions: int  # in a subscriber's log, but not in the captures
    lost_deliveries: int
    least_delay_p99_s: float | None = None  # the smallest of all levels
    first_published_ns: int | None = None
    orphan_pieces: int = 0  # pieces of messages whose beginning was not captured
    compressed_links: tuple[str, ...] = ()  # with WebSockets that negotiated permessage-deflate
    clock_warnings: tuple[str, ...] = ()  # sentences on clocks other than the lab machine's


def verdict(run: Run, evidence: Evidence) -> dict[str, Any]:
    """The summary's `fidelity`: ok, or the reasons for doubt; and statistics of the machine."""
    watch = read_watch(run, evidence.first_published_ns)
    slow = [
        *_of_dropped(run, watch),
        *_of_lateness(evidence),
        *_of_emulator(run, watch),
        *(machine_warnings(watch, evidence.least_delay_p99_s) if watch else ()),
    ]
    reasons = [
        *slow,
        *_of_capture(run, evidence),
        *_of_play(run, evidence),
        *evidence.clock_warnings,
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
    """Lateness of publications and actions: n, p50_s, p99_s, max_s of each, if known."""
    if run.simulated:  # virtual time is never late
        return {}
    play = run.manifest.get("play") or {}
    known = {"publications": play.get("lateness"), "actions": play.get("action_lateness")}
    return {"lateness": known} if any(known.values()) else {}


def _machine(watch: Watch | None, slow: list[str], evidence: Evidence) -> dict[str, Any] | None:
    """Statistics of the machine; null if it was not recorded."""
    if watch is None:
        return None
    limit_s = wakeup_limit_s(evidence.least_delay_p99_s)
    return {"ok": not slow, "reasons": slow, **machine_summary(watch), "wakeup_limit_s": limit_s}


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
    if run.simulated:  # there is no capture that could have missed packets
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
    under_way = play is None or play.get("under_way") != 0  # missing if nobody has counted them
    if (
        unsettled and under_way and evidence.lost_deliveries
    ):  # otherwise all arrived while the lab was stopped
        return [
            "The run ended while messages were still in transit: some of the lost messages may only have been late."
        ]
    return []


def _overloaded(run: Run) -> bool:
    """Overload on purpose: at the end messages are in transit, and streams lack segments that a queue dropped."""
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
    """From the rows that count; without them from the relay's total, which begins with the scenario."""
    if watch is not None and watch.counting:
        return relay_warnings(watch)
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

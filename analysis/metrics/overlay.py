"""The summary's `overlay`: activity of the brokers in a few numbers."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.formatting import natural
from analysis.inputs.manifest import method
from analysis.inputs.run_folder import Run
from analysis.metrics.events import Event, read_events

COUNTS = ("handled", "forwarded", "copies", "sent_again", "repeated", "relayed")
# Events of every lab; all others in brokers' logs are notes of the overlay.
USUAL = ("start", "ready", "stop", "connect", "disconnect", "refuse", "unreachable")


def summary(
    run: Run, metrics: Path, deliveries: pa.Table, published: int, seconds: float | None
) -> dict[str, Any]:
    """Forwards, control traffic, stop and go, repairs and path lengths."""

    def rows(name: str) -> list[dict[str, Any]]:
        return list(pq.read_table(metrics / f"{name}.parquet").to_pylist())

    forwards, control = rows("forwards"), rows("control")
    noted = _notes(read_events(metrics))
    copies = sum(row["copies"] for row in forwards)
    return {
        "method": method(run.manifest["topology"]["overlay"]),
        "brokers": len(run.brokers),
        "seconds": seconds,
        "copies": copies,
        "copies_per_publication": copies / published if published else None,
        "forwards": _forwards(forwards, run.brokers),
        "by_broker": _by_broker(forwards, control, run.brokers, seconds),
        "control": _control(control, run.brokers, seconds),
        "stop_go": _stop_go(control, run.brokers, noted),
        "notes": noted,
        "paths": paths(deliveries, frozenset(run.brokers)),
        "repairs": sorted(rows("repair"), key=lambda row: (row["died_ns"], row["node"])),
    }


def _notes(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """Notes of overlays: event -> number of records, and number of messages concerned."""
    found: dict[str, dict[str, int]] = {}
    for event in events:
        if event.event not in USUAL:
            note = found.setdefault(event.event, {"times": 0, "messages": 0})
            note["times"] += 1
            note["messages"] += 1 if event.messages is None else event.messages
    return dict(sorted(found.items()))


def _forwards(rows: Iterable[Mapping[str, Any]], brokers: Collection[str]) -> dict[str, Any]:
    """level -> counts of all brokers together."""
    found: dict[str, Any] = {}
    for row in sorted(rows, key=lambda row: -row["priority"]):
        if row["node"] in brokers:
            level = found.setdefault(str(row["priority"]), dict.fromkeys(COUNTS, 0))
            for name in COUNTS:
                level[name] += row[name]
    return {level: _with_share(counts) for level, counts in found.items()}


def _with_share(counts: dict[str, int]) -> dict[str, Any]:
    """Add the share of handled publications on topics in which the node takes no part."""
    handled = counts["handled"]
    return {**counts, "relay_share": counts["relayed"] / handled if handled else None}


def _by_broker(
    forwards: Iterable[Mapping[str, Any]],
    control: Iterable[Mapping[str, Any]],
    brokers: Collection[str],
    seconds: float | None,
) -> dict[str, Any]:
    """broker -> its counts, and the rate of control traffic that it sent and received."""
    counts = {name: dict.fromkeys(COUNTS, 0) for name in sorted(brokers, key=natural)}
    sizes = {name: {"up": 0.0, "down": 0.0} for name in brokers}
    for row in forwards:
        if row["node"] in counts:
            for name in COUNTS:
                counts[row["node"]][name] += row[name]
    for row in control:
        if row["node"] in sizes:
            sizes[row["node"]][row["direction"]] += row["wire_bytes"]
    return {
        name: {
            **_with_share(mine),
            "control_sent_bytes_per_s": _rate(sizes[name]["up"], seconds),
            "control_got_bytes_per_s": _rate(sizes[name]["down"], seconds),
        }
        for name, mine in counts.items()
    }


def _control(
    rows: Iterable[Mapping[str, Any]], brokers: Collection[str], seconds: float | None
) -> dict[str, Any]:
    """Control traffic that the brokers sent; `OVERLAY` by kind."""
    sent = [row for row in rows if row["direction"] == "up" and row["node"] in brokers]
    wire = sum(row["wire_bytes"] for row in sent)
    return {
        "messages": sum(row["messages"] for row in sent),
        "wire_bytes": round(wire),
        "bytes_per_s_per_broker": _rate(wire / len(brokers), seconds) if brokers else None,
        "by_kind": _grouped(sent, ("kind",)),
        "by_overlay_kind": _grouped(
            (row for row in sent if row["overlay_kind"]), ("overlay_kind", "carried_kind")
        ),
    }


def _rate(size: float, seconds: float | None) -> float | None:
    """A rate, rounded: sums of shares of headers depend on the order of summation."""
    return round(size / seconds, 3) if seconds else None


def _grouped(rows: Iterable[Mapping[str, Any]], by: tuple[str, ...]) -> dict[str, Any]:
    """Messages and bytes by group, the largest first."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        name = " ".join(row[column] for column in by if row[column])
        group = found.setdefault(name, {"messages": 0, "wire_bytes": 0.0})
        group["messages"] += row["messages"]
        group["wire_bytes"] += row["wire_bytes"]
    order = sorted(found.items(), key=lambda item: (-item[1]["wire_bytes"], item[0]))
    return {
        name: {"messages": group["messages"], "wire_bytes": round(group["wire_bytes"])}
        for name, group in order
    }


def _stop_go(
    rows: Iterable[Mapping[str, Any]], brokers: Collection[str], noted: Mapping[str, Any]
) -> dict[str, int]:
    """Stop and go messages between brokers, and publications withheld without subscribers."""
    sent: Counter[str] = Counter()
    for row in rows:
        if row["direction"] == "up" and row["node"] in brokers and row["carried_kind"]:
            sent[row["carried_kind"]] += row["messages"]
    return {
        "stop": sent["stop"],
        "go": sent["go"],
        "withheld": noted.get("withheld", {}).get("times", 0),
    }


def paths(deliveries: pa.Table, brokers: Collection[str]) -> dict[str, Any]:
    """level -> number of deliveries by hops, mean hops, and mean number of brokers on the path."""
    found: dict[int, list[tuple[int, int]]] = {}
    for level, path in zip(*(deliveries[n].to_pylist() for n in ("priority", "path")), strict=True):
        if path:
            passed = sum(node in brokers for node in path)
            found.setdefault(level, []).append((len(path) - 1, passed))
    return {
        str(level): {
            "hops": {str(n): count for n, count in sorted(Counter(h for h, _ in lengths).items())},
            "mean": sum(h for h, _ in lengths) / len(lengths),
            "brokers_mean": sum(passed for _, passed in lengths) / len(lengths),
        }
        for level, lengths in sorted(found.items(), reverse=True)
    }

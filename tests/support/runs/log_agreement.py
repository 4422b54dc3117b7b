"""Compare the captures of a run with the logs of its nodes, message by message."""

from collections import Counter
from pathlib import Path
from typing import Any

from support.lines import records
from support.runs.busy_machine import latest_wakeup_s
from support.runs.metric_tables import rows

EARLY_S = 0.001  # a message passes the link before the node gets it, by the same clock
LATE_S = 5.0  # until an application gets it, on a machine that is busy with other things


def logged(folder: Path, *events: str) -> list[dict]:
    """The lines with one of these events in the logs of all nodes."""
    return [
        line
        for log in sorted((folder / "logs").glob("*.jsonl"))
        for line in records(log)
        if line["event"] in events
    ]


def must_agree(folder: Path, *, some_lost: bool = False) -> None:
    """Check that captures and logs of an analysed run agree: publisher, receivers, hops, copies and times.

    Each arrival was seen on its receiver's link, and each publication on its publisher's, unless some may be lost.
    A message that reached a node just before its end need not be in its log; the analysis calls it not confirmed.
    """
    most_s = LATE_S + latest_wakeup_s(folder)
    published = {line["id"]: _published(line) for line in logged(folder, "publish")}
    assert {row["id"]: _measured(row) for row in rows(folder, "publications")} == published
    came: dict[tuple[str, str], dict[str, Any]] = {}
    for line in sorted(logged(folder, "receive"), key=lambda line: int(line["t"])):
        came.setdefault((line["id"], line["node"]), line)
    arrived = {
        (row["id"], row["receiver"]): row
        for row in rows(folder, "deliveries")
        if row["status"] == "delivered"
    }
    deliveries = {key: row for key, row in arrived.items() if row["confirmed"]}
    assert deliveries.keys() == came.keys()
    ended = [(line["node"], line["t"]) for line in logged(folder, "start", "stop")]
    for (_, receiver), row in [item for item in arrived.items() if not item[1]["confirmed"]]:
        after_ns = [t - row["received_ns"] for node, t in ended if node == receiver]
        assert any(abs(after) <= most_s * 1e9 for after in after_ns), row
    logged_fields = {key: (*_message(line), line["hops"]) for key, line in came.items()}
    assert {
        key: (*_measured(row)[1:], row["hops"]) for key, row in deliveries.items()
    } == logged_fields
    handed = Counter((line["id"], line["node"]) for line in logged(folder, "receive"))
    assert {key: row["handed"] for key, row in deliveries.items()} == handed
    after = {key: (came[key]["t"] - row["received_ns"]) / 1e9 for key, row in deliveries.items()}
    assert all(-EARLY_S <= late_s <= most_s for late_s in after.values()), after
    on_links = {row["id"]: row["published_ns"] for row in rows(folder, "hops")}
    assert on_links.items() <= {name: line[-1] for name, line in published.items()}.items()
    assert some_lost or on_links.keys() == published.keys()


def _message(line: dict[str, Any]) -> tuple[Any, ...]:
    """The fields that both a publication and a reception state of the message."""
    when = line.get("published_ns", line["t"])
    return line["topic"], line["priority"], line["size"], when


def _published(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["node"], *_message(line)


def _measured(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("origin", "topic", "priority", "payload_bytes", "published_ns")
    return tuple(row[name] for name in names)

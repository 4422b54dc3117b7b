"""What the captures of a run say beside what its nodes say, message by message."""

import json
from pathlib import Path

from written_metrics import rows

EARLY_S = 0.001  # a node cannot have what has not passed its link; both stamps are of one clock
LATE_S = 5.0  # until an application is told, on a machine that is busy with other things


def logged(folder: Path, event: str) -> list[dict]:
    """The lines of all nodes about this."""
    return [
        line
        for log in sorted((folder / "logs").glob("*.jsonl"))
        for line in map(json.loads, log.read_text().splitlines())
        if line["event"] == event
    ]


def must_agree(folder: Path) -> None:
    """Of an analysed run in which nobody died: who published and got what is the same, and when it came.

    Each publication was seen on its publisher's link, each arrival on its receiver's.
    """
    published = {line["id"]: line["t"] for line in logged(folder, "publish")}
    measured = {row["id"]: row["published_ns"] for row in rows(folder, "publications")}
    assert measured == published
    came: dict[tuple[str, str], int] = {}
    for line in logged(folder, "receive"):
        key = (line["id"], line["node"])
        came[key] = min(line["t"], came.get(key, line["t"]))
    deliveries = [row for row in rows(folder, "deliveries") if row["status"] == "delivered"]
    seen = {(row["id"], row["receiver"]): row["received_ns"] for row in deliveries}
    assert seen.keys() == came.keys()
    assert {row["id"] for row in rows(folder, "hops")} == published.keys()
    after = {key: (came[key] - seen[key]) / 1e9 for key in seen}
    assert all(-EARLY_S <= late_s <= LATE_S for late_s in after.values()), after
    assert all(row["confirmed"] for row in deliveries)
    times = {line["id"]: line["published_ns"] for line in logged(folder, "receive")}
    stated = {row["id"]: row["published_ns"] for row in rows(folder, "hops")}
    assert {identity: stated[identity] for identity in times} == times

"""A measured run whose tables a test constructs: messages on links, and from them hops and deliveries. No Spark."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.inputs.link_settings import paths_to_core, settings_of_links
from analysis.inputs.manifest import downtimes
from analysis.inputs.subscriptions import subscriptions_of
from analysis.metrics import deliveries, events, hops, messages, publications, repair
from analysis.metrics.delay_parts import Paths
from analysis.stats.why import Evidence
from support.runs.star_runs import MS, START_NS, Host, manifest_of

BEGIN_NS = START_NS + 1_000 * MS  # of the scenario
NARROW = {"rate_bps": 80_000.0, "delay_s": 0.05, "jitter_s": 0.0, "loss": 0.0, "queue_bytes": None}
HEADERS = 34  # of a publication
HOSTS = {
    name: Host(name, number, f"10.77.0.{number}")
    for number, name in enumerate(("broker", "gauge", "camera", "siren", "office"), start=1)
}
KINDS = {"broker": "broker", "gauge": "sensor", "camera": "sensor"}


def identity(origin: str, number: int) -> str:
    return f"{HOSTS[origin].number << 32 | number:016x}"


@dataclass
class ConstructedRun:
    """A star: a gauge and a camera publish to a siren and an office, whose links have 80 kbit/s and 50 ms down.

    Times are milliseconds of the scenario.
    """

    sightings: list[dict[str, Any]] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    drops: list[tuple[str, str, str]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    link_changes: list[dict[str, Any]] = field(default_factory=list)

    def publish(self, origin: str, number: int, at_ms: float, **more: Any) -> str:
        """A publication of the log; `cross` lets it go on."""
        values = {"topic": "alerts", "priority": 5, "payload_bytes": 200, **more}
        about = {"published_ns": ns_of(at_ms), "late_s": 0.0, "place": None}
        one = {"id": identity(origin, number), "origin": origin, **values, **about}
        self.published.append(one)
        return str(one["id"])

    def cross(
        self,
        message: str,
        src: str,
        dst: str,
        up_ms: tuple[float, float],
        down_ms: tuple[float, float] | None,
        **more: Any,
    ) -> None:
        """A copy of the message on the links of both nodes, from its first byte to its last."""
        of = next(one for one in self.published if one["id"] == message)
        for link, direction, times in ((src, "up", up_ms), (dst, "down", down_ms)):
            if times is not None:
                self.sightings.append(
                    {
                        **_sighting(of),
                        "link": link,
                        "direction": direction,
                        "src": src,
                        "dst": dst,
                        "first_ns": ns_of(times[0]),
                        "last_ns": ns_of(times[1]),
                        "hops": 1 if src == of["origin"] else 2,
                        **more,
                    }
                )

    def act(self, at_ms: float, action: str, *targets: str, **details: Any) -> None:
        at_ns = ns_of(at_ms)
        entry = {"t_ns": at_ns, "due_ns": at_ns, "action": action, "targets": [*targets]}
        self.actions.append({**entry, "details": details})

    # The tables

    @property
    def manifest(self) -> dict[str, Any]:
        topics = {"siren": ["alerts"], "office": ["alerts"]}
        members = [
            (host, KINDS.get(name, "subscriber"), topics.get(name, ()))
            for name, host in HOSTS.items()
        ]
        document = manifest_of(members, "constructed")
        wide = {**NARROW, "rate_bps": 100e6, "delay_s": 0.0}
        document["topology"]["profiles"] = [
            {"name": "lan", "up": wide, "down": wide, "mtu": 1500},
            {"name": "narrow", "up": wide, "down": NARROW, "mtu": 1500},
        ]
        for node in document["topology"]["nodes"]:
            node["profile"] = "narrow" if node["kind"] == "subscriber" else "lan"
        changes = {"actions": self.actions, "link_changes": self.link_changes}
        return {**document, **changes}

    @property
    def messages(self) -> pa.Table:
        return pa.Table.from_pylist(self.sightings, messages.SCHEMA)

    @property
    def hops(self) -> pa.Table:
        paths = Paths(paths_to_core(self.manifest, settings_of_links(self.manifest)), {})
        return hops.hops(hops.published(self.messages), paths)

    @property
    def deliveries(self) -> pa.Table:
        names = publications.DROPS.names
        drops = [dict(zip(names, one, strict=True)) for one in self.drops]
        nodes = self.manifest["topology"]["nodes"]
        found = deliveries.deliveries(
            deliveries.Followed(
                pa.Table.from_pylist(self.published, publications.SCHEMA),
                self.hops,
                publications.RECEPTIONS.empty_table(),
                pa.Table.from_pylist(drops, publications.DROPS),
            ),
            subscriptions_of({node["name"]: node["topics"] for node in nodes}),
            ["broker"],
            down=downtimes(self.manifest),
            until_ns=ns_of(10_000),
        )
        return deliveries.in_order(found)

    def evidence(self) -> Evidence:
        return Evidence(
            self.manifest, ["broker"], self.deliveries, self.hops.to_pylist(), self.messages
        )

    def delivery(self, message: str, receiver: str = "siren") -> dict[str, Any]:
        rows = self.deliveries.to_pylist()
        return next(row for row in rows if (row["id"], row["receiver"]) == (message, receiver))

    def write(self, folder: Path) -> Path:
        """Write the run folder as `analyze` would have, with the tables that explanations need."""
        metrics = folder / "metrics"
        metrics.mkdir(parents=True)
        tables = {
            "messages": self.messages,
            "hops": self.hops,
            "deliveries": self.deliveries,
            "repair": repair.SCHEMA.empty_table(),
            "events": events.SCHEMA.empty_table(),
        }
        for name, rows in tables.items():
            (metrics / f"{name}.parquet").mkdir()
            pq.write_table(rows, metrics / f"{name}.parquet" / "part-00000.parquet")
        (folder / "summary.json").write_text(json.dumps({"run": "constructed"}))
        (folder / "run.json").write_text(json.dumps({**self.manifest, "run": folder.name}))
        return folder


def ns_of(at_ms: float) -> int:
    return BEGIN_NS + round(at_ms * MS)


def _sighting(of: dict[str, Any]) -> dict[str, Any]:
    """What all sightings of a publication have; 44 bytes of headers in one packet for each 1,400 bytes."""
    same = ("id", "origin", "topic", "priority", "payload_bytes", "published_ns")
    return {
        **{name: of[name] for name in same},
        "kind": "PUBLISH",
        "complete": True,
        "frames": 1,
        "pieces": 1,
        "joined": 1,
        "flags": 0,
        "websocket_bytes": 10,
        "header_bytes": HEADERS,
        "label_bytes": 0,
        "packets": 1 + of["payload_bytes"] // 1_400,
        "stalled_ns": 0,
        "repeated_ns": 0,
    }


def blocked_by_a_picture() -> ConstructedRun:
    """The siren's link carries a picture of 20 kB for two seconds; an alert is published after one of them."""
    run = ConstructedRun()
    picture = run.publish("camera", 1, 0, topic="pictures", priority=1, payload_bytes=20_000)
    run.cross(picture, "camera", "broker", (1, 2), (1, 3))
    run.cross(picture, "broker", "siren", (4, 1_900), (60, 2_060))
    alert = run.publish("gauge", 1, 1_000)
    run.cross(alert, "gauge", "broker", (1_001, 1_001), (1_001, 1_001))
    run.cross(alert, "broker", "siren", (1_950, 1_950), (2_090, 2_090))
    run.cross(alert, "broker", "office", (1_002, 1_002), (1_084, 1_084))
    calm = run.publish("gauge", 2, 5_000)
    for receiver, at_ms in (("siren", 5_085), ("office", 5_084)):
        if receiver == "siren":
            run.cross(calm, "gauge", "broker", (5_001, 5_001), (5_001, 5_001))
        run.cross(calm, "broker", receiver, (5_002, 5_002), (at_ms, at_ms))
    return run

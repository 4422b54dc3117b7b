"""All contestants, by name."""

from collections.abc import Mapping
from typing import Any

from benchmarks.support.delivery.contestant import (
    ROUTINE,
    URGENT,
    Contestant,
    Mosquitto,
    Ours,
    Peer,
)

TWO, DMPQ, PREEMPTIVE = "two-connections", "dmpq-pc", "preemptive"
MOSQUITTO, ZENOH, ZENOH_PATIENT = "mosquitto", "zenoh", "zenoh-patient"
ZENOH_TUNED, ZENOH_HALF = "zenoh-tuned", "zenoh-tuned-half"
_ZENOH = ("zenoh", "eclipse-zenoh")

AS_DELIVERED: Mapping[str, Any] = {"config": {}, "congestion": "DROP", "express": False}
# A batch of 65 kB takes longer on a link of 7 kB/s than a connection may be silent by default (10 s).
PATIENT = {**AS_DELIVERED, "config": {"transport/link/tx/lease": 120_000}}
# One batch is one packet (2 bytes of length in front), and the kernel's buffer is as small as it can be set, so that
# little waits below its priorities. Nothing is dropped, however long it takes.
TUNED: Mapping[str, Any] = {
    "config": {
        "transport/link/tx/batch_size": 1446,
        "transport/link/tcp/so_sndbuf": 2304,
        "transport/link/tx/queue/congestion_control/block/wait_before_close": 600_000_000,
        "transport/link/tx/lease": 120_000,
    },
    "congestion": "BLOCK",
    "express": True,
}
# Half a packet waits less, and costs about as many bytes as our own short pieces.
TUNED_HALF = {**TUNED, "config": {**TUNED["config"], "transport/link/tx/batch_size": 723}}


def ours(limit_bytes: int | None = None) -> list[Ours]:
    """Our methods; a limit bounds each queue."""
    limit = {} if limit_bytes is None else {"limit_bytes": limit_bytes}
    apart = {"urgent": (URGENT,), "routine": (ROUTINE,)}
    return [
        Ours("fifo", "fifo", limit),
        Ours(TWO, "fifo", limit, apart),
        Ours("pq-pc", "pq-pc", limit),
        Ours(DMPQ, "dmpq-pc", {"dv": 1443, **limit}),
        Ours("dmpq-pc-udp", "dmpq-pc", {"dv": 1443, "ack": "udp", **limit}),
        Ours(PREEMPTIVE, "preemptive", limit),
    ]


def fitted_to_the_packet() -> list[Ours]:
    """DMPQ-PC with pieces as long as a packet of the link, whatever its MTU."""
    return [Ours("dmpq-pc-auto", "dmpq-pc", {"dv": "auto"})]


def others() -> list[Contestant]:
    """The contestants that are other programs."""
    return [
        Peer("sse", "sse", ("http", "python3")),
        Mosquitto(MOSQUITTO, "mqtt", ("paho", "paho-mqtt")),
        Peer(ZENOH, "zenoh_peer", _ZENOH, AS_DELIVERED),
        Peer(ZENOH_PATIENT, "zenoh_peer", _ZENOH, PATIENT),
        Peer(ZENOH_TUNED, "zenoh_peer", _ZENOH, TUNED),
        Peer(ZENOH_HALF, "zenoh_peer", _ZENOH, TUNED_HALF),
    ]

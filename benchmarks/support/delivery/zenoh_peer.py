"""Zenoh over TCP, one peer to another: `python -m benchmarks.support.delivery.zenoh_peer publish|receive HOST FOLDER`.

Urgent messages have its highest priority (real time), routine ones its lowest (background). `settings.json` in the
folder says how the session is set and what happens to messages when its queue is full.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import zenoh

from benchmarks.support.delivery.peer_program import Received, play, ready

PORT = 7447
URGENT, ROUTINE = "alerts/urgent", "alerts/routine"
# Only what the link needs: TCP, no discovery, no shared memory.
ALWAYS = {
    "mode": "peer",
    "scouting/multicast/enabled": False,
    "scouting/gossip/enabled": False,
    "transport/shared_memory/enabled": False,
}


def session(folder: Path, where: dict[str, Any]) -> tuple[zenoh.Session, dict[str, Any]]:
    """Open a session with the settings of the folder; return both."""
    settings: dict[str, Any] = json.loads((folder / "settings.json").read_text())
    zenoh.init_log_from_env_or("error")
    config = zenoh.Config()
    for key, value in {**ALWAYS, **settings["config"], **where}.items():
        config.insert_json5(key, json.dumps(value))
    return zenoh.open(config), settings


def publish(host: str, folder: Path) -> None:
    """Listen, and send each message when it is due."""
    where = {"listen/endpoints": [f"tcp/{host}:{PORT}"]}
    opened, settings = session(folder, where)
    control = getattr(zenoh.CongestionControl, settings["congestion"])
    urgent = opened.declare_publisher(
        URGENT,
        priority=zenoh.Priority.REAL_TIME,
        express=settings["express"],
        congestion_control=control,
    )
    routine = opened.declare_publisher(
        ROUTINE, priority=zenoh.Priority.BACKGROUND, congestion_control=control
    )
    while not (_has_subscriber(urgent) and _has_subscriber(routine)):
        time.sleep(0.1)
    ready(folder, "publisher")
    play(folder, lambda data, is_urgent: (urgent if is_urgent else routine).put(data))
    while True:
        time.sleep(1)


def _has_subscriber(publisher: Any) -> bool:
    """The matching status: documented as a bool, but it is an object with one."""
    return bool(publisher.matching_status.matching)


def receive(host: str, folder: Path) -> None:
    """Connect, and record arrivals."""
    received = Received(folder)
    where = {"listen/endpoints": [], "connect/endpoints": [f"tcp/{host}:{PORT}"]}
    opened, _ = session(folder, where)
    subscriptions = [
        opened.declare_subscriber(key, lambda sample: received.note(sample.payload.to_bytes()))
        for key in (URGENT, ROUTINE)
    ]
    ready(folder, "receiver")
    while subscriptions:
        time.sleep(1)


if __name__ == "__main__":
    {"publish": publish, "receive": receive}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))

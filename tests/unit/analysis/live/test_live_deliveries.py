"""Delay and loss while a run is in progress: reading in small steps gives the result of reading the whole."""

import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.inputs.subscriptions import subscriptions_of
from analysis.live.link import LiveLink
from analysis.live.run import WatchedRun
from analysis.live.table import Live
from analysis.protocols.link import read_link
from analysis.protocols.messages import LinkPlace
from nodes.protocol import wire
from support.captures.labelled_streams import STYLES, write_mixed
from support.runs.star_runs import (
    MS,
    START_NS,
    WELL,
    Captures,
    Connection,
    Host,
    Passing,
    Publication,
    StarRun,
    frame,
    frames,
)

TOWN, BROKER = Host("town", 2, "10.77.0.2"), Host("broker", 1, "10.77.0.1")
PLACE = LinkPlace(
    "town",
    0x0A4D0002,
    int.from_bytes(TOWN.mac),
    {0x0A4D0001: "broker", 0x0A4D0002: "town"},
    {1: "broker"},
)


def a_run(seed: int) -> StarRun:
    """A run in which some packets are late, some messages are lost, and frames are divided anywhere."""
    chance = random.Random(seed)
    late = {number: chance.randrange(40) * MS for number in chance.sample(range(400), 60)}
    lost = {number: chance.choice(("unsent", "vanishes")) for number in chance.sample(range(30), 4)}
    divided = "vanishes" not in lost.values()  # after a hole, divided frames are not found again
    return StarRun(
        sensors=2,
        subscribers=2,
        publications=[
            Publication(chance.randrange(2), 30 * n, 1 + n % 5, size=chance.choice((0, 300, 4000)))
            for n in range(30)
        ],
        decide=lambda _host, number, _payload: (
            Passing(late_ns=late[number]) if number in late else WELL
        ),
        fate=lambda number, _src, dst: lost.get(number) if dst == "town-1" else None,
        as_frames=lambda message, mask: frames(
            wire.encode(message), [37, 900] if divided else [], mask
        ),
    )


def grow(source: Path, target: Path, share: float) -> None:
    """The first part of each file of a run; records and log lines may be cut anywhere."""
    for path in source.rglob("*"):
        if path.suffix in (".pcap", ".jsonl"):
            data = path.read_bytes()
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data[: int(share * len(data))])
    shutil.copy(source / "run.json", target / "run.json")


def delays_of_the_whole(folder: Path) -> list[float]:
    """The deliveries that the analysis reads from all captures at once."""
    delays = []
    for number in (1, 2):
        host = Host(f"town-{number}", 3 + number, f"10.77.0.{3 + number}")
        place = LinkPlace(host.name, 0x0A4D0003 + number, int.from_bytes(host.mac), {}, {})
        rows = read_link(parse((folder / "pcap" / f"{host.name}.pcap").read_bytes()), place)[0]
        first: dict[str, float] = {}
        for row in rows.to_pylist():
            if row["kind"] == "PUBLISH" and row["direction"] == "down" and row["complete"]:
                first.setdefault(row["id"], (row["last_ns"] - row["published_ns"]) / 1e9)
        delays += first.values()
    return sorted(delays)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.lists(st.floats(0.0, 1.0), max_size=6))
def test_reading_a_growing_run_gives_its_true_deliveries(tmp_path_factory, seed, steps):
    folder = tmp_path_factory.mktemp("live")
    made = a_run(seed).write(folder / "whole")
    (folder / "growing").mkdir()
    grow(folder / "whole", folder / "growing", 0.0)
    watched = WatchedRun(folder / "growing")
    seen = 0
    for share in [*sorted(steps), 1.0]:
        grow(folder / "whole", folder / "growing", share)
        watched.look()
        delivered = sum(level.delivered for level in watched.levels(START_NS, 30.0))
        assert delivered >= seen
        seen = delivered
    watched.look(final=True)
    levels = watched.levels(START_NS + 3600 * 10**9, 30.0)
    assert [level.level for level in levels] == [5, 4, 3, 2, 1]
    assert sum(level.published for level in levels) == 30
    assert sum(level.expected for level in levels) == 60
    delays = delays_of_the_whole(folder / "whole")
    assert sum(level.delivered for level in levels) == len(delays) == len(made.arrivals) == 56
    assert sum(level.overdue for level in levels) == 4
    for level in levels:
        assert (level.max is None) == bool(level.overdue)
    assert max(level.max or 0 for level in levels) <= delays[-1]


def test_messages_behind_bytes_that_the_capture_lost_are_read_in_the_end():
    captures = Captures()
    connection = Connection(
        captures, TOWN, BROKER, lambda _h, number, _p: Passing(down=number != 6)
    )
    connection.open(START_NS)
    for number in range(40):
        message = wire.Message(
            wire.Kind.PUBLISH, 5, 1, 0, number + 1, START_NS, topic="alert", payload=bytes(60)
        )
        connection.send(BROKER, frame(wire.encode(message)), START_NS + (100 + number * 1000) * MS)
    records, link, reported = captures.records["town"], LiveLink(0x0A4D0002), []
    for record in sorted(records):
        some = Captures()
        some.records["town"] = [record]
        reported.append(len(link.add(parse(some.pcap("town")))))
    assert sum(reported) == 39
    assert max(reported) == 22  # that waited for 20 s
    assert not link.finish()


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_labelled_chunks_in_small_portions_are_those_of_the_whole_link(style, seed):
    chance = random.Random(seed)
    messages = [
        wire.Message(
            wire.Kind.PUBLISH,
            priority=1 + number % 5,
            origin=1,
            message_id=wire.message_id(1, number + 1),
            published_ns=START_NS + number,
            topic="alert",
            payload=chance.randbytes(chance.choice((0, 30, 1500))),
        )
        for number in range(20)
    ]
    writer, _ = write_mixed(chance, messages, style, 200, chance.choice((b"", b"mask")))
    captures = Captures()
    late = {number: chance.randrange(60) * MS for number in chance.sample(range(6, 60), 12)}
    stream = Connection(
        captures, TOWN, BROKER, lambda _h, number, _p: Passing(late_ns=late.get(number, 0))
    )
    stream.opening_seq = chance.choice((1000, 2**32 - 5000))
    stream.open(START_NS)
    stream.send(BROKER, writer.data, START_NS + 500 * MS)
    whole = captures.pcap("town")
    rows = read_link(parse(whole), PLACE)[0].to_pylist()
    expected = {(row["id"], row["published_ns"], row["last_ns"]) for row in rows if row["complete"]}
    assert len(expected) == 20

    records = sorted(captures.records["town"], key=lambda record: record[0])
    link, found = LiveLink(0x0A4D0002), {}
    while records:
        some = Captures()
        size = chance.randrange(1, 9)
        some.records["town"], records = records[:size], records[size:]
        for one in link.add(parse(some.pcap("town"))):
            found.setdefault(one.identity, tuple(one))
    assert set(found.values()) == expected
    (connection,) = link._connections.values()
    assert not connection.segments


SUBSCRIPTIONS = subscriptions_of({"siren": ["alert"], "town": ["alert", "rain"]})
S = 10**9


def test_a_delivery_that_has_not_arrived_is_in_flight_and_then_overdue():
    live = Live(SUBSCRIPTIONS)
    live.published("a", "sensor", "alert", 5, 0)
    live.published("b", "sensor", "rain", 1, 10 * S)
    live.published("a", "sensor", "alert", 5, 0)  # added twice
    live.arrived("a", "siren", 0, 2 * S)
    live.arrived("a", "siren", 0, 9 * S)  # a duplicate
    urgent, other = live.levels(12 * S, 5.0)
    assert (urgent.published, urgent.expected, urgent.delivered) == (1, 2, 1)
    assert (urgent.in_flight, urgent.overdue, urgent.p50, urgent.max) == (0, 1, None, None)
    assert urgent.not_within_s["p50"] == 7.0, "half of 2 s, and of the 12 s that the other took"
    assert urgent.not_within_s["max"] == 12.0
    assert (urgent.recent, urgent.recent_p50) == (0, None)
    assert urgent.not_within_s["recent_p50"] == 12.0, "overdue since 5 s"
    assert "recent_p50" not in live.levels(16 * S, 5.0)[0].not_within_s, "since 11 s"
    assert (other.level, other.in_flight, other.overdue, other.p50) == (1, 1, 0, None)
    assert live.levels(11 * S, 5.0)[0].recent == 1


def test_percentiles_count_what_is_overdue_and_not_what_is_under_way():
    live = Live(subscriptions_of({"siren": ["alert"]}))
    for number in range(10):
        live.published(str(number), "sensor", "alert", 5, 0)
    for number in range(4):
        live.arrived(str(number), "siren", 0, S)
    (level,) = live.levels(31 * S, 60.0)
    assert (level.in_flight, level.overdue, level.p50, level.max) == (6, 0, 1.0, 1.0)
    assert level.not_within_s == {}
    (level,) = live.levels(31 * S, 30.0)
    assert (level.delivered, level.overdue, level.p50, level.p95) == (4, 6, None, None)
    assert level.not_within_s["p50"] == level.not_within_s["p95"] == 31.0
    (level,) = live.levels(9999 * S, 0.0, until_ns=31 * S)
    assert level.not_within_s["max"] == 31.0, "the run was over then"
    assert live.last_ns == S


def test_an_arrival_may_be_known_before_its_publication_is():
    live = Live(SUBSCRIPTIONS, from_ns=5)
    live.arrived("a", "siren", 10, 2 * S)
    live.arrived("x", "siren", 1, 2 * S)  # before the lab was changed
    assert live.levels(3 * S, 5.0) == []
    live.published("a", "town", "alert", 5, 10)
    live.published("x", "town", "alert", 5, 1)
    (level,) = live.levels(3 * S, 5.0)
    assert (level.expected, level.delivered) == (1, 1)


def test_without_captures_the_logs_of_the_receivers_count(tmp_path):
    run = StarRun(publications=[Publication(0, 100 * number) for number in range(5)])
    run.write(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    manifest["topology"]["capture"]["enabled"] = False
    (tmp_path / "run" / "run.json").write_text(json.dumps(manifest))
    shutil.rmtree(tmp_path / "run" / "pcap")
    watched = WatchedRun(tmp_path / "run")
    watched.look()
    (level,) = watched.levels(START_NS, 30.0)
    assert not watched.by_captures
    assert (level.expected, level.delivered, level.overdue) == (10, 10, 0)

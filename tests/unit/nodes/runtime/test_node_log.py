"""A node's log is written at once, and a restarted node reads from it where its ids ended."""

import json
import os
from pathlib import Path

import pytest

from nodes.delivery.base import Dropped
from nodes.protocol.joined import join
from nodes.protocol.wire import Kind, Message, encode, message_id
from nodes.runtime.log import (
    MAX_HANDED_OVER,
    HandedOver,
    Log,
    about,
    about_dropped,
    handed_over,
    hex_id,
    last_counter,
)


def test_each_event_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    log = Log(str(path), "s1")
    log.write("publish", t=5, id="00", topic="警報\n")
    log.write("stop")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"t": 5, "node": "s1", "event": "publish", "id": "00", "topic": "警報\n"}
    assert second["t"] > 1_600_000_000_000_000_000
    log.close()


def test_a_log_that_is_opened_again_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    for _ in range(2):
        log = Log(str(path), "s1")
        log.write("start")
        log.close()
    assert len(path.read_text().splitlines()) == 2


def test_a_node_that_cannot_log_ends() -> None:
    log = Log("/dev/full", "s1")
    with pytest.raises(SystemExit, match=r"s1: cannot write its log: .*No space left"):
        log.write("start")
    log.close()


def test_the_counter_continues_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    assert last_counter(str(path)) == 0
    log = Log(str(path), "s1")
    log.write("start")
    assert last_counter(str(path)) == 0
    for counter in (1, 2, 3):
        log.write("publish", id=hex_id(message_id(2, counter)), topic="t")
    log.write("receive", id=hex_id(message_id(9, 99)), topic="publish")
    log.close()
    assert last_counter(str(path)) == 3


@pytest.mark.parametrize("kept", [1, 20, 60, 75, 90])
def test_a_torn_line_costs_one_number_and_no_restart(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "s1.jsonl"
    log = Log(str(path), "s1")
    log.write("publish", t=10**18, id=hex_id(message_id(2, 7)), topic="t")
    log.close()
    whole = path.read_bytes()
    torn = whole.replace(b"00000007", b"00000008")[:kept]
    path.write_bytes(whole + torn)
    for _ in range(2):  # the second start finds the line in the middle of the file
        log = Log(str(path), "s1")
        log.write("start")
        log.close()
        assert last_counter(str(path)) == 8
    first, second, *starts = path.read_bytes().splitlines()
    assert (first + b"\n", second) == (whole, torn)
    assert [json.loads(line)["event"] for line in starts] == ["start", "start"]


def test_the_counter_continues_whatever_the_file_contains(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b'5\n{"event": "publish"}\n{"event": "publish", "id": 3}\n\xff\n[]\n')
    assert last_counter(str(path)) == 5


def test_an_event_that_the_disk_accepts_in_pieces_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "s1.jsonl", os.write
    log = Log(str(path), "s1")
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    log.write("start", kind="sensor")
    log.close()
    assert json.loads(path.read_text())["kind"] == "sensor"


def test_a_dropped_message_is_described_however_long_topic_and_routing_are() -> None:
    message = Message(
        Kind.PUBLISH,
        priority=4,
        message_id=7,
        topic="t" * 255,
        routing=bytes(65_535),
        payload=bytes(1_000),
    )
    assert list(about_dropped("siren", Dropped(encode(message), 4, "no room"))) == [
        {
            "id": "0000000000000007",
            "kind": "PUBLISH",
            "topic": "t" * 255,
            "priority": 4,
            "peer": "siren",
            "reason": "no room",
        }
    ]


def test_each_of_several_joined_publications_that_are_dropped_is_described() -> None:
    readings = [Message(Kind.PUBLISH, message_id=number, topic="slope") for number in (7, 8)]
    records = about_dropped("hall", Dropped(encode(join(readings, 1)), 1, "no room"))
    assert [(one["id"][-1], one["kind"]) for one in records] == [("7", "PUBLISH"), ("8", "PUBLISH")]


def test_a_restarted_subscriber_knows_which_publications_it_received(tmp_path: Path) -> None:
    path = tmp_path / "c1.jsonl"
    assert handed_over(str(path)) is None
    log = Log(str(path), "c1")
    log.write("start")
    assert handed_over(str(path)) is None, "a subscriber that was never ready has missed nothing"
    log.write("ready")
    assert handed_over(str(path)) == []
    alert = Message(Kind.PUBLISH, 5, message_id=message_id(2, 1), topic="alert")
    log.write("receive", t=7, **about(alert))
    log.write("duplicate", t=8, **about(alert))
    log.close()
    with path.open("a") as file:
        file.write('{"event": "receive"}\n5\n{"event": "rece')
    assert handed_over(str(path)) == [HandedOver(message_id(2, 1), "alert", 5, 7)]


def test_only_the_newest_entries_of_a_long_log_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c1.jsonl"
    lines = [
        {"t": counter, "event": "receive", "id": hex_id(counter), "topic": "t", "priority": 3}
        for counter in range(MAX_HANDED_OVER + 5)
    ]
    path.write_text("\n".join(map(json.dumps, [{"event": "ready"}, *lines])))
    before = handed_over(str(path))
    assert before is not None
    assert (len(before), before[0].message_id) == (MAX_HANDED_OVER, 5)

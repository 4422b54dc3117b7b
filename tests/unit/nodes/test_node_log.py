"""A node's log is there at once, and tells a node that is started again where its ids ended."""

import json
from pathlib import Path

import pytest

from nodes.runtime.log import Log, hex_id, last_counter
from nodes.wire import message_id


def test_each_event_is_in_the_file_as_soon_as_it_happened(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    log = Log(str(path), "s1")
    log.write("publish", t=5, id="00", topic="警報\n")
    log.write("stop")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"t": 5, "node": "s1", "event": "publish", "id": "00", "topic": "警報\n"}
    assert second["t"] > 1_600_000_000_000_000_000
    log.close()


def test_a_log_that_is_opened_again_goes_on(tmp_path: Path) -> None:
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


def test_the_counter_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    assert last_counter(str(path)) == 0
    log = Log(str(path), "s1")
    log.write("start")
    assert last_counter(str(path)) == 0
    for counter in (1, 2, 3):
        log.write("publish", id=hex_id(message_id(2, counter)), topic="t")
    log.write("receive", id=hex_id(message_id(9, 99)), topic="publish")
    log.close()
    with path.open("a") as file:
        file.write('{"t": 1, "event": "publish", "id"')  # cut off
    assert last_counter(str(path)) == 3

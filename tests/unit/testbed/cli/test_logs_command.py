"""Logs of several nodes read as one."""

import json
from itertools import islice

import pytest

from testbed.cli.commands import logs
from testbed.errors import InputError


def log(folder, node: str, *times: int) -> None:
    lines = [
        json.dumps({"t": t * 10**9, "node": node, "event": "publish", "id": f"{t:016x}"})
        for t in times
    ]
    (folder / f"{node}.jsonl").write_text("\n".join(lines) + "\n")


def test_lines_of_all_nodes_come_by_time(tmp_path):
    log(tmp_path, "a", 1, 4)
    log(tmp_path, "b", 2, 3)
    lines = logs.read(logs.files_of(tmp_path, None))
    assert [line["node"] for line in lines] == ["a", "b", "b", "a"]


def test_a_line_that_is_still_being_written_is_left_out(tmp_path):
    log(tmp_path, "a", 1)
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('{"t": 2, "node"')
    assert len(logs.read(logs.files_of(tmp_path, "a"))) == 1


def test_a_torn_line_in_the_middle_is_left_out(tmp_path):
    log(tmp_path, "a", 1, 2)
    text = (tmp_path / "a.jsonl").read_text()
    (tmp_path / "a.jsonl").write_text(text.replace("}\n", "\n", 1))
    assert [line["t"] for line in logs.read(logs.files_of(tmp_path, "a"))] == [2 * 10**9]


def test_the_stderr_of_a_node_that_failed_is_shown(tmp_path):
    (tmp_path / "a.stderr").write_text("a: the address is taken\n")
    (line,) = logs.read(logs.files_of(tmp_path, "a"))
    assert (line["event"], line["text"]) == ("stderr", "a: the address is taken")


def test_an_unknown_node_is_answered_with_the_nearest(tmp_path):
    log(tmp_path, "siren", 1)
    with pytest.raises(InputError) as caught:
        logs.files_of(tmp_path, "sirn")
    assert caught.value.hint == "did you mean 'siren'?"


def test_following_goes_on_where_it_stopped(tmp_path):
    log(tmp_path, "a", 1)
    lines = logs.follow_lines(logs.files_of(tmp_path, "a"))
    assert [line["t"] for line in islice(lines, 1)] == [10**9]
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write(json.dumps({"t": 2, "node": "ä", "event": "stop"}) + "\n")
    assert [line["t"] for line in islice(lines, 1)] == [2]


def test_a_line_for_people_has_time_node_event_and_the_rest():
    line = {"t": 1_234_567_890, "node": "siren", "event": "receive", "priority": 5}
    text = logs.render(line).plain
    assert text.split()[1:] == ["siren", "receive", "priority=5"]
    assert ".234 " in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            {"event": "unreachable", "peer": "broker", "reason": "refused"},
            "unreachable peer=broker reason=refused",
        ),
        (
            {"event": "receive", "id": "0a", "published_ns": 10**9 - 238_900_000},
            "receive     id=0a delay=238.9ms",
        ),
        ({"event": "output", "text": "hello [world]"}, "output      hello [world]"),
    ],
)
def test_a_line_for_people_shows_the_delay_and_the_text_of_programs(line, shown):
    text = logs.render({"t": 10**9, "node": "siren", **line}).plain
    assert text[12:] == f" siren           {shown}"

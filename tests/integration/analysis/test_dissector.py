"""tshark reads our messages with the dissector that is generated from the field table."""

import random
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from nodes.protocol import wire
from nodes.protocol.joined import join
from support.captures.labelled_streams import STYLES, write_mixed
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, frame
from testbed.capture.dissector import dissector

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="no tshark; apt-get install tshark"
)
SENSOR = Host("sensor", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")
PORT = 8765


def seen(capture: Path, *fields: str) -> list[list[str]]:
    """The values of each of these fields, in the order of the capture."""
    script = capture.with_suffix(".lua")
    script.write_text(dissector(PORT))
    asked = ["tshark", "-n", "-X", f"lua_script:{script}", "-r", str(capture), "-Y", "testbed"]
    chosen = [argument for name in fields for argument in ("-e", f"testbed.{name}")]
    done = subprocess.run(
        [*asked, "-T", "fields", *chosen], capture_output=True, text=True, check=True
    )
    assert "lua" not in done.stderr.lower(), done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [
        [value for row in rows for value in row[n].split(",") if value] for n in range(len(fields))
    ]


def captured(folder: Path, *chunks: bytes) -> Path:
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER)
    connection.open(START_NS)
    for number, chunk in enumerate(chunks):
        connection.send(SENSOR, chunk, START_NS + (100 + 10 * number) * MS)
    path = folder / "broker.pcap"
    path.write_bytes(captures.pcap("broker"))
    return path


def readings(count: int) -> list[wire.Message]:
    chance = random.Random(5)
    return [
        wire.Message(
            wire.Kind.PUBLISH,
            priority=chance.randint(1, 5),
            hops=chance.randint(1, 9),
            origin=7,
            message_id=wire.message_id(7, number),
            published_ns=START_NS + number,
            topic="rain",
            payload=chance.randbytes(chance.choice([1, 20, 900])),
        )
        for number in range(1, count + 1)
    ]


def test_every_field_of_the_header_has_the_value_that_was_sent(tmp_path: Path) -> None:
    messages = readings(9)
    path = captured(tmp_path, *(frame(wire.encode(message), b"abcd") for message in messages))
    names = [field.name for field in wire.FIELDS]
    found = dict(zip(names, seen(path, *names), strict=True))
    assert [int(value, 0) for value in found["message_id"]] == [m.message_id for m in messages]
    for name in ("priority", "hops", "published_ns", "origin"):
        assert [int(value) for value in found[name]] == [getattr(m, name) for m in messages]
    assert set(found["kind"]) == {str(int(wire.Kind.PUBLISH))}
    assert set(found["topic_length"]) == {"4"}


def test_topic_place_routing_section_and_payload_are_apart(tmp_path: Path) -> None:
    message = wire.Message(
        wire.Kind.PUBLISH, topic="slope", payload=b"\x0a\x0b", routing=b"\x01\x02", place=(5, 6)
    )
    path = captured(tmp_path, frame(wire.encode(message), b"abcd"))
    found = seen(path, "topic", "coordinate", "routing", "payload")
    assert found == [["slope"], ["5", "6"], ["0102"], ["0a0b"]]


def test_joined_publications_are_shown_one_by_one(tmp_path: Path) -> None:
    parts = readings(3)
    path = captured(tmp_path, frame(wire.encode(join(parts, 9)), b"abcd"))
    (found,) = seen(path, "message_id")
    assert [int(value, 0) for value in found] == [0, *(part.message_id for part in parts)]


@pytest.mark.parametrize("style", STYLES)
def test_messages_behind_any_label_are_read(tmp_path: Path, style: str) -> None:
    messages = readings(20)
    writer, truths = write_mixed(random.Random(3), messages, style, 1443, b"abcd")
    starts = sorted({at for truth in truths for at in truth.frames})
    chunks = [writer.data[at:end] for at, end in pairwise([*starts, len(writer.data)])]
    (found,) = seen(captured(tmp_path, *chunks), "message_id")
    assert sorted(int(value, 0) for value in found) == [m.message_id for m in messages]


def test_pieces_show_their_label_and_bytes_of_no_header_are_only_bytes(tmp_path: Path) -> None:
    piece = bytes([0x80 | 1 << 3 | 5]) + b"xyz"
    cut = wire.encode(readings(1)[0])[:20]
    path = captured(tmp_path, frame(piece, b"abcd"), frame(cut, b"abcd"), frame(b"?!", b"abcd"))
    script = path.with_suffix(".lua")
    script.write_text(dissector(PORT))
    asked = ["tshark", "-n", "-X", f"lua_script:{script}", "-r", str(path), "-T", "fields"]
    fields = ("-e", "testbed.level", "-e", "testbed.piece", "-e", "testbed.cut")
    done = subprocess.run([*asked, *fields], capture_output=True, text=True, check=True)
    printed = [line.split("\t") for line in done.stdout.splitlines() if line.strip()]
    assert printed == [["5", "78797a", ""], ["", "", cut.hex()], ["", "", b"?!".hex()]]


def test_the_command_writes_it(testbed, tmp_path: Path, repository: Path) -> None:
    script = tmp_path / "testbed.lua"
    assert testbed("dissector", "--to", script).returncode == 0
    sample = repository / "captures" / "sample" / "pcap" / "siren.pcap"
    asked = ["tshark", "-n", "-X", f"lua_script:{script}", "-r", str(sample)]
    urgent = [*asked, "-Y", "testbed.priority == 5", "-T", "fields", "-e", "testbed.topic"]
    done = subprocess.run(urgent, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["alerts"] * 5
    refused = testbed("dissector", "--to", tmp_path / "nowhere" / "testbed.lua")
    assert refused.returncode == 2
    assert "cannot be written: No such file or directory" in refused.stderr

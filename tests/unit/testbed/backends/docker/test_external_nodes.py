"""External nodes: the descriptions of their containers, and their output. Nothing here needs an engine."""

import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.backends.docker.containers import EXTERNAL_ROLE, ROLE_LABEL
from testbed.backends.docker.external_nodes import (
    continued,
    external_container,
    holder_container,
    is_loopback,
    listens,
    output_lines,
    write_external_files,
    write_hosts_files,
)
from testbed.places import LabPlace, RunPlace
from testbed.topology import load_text
from testbed.topology.model import External, Node, NodeKind, Topology

FILE = """
name: other
nodes:
  broker:
    kind: external
    image: eclipse-mosquitto:2
    env: {LEVEL: "3"}
    files: {/etc/broker.conf: broker.conf}
  plain: {kind: external, image: "somebody/own:1", command: "echo {node}"}
"""


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    (tmp_path / "broker.conf").write_text("listener 1883\n")
    return load_text(FILE, "other.yaml", folder=tmp_path)


@pytest.fixture
def where(tmp_path: Path) -> tuple[LabPlace, RunPlace]:
    return LabPlace(tmp_path / "other"), RunPlace(tmp_path / "other-1")


def test_a_holder_has_no_network_and_no_rights(
    topology: Topology, where: tuple[LabPlace, RunPlace]
) -> None:
    recipe = holder_container("ours:1", topology.node("broker"), *where)
    assert recipe["network_mode"] == "none"
    assert recipe["cap_drop"] == ["ALL"]
    assert ROLE_LABEL not in recipe["labels"]


def test_an_external_node_shares_its_holders_network_and_gets_its_files_and_environment(
    topology: Topology, where: tuple[LabPlace, RunPlace]
) -> None:
    broker = topology.node("broker")
    write_external_files(where[0], broker)
    recipe = external_container("eclipse-mosquitto:2", broker, "abc", *where)
    mounts = {mount["Target"]: mount for mount in recipe["mounts"]}
    assert recipe["network_mode"] == "container:abc"
    assert recipe["command"] is None, "the image's own"
    assert recipe["environment"] == {"LEVEL": "3"}
    assert mounts.keys() == {"/etc/broker.conf", "/etc/hosts"}
    assert mounts["/etc/broker.conf"]["ReadOnly"]
    assert Path(mounts["/etc/broker.conf"]["Source"]).read_text() == "listener 1883\n"
    assert recipe["labels"][ROLE_LABEL] == EXTERNAL_ROLE


def test_external_nodes_know_all_names_also_of_nodes_that_come_later(
    topology: Topology, where: tuple[LabPlace, RunPlace]
) -> None:
    recipe = external_container("any:1", topology.node("plain"), "abc", *where)
    (mount,) = recipe["mounts"]
    write_hosts_files(where[0], topology)
    file = Path(mount["Source"])
    assert file.read_text() == "127.0.0.1 localhost\n10.77.0.1 broker\n10.77.0.2 plain\n"
    inode = file.stat().st_ino
    late = Node("late", 3, NodeKind.SENSOR, "lan", address="10.77.0.3")
    write_hosts_files(where[0], replace(topology, nodes=(*topology.nodes, late)))
    assert file.read_text().endswith("10.77.0.3 late\n")
    assert file.stat().st_ino == inode, "the container sees the same file"


def test_an_external_node_may_have_its_own_hosts_file(
    topology: Topology, where: tuple[LabPlace, RunPlace]
) -> None:
    plain = topology.node("plain")
    own = replace(plain, external=External("any:1", files=(("/etc/hosts", "10.0.0.1 x\n"),)))
    (mount,) = external_container("any:1", own, "abc", *where)["mounts"]
    write_external_files(where[0], own)
    assert Path(mount["Source"]).read_text() == "10.0.0.1 x\n"


def test_files_arrive_byte_by_byte_whatever_the_locale(
    topology: Topology, where: tuple[LabPlace, RunPlace]
) -> None:
    odd = "\ufeffline\r\nother\rüñ\0end"
    own = replace(topology.node("plain"), external=External("any:1", files=(("/odd", odd),)))
    write_external_files(where[0], own)
    mounts = {m["Target"]: m for m in external_container("any:1", own, "abc", *where)["mounts"]}
    assert Path(mounts["/odd"]["Source"]).read_bytes() == odd.encode()


def test_a_line_for_the_shell_is_given_to_the_shell(
    topology: Topology, where: tuple[LabPlace, RunPlace]
) -> None:
    recipe = external_container("somebody/own:1", topology.node("plain"), "abc", *where)
    assert recipe["command"] == ["sh", "-c", "echo plain"]


def test_a_port_counts_when_somebody_listens_on_it() -> None:
    with socket.socket() as ear:
        ear.bind(("", 0))
        port = ear.getsockname()[1]
        assert not listens(os.getpid(), port)
        ear.listen()
        assert listens(os.getpid(), port)
    assert not listens(os.getpid(), port)


def test_a_program_that_listens_on_loopback_only_is_not_ready() -> None:
    with socket.socket() as ear:
        ear.bind(("127.0.0.1", 0))
        ear.listen()
        assert not listens(os.getpid(), ear.getsockname()[1])


@pytest.mark.parametrize(
    ("address", "itself_only"),
    [
        ("0100007F", True),  # 127.0.0.1
        ("00000000", False),  # any
        ("05004D0A", False),  # 10.77.0.5
        ("00000000000000000000000001000000", True),  # ::1
        ("0000000000000000FFFF00000100007F", True),  # ::ffff:127.0.0.1
        ("00000000000000000000000000000000", False),
        ("B80D017F000000000000000001000000", False),
    ],
)
def test_loopback_is_known_as_the_kernel_writes_it(address: str, itself_only: bool) -> None:
    assert is_loopback(address) == itself_only


def test_output_becomes_log_lines_with_the_engines_time_to_the_nanosecond() -> None:
    output = (
        "2026-11-16T06:44:58.091234567Z starting\n"
        "2026-11-16T06:44:59Z whole second\n"
        "2026-11-16T06:44:59.5Z \n"
        "no stamp: not the engine's, nor isZ this\n"
    )
    lines = list(output_lines("broker", output))
    assert [line["text"] for line in lines] == ["starting", "whole second", ""]
    assert [line["t"] % 10**10 for line in lines] == [8_091_234_567, 9_000_000_000, 9_500_000_000]
    assert {(line["node"], line["event"]) for line in lines} == {("broker", "output")}


def test_odd_characters_do_not_tear_a_line() -> None:
    (line,) = output_lines("a", "2026-11-16T06:44:58Z 50 %\r100 %\x0c \u2028 end\r\n")
    assert line["text"] == "50 %\r100 %\x0c \u2028 end"


def output_line(second: int, text: str) -> dict[str, object]:
    return {"t": second * 10**9, "node": "a", "event": "output", "text": text}


def log(*lines: dict[str, object]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_output_from_before_a_replacement_stays_in_the_log() -> None:
    first, second = (
        [output_line(1, "begun"), output_line(2, "died")],
        [output_line(5, "begun again")],
    )
    after_first = continued("", first)
    after_second = continued(after_first, second)
    assert after_second == log(*first, *second)
    more = [*second, output_line(6, "and more")]
    assert continued(after_second, more) == log(*first, *more), "nothing twice"
    assert continued(after_second, []) == after_second


def test_output_that_the_engine_has_dropped_stays_in_the_log_and_torn_lines_go() -> None:
    before = log(output_line(1, "old"), output_line(2, "kept")) + '{"t": 3'
    assert continued(before, [output_line(2, "kept")]) == log(
        output_line(1, "old"), output_line(2, "kept")
    )

"""links.json: valid settings, and the errors for invalid ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.board.errors import WrongInput
from nodes.board.links import parse_links, read_links
from nodes.board.plan import Kernel, Note, device_name, read_note, write_note

GOOD: dict[str, Any] = {
    "interface": "eth0",
    "peers": ["192.0.2.11", "10.77.0.0/16"],
    "up": {"rate_bps": 80000.0, "delay_s": 0.06, "jitter_s": 0.015, "loss": 0.0,
           "queue_bytes": None, "burst_bytes": None, "cut": False},
    "down": {"rate_bps": None, "delay_s": 0.0, "jitter_s": 0.0, "loss": 0.0,
             "queue_bytes": None, "burst_bytes": None, "cut": False},
}  # fmt: skip


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "links.json"
    path.write_text(json.dumps(GOOD))
    links = read_links(path)
    assert (links.interface, [str(one) for one in links.peers]) == (
        "eth0",
        ["192.0.2.11/32", "10.77.0.0/16"],
    )
    assert not links.up.open
    assert links.down.open


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"interface": "eth0; reboot"}, "is not the name of an interface"),
        ({"interface": "--help"}, "is not the name of an interface"),
        ({"interface": ""}, "is not the name of an interface"),
        ({"interface": 7}, "is not the name of an interface"),
        ({"peers": "192.0.2.1"}, "peers must be a list"),
        ({"peers": ["fe80::1"]}, "peer 'fe80::1' is not an IPv4 address"),
        ({"peers": [3]}, "peer 3 is not an IPv4 address"),
        ({"peers": ["10.77.0.1/16"]}, "is not an IPv4 address or prefix"),
        ({"up": []}, "up must be an object"),
        ({"up": {"speed": 1}}, "unknown in up: speed"),
        ({"more": 1}, "unknown: more"),
        ({"up": {"rate_bps": -1}}, "rate_bps must be a number from 0 on"),
        ({"up": {"rate_bps": 0}}, "cut: true"),
        ({"up": {"rate_bps": True}}, "rate_bps must be a number"),
        ({"up": {"rate_bps": float("nan")}}, "rate_bps must be a number"),
        ({"up": {"loss": 1.5}}, "more than all packets"),
        ({"up": {"delay_s": 0.1, "jitter_s": 0.2}}, "more than the delay"),
        ({"up": {"queue_bytes": 1.5}}, "whole number of bytes"),
        ({"up": {"cut": "yes"}}, "cut must be true or false"),
    ],
)
def test_an_invalid_setting_is_named(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WrongInput, match=sentence):
        parse_links({**GOOD, **change})


def test_no_file_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match=r"cannot be read: No such file"):
        read_links(tmp_path / "none.json")
    torn = tmp_path / "torn.json"
    torn.write_text("{")
    with pytest.raises(WrongInput, match=r"torn\.json is not JSON"):
        read_links(torn)
    torn.write_text("[]")
    with pytest.raises(WrongInput, match=r"torn\.json: it must be an object"):
        read_links(torn)


def test_a_note_comes_back_as_it_was() -> None:
    note = Note("/etc/testbed/valley/links.json", "eth0", ("tx", "gro"), 65535,
                Kernel(netem=True, bpf=False), True, "a" * 12, "b" * 12)  # fmt: skip
    assert read_note(write_note(note)) == note
    assert read_note(write_note(Note("/l", "e", (), 1, Kernel(False, False)))) is not None


@pytest.mark.parametrize("alias", ["", "uplink", "{}", "[]", '{"testbed": 1}', "7"])
def test_a_foreign_alias_is_no_note(alias: str) -> None:
    assert read_note(alias) is None


def test_a_path_too_long_for_the_note_is_an_error() -> None:
    note = Note("/etc" + "/deep" * 40, "eth0", ("tx",), 65535, Kernel(True, True))
    with pytest.raises(WrongInput, match="too long"):
        write_note(note)


def test_devices_have_names_that_the_kernel_takes() -> None:
    first = device_name(Path("/etc/testbed/a/links.json"), "eth0")
    assert len(first) <= 15
    assert first == device_name(Path("/etc/testbed/a/links.json"), "eth0")
    assert first != device_name(Path("/etc/testbed/b/links.json"), "eth0")
    assert first != device_name(Path("/etc/testbed/a/links.json"), "eth1")

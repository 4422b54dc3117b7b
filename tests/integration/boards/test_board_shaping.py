"""Real `tc` shapes the links of boards in namespaces: only for peers, and `unshape` restores the interface."""

import os
import shutil
import time
from pathlib import Path

import pytest

from support.boards.board_bench import FAR_PEER, NON_PEER, PEER, Bench, eventually, write_links

pytestmark = [
    pytest.mark.netns,
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("tc"), reason="no tc; apt-get install iproute2"),
]


def is_shaped(bench: Bench, direction: str, address: str, rate_bps: float) -> bool:
    received = bench.measure(direction, address, at_least=30)
    return len(received.times) >= 30 and received.rate_bps == pytest.approx(rate_bps, rel=0.08)


def passes_at_once(bench: Bench, direction: str, address: str) -> bool:
    received = bench.measure(direction, address, wait_s=0.3, at_least=60)
    took_s = received.times[-1] - received.times[0]
    return len(received.times) == 60 and took_s < 0.2 + received.sent_s


def is_cut(bench: Bench, direction: str, address: str) -> bool:
    return not bench.measure(direction, address, count=10, wait_s=0.4).times


def test_only_packets_of_peers_are_shaped(bench: Bench, links: Path) -> None:
    write_links(links, up={"rate_bps": 400e3}, down={"rate_bps": 800e3})
    assert bench.did("shape", links) == {"changed": True}
    for peer in (PEER, FAR_PEER):
        assert is_shaped(bench, "up", peer, 400e3)
        assert is_shaped(bench, "down", peer, 800e3)
    for direction in ("up", "down"):
        assert passes_at_once(bench, direction, NON_PEER)


def test_the_queue_of_a_link_has_the_requested_size(bench: Bench, links: Path) -> None:
    write_links(links, up={"rate_bps": 400e3, "queue_bytes": 20_000})
    bench.did("shape", links)
    received = bench.measure("up", PEER, at_least=17)
    left_meanwhile = 6 + 400e3 / 8 * received.sent_s / 1042
    assert 17 <= len(received.times) <= 19 + left_meanwhile  # 1,042 bytes each
    assert passes_at_once(bench, "down", PEER)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_cut_direction_is_cut_for_peers(bench: Bench, links: Path, direction: str) -> None:
    write_links(links, **{direction: {"cut": True, "rate_bps": 1e6}})
    bench.did("shape", links)
    other = "down" if direction == "up" else "up"
    assert is_cut(bench, direction, PEER)
    assert passes_at_once(bench, other, PEER)
    assert passes_at_once(bench, direction, NON_PEER)


def test_shaping_a_second_time_changes_nothing(bench: Bench, links: Path) -> None:
    write_links(links, up={"rate_bps": 400e3}, down={"cut": True})
    assert bench.did("shape", "--show", links)["changed"] is True
    bench.did("shape", links)
    before = bench.state()
    assert bench.did("shape", links) == {"changed": False}
    shown = bench.did("shape", "--show", links)
    assert shown["changed"] is False
    assert shown["wanted"]["up"]["rate_bps"] == 400e3
    assert shown["wanted"]["commands"]
    assert shown["in_force"]["disciplines"]["eth0"]["7bed:"] == "htb"
    assert bench.state() == before


def test_settings_change_while_the_link_is_shaped(bench: Bench, links: Path) -> None:
    bench.did("shape", write_links(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3}))
    assert bench.did("shape", write_links(links, up={"cut": True}, down={"rate_bps": 800e3})) == {
        "changed": True
    }
    assert is_cut(bench, "up", PEER)
    assert is_shaped(bench, "down", PEER, 800e3)
    bench.did("shape", write_links(links, up={"rate_bps": 800e3}, peers=[NON_PEER]))
    assert is_shaped(bench, "up", NON_PEER, 800e3)
    for direction in ("up", "down"):
        assert passes_at_once(bench, direction, PEER)


def test_unshape_leaves_the_interface_as_it_was_found(bench: Bench, links: Path) -> None:
    bench.ip("link", "set", "eth0", "gso_max_segs", "40")
    found = bench.state()
    bench.did("shape", write_links(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3}))
    assert bench.state()["offloads"] == '{"eth0": []}'
    bench.did("shape", write_links(links, up={"rate_bps": 200e3}, down={"rate_bps": 400e3}))
    assert bench.did("unshape", links) == {"changed": True}
    assert bench.state() == found
    assert bench.did("unshape", links) == {"changed": False}
    links.unlink()
    assert bench.did("unshape", links) == {"changed": False}
    assert bench.state() == found


def test_a_file_without_settings_removes_the_shaping(bench: Bench, links: Path) -> None:
    found = bench.state()
    assert bench.did("shape", write_links(links)) == {"changed": False}
    bench.did("shape", write_links(links, up={"rate_bps": 400e3}))
    assert bench.did("shape", write_links(links)) == {"changed": True}
    assert bench.state() == found


@pytest.mark.parametrize("missing", ["root", "ingress", "filters", "note", "shaper"])
def test_shaping_that_was_partly_removed_is_repaired_or_removed(
    bench: Bench, links: Path, missing: str
) -> None:
    write_links(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3})
    found = bench.state()
    for wanted in ("shape", "unshape"):
        bench.did("shape", links)
        (device,) = bench.devices()
        match missing:
            case "root" | "ingress":
                bench.tc("qdisc", "del", "dev", "eth0", missing)
            case "filters":
                bench.tc("filter", "del", "dev", "eth0", "parent", "7bed:")
            case "shaper":
                bench.tc("qdisc", "del", "dev", device, "root")
            case "note":
                # After the device is unplugged, the earlier state of its offloads is unknown.
                bench.ip("link", "del", device)
        assert bench.did(wanted, links) == {"changed": True}
        if wanted == "shape":
            assert is_shaped(bench, "up", PEER, 400e3)
            assert is_shaped(bench, "down", PEER, 400e3)
    left = bench.state()
    assert left["disciplines"] == found["disciplines"]
    assert bench.devices() == []
    assert left == found or missing == "note"


def test_a_device_that_a_killed_command_left_is_used_and_removed(bench: Bench, links: Path) -> None:
    write_links(links, up={"rate_bps": 400e3})
    found = bench.state()
    bench.did("shape", links)
    (device,) = bench.devices()
    bench.did("unshape", links)
    bench.ip("link", "add", "name", device, "type", "ifb")
    assert bench.did("unshape", links) == {"changed": True}
    bench.ip("link", "add", "name", device, "type", "ifb")
    bench.did("shape", links)
    assert is_shaped(bench, "up", PEER, 400e3)
    bench.did("unshape", links)
    assert bench.state() == found


def test_settings_of_other_programs_are_left_alone(
    bench: Bench, links: Path, tmp_path: Path
) -> None:
    write_links(links, up={"rate_bps": 400e3})
    bench.tc("qdisc", "add", "dev", "eth0", "root", "handle", "9:", "tbf", "rate", "1gbit",
             "burst", "100000", "limit", "100000")  # fmt: skip
    found = bench.state()
    done = bench.run("shape", links)
    assert (done.returncode, done.stdout) == (1, "")
    assert "eth0 has queueing disciplines of somebody else (tbf)" in done.stderr
    assert bench.did("unshape", links) == {"changed": False}
    assert bench.state() == found
    bench.tc("qdisc", "del", "dev", "eth0", "root")
    bench.did("shape", links)
    found = bench.state()
    other = write_links(tmp_path / "other.json", up={"rate_bps": 1e6})
    done = bench.run("shape", other)
    assert done.returncode == 1
    assert f"eth0 is shaped already, by {links}" in done.stderr
    assert bench.did("unshape", other) == {"changed": False}
    assert bench.state() == found


def test_shape_reports_a_missing_interface_and_unshape_ignores_it(
    bench: Bench, links: Path
) -> None:
    write_links(links, up={"rate_bps": 400e3})
    bench.did("shape", links)
    bench.unplug()
    done = bench.run("shape", links)
    assert (done.returncode, done.stderr) == (1, "there is no interface eth0\n")
    assert bench.did("unshape", links) == {"changed": False}
    assert bench.devices() == []


def test_u32_filters_serve_where_the_kernel_accepts_no_bpf_program(
    bench: Bench, links: Path, tmp_path: Path
) -> None:
    shim = tmp_path / "bin" / "tc"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\nfor argument; do [ "$argument" = bpf ] && exit 2; done\nexec {shutil.which("tc")} "$@"\n'
    )
    shim.chmod(0o755)
    environment = {"PATH": f"{shim.parent}:{os.environ['PATH']}"}
    others = [f"198.51.100.{number}" for number in range(0, 120, 2)]
    write_links(links, up={"rate_bps": 400e3}, down={"rate_bps": 800e3}, peers=[*others, PEER])
    found = bench.state()
    bench.did("shape", links, **environment)
    assert "u32" in bench.state()["filters"]
    assert bench.did("shape", links, **environment) == {"changed": False}
    assert is_shaped(bench, "up", PEER, 400e3)
    assert is_shaped(bench, "down", PEER, 800e3)
    assert passes_at_once(bench, "up", NON_PEER)
    assert passes_at_once(bench, "down", NON_PEER)
    bench.did("unshape", links, **environment)
    assert bench.state() == found


def test_many_peers_are_shaped(bench: Bench, links: Path) -> None:
    others = [f"198.51.{number // 100}.{2 * (number % 100)}" for number in range(700)]
    bench.did("shape", write_links(links, down={"rate_bps": 400e3}, peers=[*others, PEER]))
    assert is_shaped(bench, "down", PEER, 400e3)
    assert passes_at_once(bench, "down", NON_PEER)


def test_delay_is_applied_or_refused_with_a_reason(bench: Bench, links: Path) -> None:
    write_links(links, up={"delay_s": 0.1, "rate_bps": 1e6})
    found = bench.state()
    done = bench.run("shape", links)
    if done.returncode:
        assert done.returncode == 1
        assert "`up` asks for delay, jitter or loss, and this kernel has no netem" in done.stderr
        assert bench.state() == found
    else:
        assert "netem" in bench.state()["disciplines"]


@pytest.mark.netem
def test_delay_and_loss_apply_to_peers_only(bench: Bench, links: Path) -> None:
    write_links(links, up={"delay_s": 0.2}, down={"delay_s": 0.1, "loss": 0.5, "rate_bps": 8e6})
    bench.did("shape", links)
    for direction, delay in (("up", 0.2), ("down", 0.1)):
        with bench.listening(direction, PEER) as times:
            sent = time.time()
            for _ in range(8):
                bench.send(direction, PEER, 1)
            eventually(lambda: times)
            assert delay <= times[0] - sent < delay + 0.08
    assert 30 < len(bench.measure("down", PEER, count=100).times) < 70
    assert passes_at_once(bench, "up", NON_PEER)
    assert passes_at_once(bench, "down", NON_PEER)

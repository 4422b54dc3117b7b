"""The summary of an overlay in the terminal and in the report."""

from typing import Any

import pytest
from rich.console import Console

from analysis.report.sections import overlay
from testbed.cli.tables.summary import _overlay

LEVEL = {"handled": 20, "forwarded": 8, "copies": 30, "sent_again": 1, "repeated": 0, "relayed": 5}
REPAIR = {
    "node": "b",
    "died_ns": 3_000_000_000,
    "noticed_s": 0.5,
    "clients": 2,
    "moved": 2,
    "moved_s": 1.25,
    "flows": 3,
    "flows_hit": 1,
    "lost": 0,
    "healed": True,
    "repair_s": 4.0,
}


def overlay_summary(**more: Any) -> dict[str, Any]:
    return {
        "method": "sg-tbps",
        "brokers": 3,
        "copies_per_publication": 4.5,
        "forwards": {"5": LEVEL},
        "by_broker": {
            name: {**LEVEL, "copies": copies, "relay_share": 0.25} for name, copies in BROKERS
        },
        "control": {"bytes_per_s_per_broker": 120.0, "by_kind": {}, "by_overlay_kind": {}},
        "stop_go": {"stop": 0, "go": 0, "withheld": 0},
        "paths": {},
        "repairs": [],
        **more,
    }


BROKERS = (("a", 3), ("b", 9), ("c", 6))


def lines(**more: Any) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        for title, text in _overlay(overlay_summary(**more)):
            console.print(title, text)
    return capture.get()


def test_the_terminal_sums_up_several_brokers_in_a_line():
    assert lines().split("\n")[0] == (
        "overlay 3 brokers, sg-tbps; 4.50 copies per publication; 25.0% of the publications that they "
        "handled were only relayed; 120 bytes/s of control traffic per broker"
    )
    assert list(_overlay(overlay_summary(brokers=1))) == []
    assert list(_overlay(None)) == []


@pytest.mark.parametrize(
    ("more", "sentence", "cell"),
    [
        ({}, "b died; repaired after 4.00 s, 0 lost", "4.00\u00a0s"),
        ({"flows_hit": 0, "repair_s": 0.0}, "b died; no flow was affected", "no flow affected"),
        (
            {"healed": False, "repair_s": None, "lost": 7},
            "b died; not all flows were repaired: 7 lost",
            "not repaired",
        ),
    ],
)
def test_a_death_is_reported_with_its_repair(more, sentence, cell):
    row = {**REPAIR, **more}
    assert sentence in lines(repairs=[row])
    shown = overlay.repair_row(row, 1_000_000_000)
    assert (shown["healed"], shown["when"], shown["moved"]) == (cell, "2.000\u00a0s", "2 of 2")
    assert shown["bad"] == bool(more.get("lost"))


def test_the_report_has_stop_and_go_only_if_they_were_sent():
    assert "Stop" not in overlay.sentence(overlay_summary())
    text = overlay.sentence(overlay_summary(stop_go={"stop": 2, "go": 1, "withheld": 4}))
    assert (
        "Brokers sent `stop` 2 times and `go` 1 times; 4 publications without subscribers were withheld."
        in text
    )
    assert "Brokers only relayed 25\u00a0% of the publications that they handled." in text


def test_the_busiest_broker_comes_first():
    assert [row["name"] for row in overlay.broker_rows(overlay_summary())] == ["b", "c", "a"]


def test_bars_stand_in_the_order_of_the_rows_with_the_pages_colours():
    rows = [
        {"node": node, "level": level, "copies": 3} for node in ("late", "early") for level in "51"
    ]
    text = str(overlay.copies_chart(rows, "copies"))
    assert text.index(">late<") < text.index(">early<")
    assert "var(--level-5)" in text
    assert "var(--level-3)" not in text
    kinds = [{"node": "a", "kind": kind, "bytes_per_s": 1.0} for kind in overlay.KINDS]
    drawn = str(overlay.control_chart(kinds, "control"))
    assert all(f">{kind}<" in drawn for kind in overlay.KINDS)
    shares = [{"level": "5", "hops": hops, "share": 0.5} for hops in (2, 4)]
    assert 'aria-label="hops"' in str(overlay.hops_chart(shares, "hops"))


def test_every_kind_of_control_message_has_a_tone():
    from nodes.protocol.wire import Kind

    assert set(overlay.KINDS) == {kind.name for kind in Kind} - {"PUBLISH"}

"""Tables that people read."""

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from testbed.cli.commands.plan import plan_table
from testbed.cli.commands.status import nodes_table
from testbed.cli.commands.sweep import missing_sentence, points_table
from testbed.cli.measurement import warn_of_missing
from testbed.cli.tables.links import calibration_table
from testbed.cli.tables.summary import batch_tables, seconds, summary_tables
from testbed.lab.status import LabStatus, NodeStatus
from testbed.plan import Step, StepKind
from testbed.progress import Warned
from testbed.topology.model import Node, NodeKind, Profile, Topology

SUMMARY = {
    "run": "valley-1",
    "backend": "netns",
    "emulator": "relay",
    "messages": {
        "published": 10,
        "expected_deliveries": 20,
        "delivered": 19,
        "lost": 1,
        "duplicates": 0,
    },
    "delay_s": {
        "5": {"n": 9, "p50": 0.1234, "p95": 0.5, "p99": 1.0, "max": 2.5},
        "1": {"n": 10, "p50": 0.2, "p95": 0.2, "p99": 0.2, "max": 0.2},
    },
    "hops": {"5": {"mean": 2.0, "max": 2}, "1": {"mean": 2.0, "max": 2}},
    "overhead": {
        "payload_bytes": 1000,
        "wire_bytes": 2500,
        "packets": 30,
        "retransmitted_packets": 0,
    },
    "fidelity": {"ok": False, "reasons": ["The capture lost 3 packets."]},
}


def shown(*renderables) -> str:
    console = Console(width=140, record=True, quiet=False)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable)
    return capture.get()


def test_the_most_urgent_level_comes_first():
    text = shown(*summary_tables(SUMMARY))
    assert text.index("5 emergency") < text.index("1 routine")
    assert "123.4 ms" in text
    assert "2.50 s" in text
    assert "19 of 20 deliveries made, 1 lost" in text
    assert "2.50 x the payload" in text
    assert "The capture lost 3 packets." in text


def test_the_worst_served_receiver_of_the_most_urgent_level_comes_first():
    outcome = {"expected": 9, "delivered": 9, "lost": 0, "p50": 0.1, "p95": 0.2, "max": 0.3}
    nothing = {"expected": 9, "delivered": 0, "lost": 9, "p50": None, "p95": None, "max": None}
    many = {f"town-{i}": {"5": outcome} for i in range(12)}
    by_receiver = {
        "siren": {"5": outcome, "1": outcome},
        "office": {"5": nothing},
        "lab": {"1": outcome},
    }
    text = shown(*summary_tables({**SUMMARY, "by_receiver": {**by_receiver, **many}}))
    assert "level 5 by receiver" in text
    assert text.index("office") < text.index("siren")
    assert "0 of 9" in text
    assert "lab" not in text
    assert "4 more in the report" in text


@pytest.mark.parametrize(
    ("machine", "text"), [({"ok": True}, "the machine kept up"), (None, "was not monitored")]
)
def test_the_summary_of_a_trusted_run_says_whether_the_machine_was_monitored(machine, text):
    fidelity = {"ok": True, "reasons": [], "machine": machine}
    assert text in shown(*summary_tables({**SUMMARY, "fidelity": fidelity}))


MISSING = {"p50": None, "p95": None, "p99": None, "max": None}
BOUNDS = dict.fromkeys(MISSING, 31.2)


def test_a_percentile_that_was_not_reached_is_shown_with_its_bound():
    delays = {
        "5": {"n": 4, "expected": 10, **MISSING, "not_within_s": BOUNDS},
        "1": {**SUMMARY["delay_s"]["1"], "expected": 10, "not_within_s": {}},
    }
    outcome = {"expected": 10, "delivered": 4, "lost": 6, **MISSING, "not_within_s": BOUNDS}
    levels = {
        "5": {"expected": 10, "delivered": 4, "lost": 6, "late": None, "out_of_order": 0},
        "1": {"expected": 1000, "delivered": 990, "lost": 10, "late": None, "out_of_order": 0},
    }
    summary = {
        **SUMMARY,
        "delay_s": delays,
        "by_receiver": {"siren": {"5": outcome}},
        "by_priority": levels,
    }
    text = shown(*summary_tables(summary))
    assert text.count("not within 31 s") == 4 + 3
    assert "4 of 10" in text
    row = {"run": "a", "trial": 1, "summary": summary, "report": "r", "error": None}
    reported = {
        **{name: {"value": None, "low": 4.0, "high": None} for name in ("p99", "mean")},
        "p50": {"value": 0.5, "low": 0.4, "high": None, "not_within_s": None},
        "p95": {"value": None, "low": None, "high": None, "not_within_s": 31.2},
        "lost_share": {"value": 0.6, "low": 0.5, "high": 0.7},
        "expected": 10,
    }
    about = dict.fromkeys(("overlay", "delivery", "backend"), "x")
    experiment = {"runs": ["a", "b"], **about, "levels": {"5": reported}}
    text = shown(*batch_tables({"runs": [row], "experiments": [experiment], "dataset": None}))
    assert text.count("not within 31 s") == 3
    assert "400.0 ms or more" in text
    warned: list[Any] = []
    warn_of_missing(summary, SimpleNamespace(emit=warned.append), "a")
    assert warned == [
        Warned("a: level 5: 6 of 10 deliveries (60 %) had not arrived when the run ended")
    ]


def points(*lost_shares: float) -> dict[str, Any]:
    levels = [{"expected": 400, "lost_share": {"value": share}} for share in lost_shares]
    return {"points": [{"levels": {"5": level}} for level in levels]}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (points(0.0, 0.01), ""),
        (points(), ""),
        (
            points(0.0, 0.03, 0.6),
            "level 5: 252 of 800 deliveries (32 %) had not arrived when the runs ended, in 2 of 3 combinations",
        ),
    ],
)
def test_a_sweep_warns_once_of_what_had_not_come(document, text):
    assert missing_sentence(document) == text


def test_a_sweep_shows_the_bounds_of_what_was_not_reached():
    unknown = {"value": None, "low": None, "high": None, "not_within_s": 31.2}
    level = {
        "expected": 10,
        "lost_share": {"value": 0.6},
        "p50": {"value": 0.9, "low": 0.8, "high": None, "not_within_s": None},
        "p95": unknown,
    }
    point = {"levels": {"5": level}, "runs": ["a"], "settings": {}, "met": None}
    text = shown(points_table({"points": [point], "axes": [], "trials": 1}))
    assert "not within 31 s" in text
    assert "900.0 ms" in text


def test_delays_read_naturally():
    assert (seconds(0.0321), seconds(12.3)) == ("32.1 ms", "12.30 s")


def lab_of(*counts: int) -> Topology:
    """Groups a, b, c, ... of so many sensors."""
    nodes = [
        Node(f"{group}-{i}", 1, NodeKind.SENSOR, "lan", group)
        for group, count in zip("abcdefghijkl", counts, strict=False)
        for i in range(count)
    ]
    return Topology("valley", 1, (Profile("lan"),), tuple(nodes))


def planned(topology: Topology, left_out: str = "") -> str:
    names = [node.name for node in topology.nodes if node.name != left_out]
    return shown(plan_table(tuple(Step(StepKind.CREATE, n, "is not") for n in names), topology))


def test_a_plan_of_hundreds_names_groups_and_fits_a_screen():
    text = planned(lab_of(300, 2))
    assert "302" in text
    assert "a[*] (300), b-0, b-1" in text
    assert len(text.splitlines()) < 10


def test_a_group_of_which_one_is_there_already_is_shown_by_names():
    assert "a-0, a-1, a-3, a-4, a-5, a-6, a-7, a-8, … 11 more" in planned(lab_of(20), "a-2")


def test_omitted_groups_are_counted_by_their_nodes():
    assert "h[*] (3), … 107 more" in planned(lab_of(3, 3, 3, 3, 3, 3, 3, 3, 100, 7))


def test_a_run_in_which_nothing_was_delivered_has_no_empty_table():
    text = shown(*summary_tables({**SUMMARY, "delay_s": {}, "hops": {}}))
    assert "run valley-1 (netns, links by relay): nothing was delivered" in text
    assert "p95" not in text


@pytest.mark.parametrize(
    ("emulator", "where"), [("relay", "(docker, relay)"), (None, "(docker), run")]
)
def test_a_lab_whose_links_are_not_made_yet_names_no_emulator(emulator, where):
    lab = LabStatus("valley", "valley-1", "c/valley-1", "docker", emulator, "partly")
    assert where in shown(nodes_table(lab))


def test_each_column_of_a_calibration_says_what_was_asked_and_what_achieved():
    values = {"rate_bps": 128e3, "delay_s": 0.06, "loss": None}
    result = {"profile": "a", "direction": "up", "asked": values, "achieved": values, "ok": True}
    heading = shown(calibration_table([result])).splitlines()[2]
    for quantity in ("rate", "delay", "loss"):
        assert f"{quantity} asked ┃" in heading
    assert heading.count("achieved") == 3


def test_a_narrow_terminal_shows_whole_names_of_nodes_and_says_what_is_missing():
    node = NodeStatus("sensors-100", "subscriber", "10.77.0.100", "mvno-200k-throttled", "running")
    lab = LabStatus("valley", "valley-1", "c", "docker", "relay", "up", nodes=(node,))
    console = Console(width=80)
    with console.capture() as capture:
        console.print(nodes_table(lab))
    text = capture.get()
    assert "sensors-100" in text
    assert "…" not in text
    assert "a wider terminal shows more: kind, address, link" in text
    assert "10.77.0.100" in shown(nodes_table(lab))

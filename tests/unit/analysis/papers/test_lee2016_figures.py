"""Figures and checks of Lee 2016 from rows with known values."""

import json
from typing import Any

import pytest

from analysis.papers.lee2016.cells import Sheet
from analysis.papers.lee2016.figures import Measured, checks, figures
from analysis.papers.lee2016.page import render
from testbed.papers.lee2016 import FULL, sheet

LARGEST = {"default": 300.0, "pq-pc": 14.5, "dmpq-10000": 1.5, "dmpq-1443": 0.36, "preemptive": 0.2}
BYTES = {"dmpq-1443": 1_060_000, "preemptive": 1_050_000}


def measured(lab: int = 0, **changed: float) -> Measured:
    """A lab in which all is as it should be, but for the largest delays given."""
    paper = sheet(FULL.labs[lab])
    plan = Sheet(
        paper["scale"],
        paper["emulator"],
        paper["cells"],
        tuple(paper["urgent_topics"]),
        paper["messages_of_traffic"],
        paper["standard_period_s"],
        {one["key"]: one["title"] for one in paper["series"]},
        paper["thesis"],
    )
    largest = {**LARGEST, **{key.replace("_", "-"): value for key, value in changed.items()}}
    delays, traffic = {}, {}
    for node, cell in plan.cells.items():
        if cell["experiment"] == "delay":
            delays[node] = delay_row(cell, largest.get(cell["series"], 0.3))
        else:
            traffic[node] = traffic_row(cell)
    return Measured(plan, delays, traffic)


def delay_row(cell: dict[str, Any], largest: float) -> dict[str, Any]:
    return {
        "messages": 100,
        "arrived": 60 if cell["growth"] else 100,
        **dict.fromkeys(("p10_s", "p50_s", "p90_s", "p95_s", "p99_s"), largest / 2),
        "largest_s": largest,
        "largest_bound_s": largest if cell["bound"] else None,
        "largest_of_bound": 1.05 if cell["bound"] else None,
        "growth": cell["growth"],
    }


def traffic_row(cell: dict[str, Any]) -> dict[str, Any]:
    packets = 10 * (cell["packets_of_standard"] or 70) + 10
    size = BYTES.get(cell["series"], 1_055_000)
    names = ("retransmitted_packets", "retransmitted_bytes", "answers")
    return {
        "messages": 20,
        "arrived": 20,
        "data_packets": packets,
        "down_packets": packets,
        "down_bytes": size,
        "up_packets": packets,
        "up_bytes": 50_000,
        **dict.fromkeys(names, 0),
    }


def verdicts(lab: Measured) -> list[bool | None]:
    return [check["ok"] for check in checks(lab)]


def test_all_checks_hold_where_all_is_as_it_should_be() -> None:
    assert verdicts(measured()) == [True] * 9


def test_figures_are_those_of_the_thesis_and_the_other_lab() -> None:
    found = figures(measured(), [measured(1)])
    numbers = [figure["figure"] for figure in found]
    assert numbers[:15] == [f"5.{number}" for number in range(4, 19)]
    assert numbers[15:] == ["table 5.6", "table 7.1", "on the relay"]
    assert all(figure["cells"] for figure in found)
    assert json.loads(json.dumps(found)) == found
    assert {cell["tbf"]["messages"] for cell in found[-1]["cells"]} == {100}


def test_numbers_of_the_thesis_are_beside_ours_only_where_it_has_some() -> None:
    by_number = {figure["figure"]: figure for figure in figures(measured())}
    largest = {cell["series"]: cell["paper"] for cell in by_number["table 7.1"]["cells"]}
    assert largest["default"] == {"largest_s": 622.48, "growth": 0.5}
    assert largest["dmpq-1443"] == {"largest_s": 0.37, "growth": None}
    assert largest["preemptive"] is None
    elsewhere = [cell for cell in by_number["5.4"]["cells"] if cell["rate_kBps"] != 7]
    assert {cell["paper"] for cell in elsewhere} == {None}
    default = next(c for c in by_number["table 7.1"]["cells"] if c["series"] == "default")
    assert default["ours"]["censored"] == 40


@pytest.mark.parametrize(
    ("changed", "which"),
    [({"preemptive": 0.35}, 6), ({"dmpq_10000": 20.0}, 0)],
    ids=["ours is not fast enough", "the order is another"],
)
def test_a_check_fails_when_its_numbers_do(changed: dict[str, float], which: int) -> None:
    expected = [True] * 9
    expected[which] = False
    assert verdicts(measured(**changed)) == expected


def test_a_delay_beyond_the_bound_is_named() -> None:
    lab = measured()
    lab.delays["delay-dmpq-1000-20"]["largest_of_bound"] = 1.16
    check = checks(lab)[3]
    assert verdicts(lab)[2:5] == [True, False, True]
    assert "dmpq-1000 at 20 kB/s" in check["found"]


def test_one_packet_more_is_noticed_and_one_message_less_is_no_measurement() -> None:
    lab = measured()
    lab.traffic["traffic-dmpq-5000-4"]["data_packets"] += 1
    assert "80.1 for 80" in checks(lab)[5]["found"]
    lab.traffic["traffic-dmpq-5000-4"]["arrived"] -= 1
    assert "None for 80" in checks(lab)[5]["found"]


def test_more_bytes_of_ours_are_reported_for_each_direction() -> None:
    lab = measured()
    lab.traffic["traffic-preemptive-9"]["up_bytes"] += 20_000
    assert verdicts(lab)[7:] == [True, False]


def test_checks_that_were_not_run_or_cannot_be_judged_have_no_verdict() -> None:
    assert verdicts(measured(1)) == [True, None, True, None, None, None, True, None, None]
    assert "so few messages tell no slope" in checks(measured(1))[1]["found"]
    assert "not judged: time runs 8 times as fast" in checks(measured(1))[3]["found"]


def test_the_page_shows_checks_and_charts_without_scripts() -> None:
    main = measured()
    fidelity = {"ok": True, "reasons": []}
    result = {
        "scale": 1,
        "runs": [{"run": "one", "emulator": "tbf", "fidelity": fidelity}],
        "figures": figures(main, [measured(1)]),
        "checks": checks(main),
    }
    points = [
        {"node": node, "delay_s": row["largest_s"] / part}
        for node, row in main.delays.items()
        for part in (1, 2)
    ]
    text = render(result, main.sheet, [points])
    assert text.count("<svg") == 15
    assert "<script" not in text
    assert "622.48" in text

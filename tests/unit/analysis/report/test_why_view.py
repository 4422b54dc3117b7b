"""The words of an explanation, in a terminal and in the report. UPDATE_GOLDEN=1 writes the golden files anew."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.formatting import NARROW
from analysis.inputs.results import table
from analysis.inputs.run_folder import read_run
from analysis.report.sections import why as section
from analysis.report.sections.why import lines, others_text, sentence
from analysis.stats.why import Others, explain
from support.runs.constructed_tables import (
    BEGIN_NS,
    ConstructedRun,
    blocked_by_a_picture,
    identity,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "analysis" / "why"
ALERT, CALM = identity("gauge", 1), identity("gauge", 2)


def cut() -> ConstructedRun:
    run = ConstructedRun()
    run.publish("gauge", 1, 1_000)
    run.cross(ALERT, "gauge", "broker", (1_001, 1_001), (1_001, 1_001))
    run.cross(ALERT, "broker", "siren", (1_002, 1_002), (4_000, 4_000), stalled_ns=2_500_000_000)
    run.cross(ALERT, "broker", "office", (1_002, 1_002), (1_084, 1_084))
    run.act(500, "cut", "siren")
    run.act(3_000, "restore", "siren", only="cut")
    values = {"rate_bps": 64_000.0}
    run.link_changes.append(
        {
            "t_ns": BEGIN_NS - 2_000_000_000,
            "action": "set",
            "links": ["siren"],
            "directions": ["down"],
            "shapes": {"down": values},
        }
    )
    return run


def lost() -> ConstructedRun:
    run = ConstructedRun()
    run.publish("gauge", 1, 1_000)
    run.cross(ALERT, "gauge", "broker", (1_001, 1_001), (1_001, 1_001))
    run.cross(ALERT, "broker", "siren", (1_002, 1_002), None)
    run.act(1_100, "crash", "siren")
    return run


RUNS = {"blocked": (blocked_by_a_picture, ALERT), "idle": (blocked_by_a_picture, CALM)}
RUNS |= {"cut": (cut, ALERT), "lost": (lost, ALERT)}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_an_explanation_is_ten_lines_at_most(name):
    make, message = RUNS[name]
    run = make()
    why = explain(run.delivery(message), run.evidence())
    text = "\n".join(lines(why, BEGIN_NS)).replace(NARROW, " ") + "\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()
    assert len(text.splitlines()) <= 10
    assert sentence(why, BEGIN_NS).replace(NARROW, " ") in text


def test_the_largest_groups_of_messages_are_named_and_the_others_counted():
    groups = [
        Others(1, "pictures", 1, 30_000),
        Others(None, None, 12, 900),
        Others(5, "alerts", 2, 500, copies=True),
        Others(2, "reports", 1, 100),
    ]
    assert others_text(groups).replace(NARROW, " ") == (
        "30.0 kB of 1 message of level 1 (pictures), 900 B of 12 control messages and 600 B of 3 messages more"
    )
    assert others_text(groups[2:3]).replace(NARROW, " ") == (
        "500 B of 2 of its own copies to other receivers"
    )
    assert others_text([]) == "nothing"


def test_a_broker_that_died_by_its_log_is_near():
    run = blocked_by_a_picture()
    death = {"node": "broker", "died_ns": BEGIN_NS + 1_500_000_000, "known_from": "log"}
    evidence = replace(run.evidence(), deaths=[death, {**death, "known_from": "manifest"}])
    text = lines(explain(run.delivery(ALERT), evidence), BEGIN_NS)
    assert "near it: died (broker, at 1.5 s)" in text


def test_the_report_has_the_slowest_of_the_most_urgent_level(tmp_path):
    run = read_run(blocked_by_a_picture().write(tmp_path / "run"))
    view = section.view(run, table(run, "deliveries"))
    assert view["level"] == "5"
    assert [(row["id"], row["receiver"]) for row in view["rows"]] == [
        (ALERT, "siren"),
        (CALM, "siren"),
        (ALERT, "office"),
        (CALM, "office"),
    ]
    assert "1 message of level 1 (pictures)" in view["rows"][0]["why"]
    assert view["rows"][0]["why"] in view["rows"][0]["lines"]


def test_a_run_without_deliveries_has_no_such_section(tmp_path):
    run = read_run(lost().write(tmp_path / "run"))
    deliveries = table(run, "deliveries")
    assert section.view(run, deliveries) is None
    assert section.view(run, deliveries.slice(0, 0)) is None

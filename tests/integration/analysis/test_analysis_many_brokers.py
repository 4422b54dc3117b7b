"""Runs of several brokers through Spark, compared with the known truth."""

import json
import os
from collections import Counter

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure
from nodes.protocol import wire
from support.runs.known_broker_run import DEAD, LAST_OF_C_MS, known_broker_run
from support.runs.metric_tables import rows
from support.runs.star_runs import MS, START_NS

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def measured(spark, tmp_path_factory):
    """Five brokers, one of which dies (`known_broker_run`)."""
    folder = tmp_path_factory.mktemp("runs") / "brokers"
    run = known_broker_run()
    run.write(folder, dead=DEAD)
    return folder, run, measure(spark.sparkContext, read_run(folder))


def test_between_many_brokers_every_delivery_has_its_true_arrival_and_path(measured):
    folder, run, _ = measured
    found = [row for row in rows(folder, "deliveries") if row["status"] == "delivered"]
    truth = {pair: at for pair, at in run.arrivals.items() if pair[1] in run.towns}
    assert {(row["id"], row["receiver"]): row["received_ns"] for row in found} == truth
    for row in found:
        assert row["path"] == run.paths[row["id"], row["receiver"]]
        assert row["hops"] == len(row["path"]) - 1


def test_between_many_brokers_the_broker_that_kept_a_message_is_named(measured):
    folder, _, summary = measured
    lost = {
        (row["id"][-1], row["receiver"]): row["reason"]
        for row in rows(folder, "deliveries")
        if row["status"] == "lost"
    }
    assert lost == {
        ("6", "east"): "not forwarded by b",
        ("6", "west"): "not forwarded by b",
        ("7", "east"): "not forwarded by d",
    }
    assert summary["fidelity"] == {"ok": True, "reasons": [], "machine": None}


def test_suppressed_copies_and_publications_handed_over_twice_are_counted_apart(measured):
    folder, _, summary = measured
    found = {(row["id"][-1], row["receiver"]): row for row in rows(folder, "deliveries")}
    assert (found["3", "east"]["duplicates"], found["3", "east"]["handed"]) == (1, 1)
    assert found["3", "east"]["suppressed"] == 1
    assert found["7", "west"]["handed"] == 2
    assert summary["messages"]["handed_twice"] == 1
    assert summary["by_priority"]["5"]["handed_twice"] == 1
    assert summary["by_priority"]["5"]["handed"] == summary["by_priority"]["5"]["delivered"] == 9


def test_forwards_are_those_that_were_sent(measured):
    folder, run, summary = measured
    published = [one for one in run.sent if one.message.kind is wire.Kind.PUBLISH]
    truth = Counter((one.src, one.message.priority) for one in published)
    found = {(row["node"], row["priority"]): row for row in rows(folder, "forwards")}
    assert {key: row["copies"] for key, row in found.items() if row["copies"]} == truth
    for (node, level), row in found.items():
        mine = [one for one in published if one.src == node and one.message.priority == level]
        others = {one.message.message_id for one in mine if node != "slope"}
        assert row["forwarded"] == len(others)
    assert (found["d", 5]["sent_again"], found["d", 5]["repeated"]) == (1, 1)
    assert {key for key, row in found.items() if row["relayed"]} == {("b", 1), ("e", 1)}
    assert summary["overlay"]["forwards"]["1"]["relay_share"] == 2 / 4
    assert summary["overlay"]["by_broker"]["e"]["relay_share"] == 1.0
    assert summary["overlay"]["copies_per_publication"] == len(published) / 7


def test_control_traffic_is_counted_by_kind_and_overlay_kind_with_its_headers(measured):
    folder, run, summary = measured
    begin, end = START_NS + 1_000 * MS, START_NS + 11_000 * MS
    control_messages = [
        one
        for one in run.sent
        if one.message.kind is not wire.Kind.PUBLISH and begin <= one.seen_ns <= end
    ]
    truth: Counter[tuple[str, str]] = Counter()
    for one in control_messages:
        truth[one.src, one.message.kind.name] += one.size + 14 + 20 + 20
    found: Counter[tuple[str, str]] = Counter()
    for row in rows(folder, "control"):
        assert row["bytes_per_s"] == pytest.approx(row["wire_bytes"] / 10)
        if row["direction"] == "up":
            found[row["node"], row["kind"]] += row["wire_bytes"]
    assert found == pytest.approx(truth)
    control = summary["overlay"]["control"]
    assert set(control["by_kind"]) >= {"ACK", "ADVERTISED", "HEARTBEAT", "OVERLAY"}
    assert control["by_overlay_kind"]["Notify go"]["messages"] == 2
    assert summary["overlay"]["stop_go"] == {"stop": 1, "go": 2, "withheld": 1}
    per_broker = sum(truth[key] for key in truth if key[0] in run.brokers) / 10 / 5
    assert control["bytes_per_s_per_broker"] == pytest.approx(per_broker)


def test_the_summary_reports_a_brokers_death_and_its_repair(measured):
    _, run, summary = measured
    (row,) = summary["overlay"]["repairs"]
    died_ns = START_NS + LAST_OF_C_MS * MS + run.delay_ns
    whole_ns = run.arrivals["0000000600000003", "east"]
    assert row == {
        "node": "c",
        "died_ns": died_ns,
        "known_from": "log",
        "noticed_s": pytest.approx((3_500 * MS + START_NS - died_ns) / 1e9),
        "clients": 1,
        "moved": 1,
        "moved_s": pytest.approx((6_060 * MS + START_NS - died_ns) / 1e9),
        "flows": 1,
        "flows_hit": 1,
        "lost": 0,
        "healed": True,
        "repair_s": pytest.approx((whole_ns - died_ns) / 1e9),
    }


def test_the_lengths_of_paths_are_counted_by_level(measured):
    paths = measured[2]["overlay"]["paths"]
    assert paths["1"] == {"hops": {"5": 1}, "mean": 5.0, "brokers_mean": 4.0}
    assert paths["5"]["hops"] == {"2": 2, "3": 4, "4": 3}


def test_the_summary_of_a_known_broker_run_is_the_one_on_record(measured, repository):
    golden = repository / "tests" / "golden" / "analysis" / "brokers.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(measured[2], indent=2) + "\n")
    assert measured[2] == json.loads(golden.read_text())

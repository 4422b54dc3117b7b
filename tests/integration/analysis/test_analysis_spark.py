"""Whole runs through Spark, compared with the known truth."""

import json
import math
import os
import random
from itertools import pairwise

import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import read_run
from analysis.metrics import (
    control,
    datagrams,
    delay,
    deliveries,
    events,
    forwards,
    hops,
    link_utilization,
    load,
    messages,
    mqtt,
    overhead,
    publications,
    repair,
)
from analysis.pipeline import analyze, measure
from analysis.report.report import write_report
from analysis.scan import packets
from nodes.protocol import wire
from support.captures.labelled_streams import write_mixed
from support.runs.metric_tables import rows
from support.runs.star_runs import MS, START_NS, Passing, Publication, StarRun
from support.runs.star_runs import publications as plain

pytestmark = pytest.mark.spark

FATES = {
    (30, "sensor-1", "broker"): "unsent",
    (31, "sensor-2", "broker"): "vanishes",
    (33, "broker", "town-1"): "unsent",
    (33, "broker", "town-2"): "vanishes",
    (34, "sensor-1", "broker"): "twice",
    (36, "broker", "town-1"): "partial",
    (36, "broker", "town-2"): "twice",
}
# The last message of each connection may be cut short; 31 is the last of sensor 2, 36 the last of all.
PUBLICATIONS = [
    *plain(30, 2),
    *(
        Publication(sensor=1 if number == 31 else 0, at_ms=400 + 200 * (number - 30), size=4000)
        for number in range(30, 37)
    ),
]


@pytest.fixture(scope="module")
def measured(spark, tmp_path_factory):
    """A run in which every fault happens once."""
    folder = tmp_path_factory.mktemp("runs") / "trouble"
    made = StarRun(publications=PUBLICATIONS, fate=lambda *hop: FATES.get(hop)).write(folder)
    stages = []
    summary = measure(spark.sparkContext, read_run(folder), lambda *step: stages.append(step))
    return folder, made, summary, stages


def test_every_delivery_has_its_true_arrival_time_hops_and_path(measured):
    folder, made, _, _ = measured
    found = [row for row in rows(folder, "deliveries") if row["status"] == "delivered"]
    assert {(row["id"], row["receiver"]): row["received_ns"] for row in found} == made.arrivals
    for row in found:
        assert row["path"] == [row["origin"], "broker", row["receiver"]]
        assert row["hops"] == 2
        assert math.isclose(row["delay_s"], (row["received_ns"] - row["published_ns"]) / 1e9)


def test_every_loss_has_its_place(measured):
    folder, made, summary, _ = measured
    lost = {
        (made.ids.index(row["id"]), row["receiver"]): row["reason"]
        for row in rows(folder, "deliveries")
        if row["status"] == "lost"
    }
    assert lost == {
        (30, "town-1"): "never sent",
        (30, "town-2"): "never sent",
        (31, "town-1"): "lost between sensor-2 and broker",
        (31, "town-2"): "lost between sensor-2 and broker",
        (33, "town-1"): "not forwarded by broker",
        (33, "town-2"): "lost between broker and town-2",
        (36, "town-1"): "incomplete at town-1",
    }
    assert sum(summary["lost_reasons"].values()) == summary["messages"]["lost"] == 7


def test_the_summary_keeps_its_contract(measured):
    folder, made, summary, _ = measured
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert summary["messages"] == {
        "published": 37,
        "expected_deliveries": 74,
        "delivered": len(made.arrivals),
        "lost": 74 - len(made.arrivals),
        "duplicates": 1,
        "handed_twice": 0,
    }
    assert set(summary["delay_s"]) == {"5", "1"}
    quantiles = {"p50", "p95", "p99", "max"}
    assert set(summary["delay_s"]["5"]) == {"n", "expected", "not_within_s"} | quantiles
    for level, delay_s in summary["delay_s"].items():
        count = summary["by_priority"][level]
        assert (delay_s["n"], delay_s["expected"]) == (count["delivered"], count["expected"])
        assert set(delay_s["not_within_s"]) == {q for q in quantiles if delay_s[q] is None}
        assert (delay_s["max"] is None) == bool(count["lost"])
    assert summary["hops"]["5"] == {"mean": 2.0, "max": 2}
    assert set(summary["overhead"]) == {
        "payload_bytes",
        "wire_bytes",
        "packets",
        "retransmitted_packets",
        "retransmitted_payload",
    }
    assert set(summary["fidelity"]) == {"ok", "reasons", "machine"}
    assert (summary["run"], summary["backend"], summary["emulator"]) == (
        "trouble",
        "netns",
        "relay",
    )


def test_the_summary_of_a_known_run_is_the_one_on_record(measured, repository):
    golden = repository / "tests" / "golden" / "analysis" / "trouble.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(measured[2], indent=2) + "\n")
    assert measured[2] == json.loads(golden.read_text())


def test_the_parts_of_all_hops_add_up_to_the_delay(measured):
    folder, _, _, _ = measured
    crossed = {(row["id"], row["src"], row["dst"]): row for row in rows(folder, "hops")}
    for row in rows(folder, "deliveries"):
        if row["status"] == "delivered":
            path = row["path"]
            legs = [crossed[row["id"], a, b] for a, b in pairwise(path)]
            parts = sum(leg["waited_s"] + leg["sending_s"] + leg["crossing_s"] for leg in legs)
            assert math.isclose(parts, row["delay_s"], abs_tol=1e-9)


def test_all_bytes_of_the_files_are_in_the_layers(measured):
    folder, made, summary, _ = measured
    sent = sum(len(data) for records in made.captures.records.values() for _, data in records)
    assert sum(row["bytes"] for row in rows(folder, "overhead")) == sent
    assert summary["overhead"]["wire_bytes"] == sent
    assert summary["overhead"]["packets"] == sum(len(r) for r in made.captures.records.values())


def test_utilization_over_time_adds_up_to_all_bytes_that_links_carried(measured):
    folder, made, summary, _ = measured
    found = rows(folder, "link_utilization")
    for name, records in made.captures.records.items():
        mine = [row for row in found if row["link"] == name]
        assert sum(row["bytes"] for row in mine) == sum(len(data) for _, data in records)
        for row in mine:
            assert row["from_ns"] == START_NS + 1_000 * MS + row["unit"] * 1_000 * MS
            assert row["share"] is None, "these links have no limit"
    reported = summary["link_utilization"]["by_link"]["broker"]["up"]
    counted = [row for row in found if (row["link"], row["direction"]) == ("broker", "up")]
    assert reported["bytes"] == sum(row["bytes"] for row in counted if row["unit"] >= 0)


def test_progress_is_reported_stage_by_stage(measured):
    stages = measured[3]
    for stage in dict.fromkeys(name for name, _, _ in stages):
        steps = [(done, total) for name, done, total in stages if name == stage]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("messages", messages.SCHEMA),
        ("publications", publications.SCHEMA),
        ("hops", hops.SCHEMA),
        ("deliveries", deliveries.SCHEMA),
        ("delay", delay.SCHEMA),
        ("links", overhead.LINKS_SCHEMA),
        ("mqtt", mqtt.SCHEMA),
        ("mqtt_deliveries", mqtt.DELIVERIES_SCHEMA),
        ("datagrams", datagrams.SCHEMA),
        ("overhead", overhead.SCHEMA),
        ("events", events.SCHEMA),
        ("forwards", forwards.SCHEMA),
        ("control", control.SCHEMA),
        ("repair", repair.SCHEMA),
        ("load", load.SCHEMA),
        ("link_utilization", link_utilization.SCHEMA),
    ],
)
def test_each_metric_is_written_as_its_schema_declares(measured, spark, name, schema):
    path = measured[0] / "metrics" / f"{name}.parquet"
    assert pq.read_table(path).schema.equals(schema)
    assert spark.read.parquet(str(path)).columns == schema.names


def test_measuring_again_replaces_the_metrics(measured, spark):
    folder, _, summary, _ = measured
    (folder / "metrics" / "stale").write_text("from before")
    assert measure(spark.sparkContext, read_run(folder)) == summary
    assert not (folder / "metrics" / "stale").exists()
    assert not (folder / "metrics.unfinished").exists()


def test_a_run_in_which_nothing_was_captured_counts_everything_as_never_sent(spark, tmp_path):
    made = StarRun(publications=list(plain(5, 2)))
    made.write(tmp_path / "run")
    for path in (tmp_path / "run" / "pcap").iterdir():
        path.unlink()
    summary = measure(spark.sparkContext, read_run(tmp_path / "run"))
    assert summary["messages"]["lost"] == summary["messages"]["expected_deliveries"] == 10
    assert summary["lost_reasons"] == {"never sent": 10}
    assert {level: delay["n"] for level, delay in summary["delay_s"].items()} == {"5": 0, "1": 0}
    assert summary["delay_s"]["5"]["p50"] is None
    assert summary["delay_s"]["5"]["not_within_s"]["p50"] == pytest.approx(10.0)
    assert (summary["delay_parts_s"], summary["hops"]) == ({}, {})
    assert summary["overhead"]["packets"] == 0
    reasons = " ".join(summary["fidelity"]["reasons"])
    assert "no capture" in reasons
    assert "10 deliveries are in the subscribers' logs but not in the captures" in reasons


def test_a_run_without_logs_and_with_a_cut_capture_is_measured_and_doubted(spark, tmp_path):
    folder = tmp_path / "run"
    StarRun(publications=list(plain(5, 2))).write(folder)
    for path in (folder / "logs").iterdir():
        path.unlink()
    broker = folder / "pcap" / "broker.pcap"
    broker.write_bytes(broker.read_bytes()[:-7])
    summary = measure(spark.sparkContext, read_run(folder))
    assert summary["messages"]["published"] == 0
    reasons = " ".join(summary["fidelity"]["reasons"])
    assert "5 messages were seen on the links but are in no node's log" in reasons
    assert "Capture broker has a last packet that was cut off" in reasons


def test_publications_before_a_change_of_the_lab_do_not_count(spark, tmp_path):
    def fate(number, _src, dst):
        return "unsent" if number < 6 and dst == "town-2" else None  # town-2 joined later

    folder = tmp_path / "run"
    run = StarRun(publications=list(plain(20, 2)), fate=fate)
    written = run.write(folder)
    publish = sorted(
        line["t"] for log in written.logs.values() for line in log if line["event"] == "publish"
    )
    everything = measure(spark.sparkContext, read_run(folder))
    assert everything["messages"]["lost"] == 6
    assert everything["ignored_publications"] == 0
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**manifest, "measured_from_ns": publish[6]}))
    summary = measure(spark.sparkContext, read_run(folder))
    assert summary["messages"] == {
        "published": 14,
        "expected_deliveries": 28,
        "delivered": 28,
        "lost": 0,
        "duplicates": 0,
        "handed_twice": 0,
    }
    assert summary["ignored_publications"] == 6
    assert summary["fidelity"] == {"ok": True, "reasons": [], "machine": None}
    assert "6 publications before the lab was last changed" in write_report(folder).read_text()


def test_a_message_is_lost_where_a_queue_was_full_or_its_receiver_was_down(spark, tmp_path):
    fates = {(0, "sensor-1", "broker"): "full", (1, "broker", "town-2"): "full"}
    fates[2, "broker", "town-1"] = "unsent"
    run = StarRun(publications=list(plain(4, 1)), sensors=1, fate=lambda *hop: fates.get(hop))
    down = [
        {"t_ns": START_NS + at_ms * MS, "action": action, "targets": ["town-1"], "details": {}}
        for at_ms, action in ((1_015, "crash"), (1_025, "start"))
    ]
    run.write(tmp_path / "run", actions=down)
    summary = measure(spark.sparkContext, read_run(tmp_path / "run"))
    assert summary["lost_reasons"] == {
        "queue full at sensor-1": 2,
        "queue full at broker": 1,
        "town-1 was down": 1,
    }
    assert "crashed</td><td>town-1</td>" in write_report(tmp_path / "run").read_text()


def test_a_run_of_which_a_task_cannot_read_a_file_is_named_with_the_reason(spark, tmp_path):
    folder = tmp_path / "run"
    StarRun(publications=list(plain(4, 1)), sensors=1).write(folder)
    (folder / "logs" / "strange.jsonl").mkdir()
    with pytest.raises(AnalysisError, match=r"cannot be measured: IsADirectoryError"):
        measure(spark.sparkContext, read_run(folder))
    assert not (folder / "metrics.unfinished").exists()


def test_a_log_line_that_was_cut_off_is_no_record(spark, tmp_path):
    folder = tmp_path / "run"
    StarRun(publications=list(plain(4, 1)), sensors=1).write(folder)
    log = folder / "logs" / "sensor-1.jsonl"
    log.write_text(log.read_text() + '{"t": 17, "node": "sensor-1", "event": "publish", "id"')
    assert measure(spark.sparkContext, read_run(folder))["messages"]["published"] == 4


def test_the_packets_of_a_run_can_be_had_as_a_data_frame(spark, tmp_path):
    made = StarRun(publications=list(plain(3, 2))).write(tmp_path / "run")
    frame = packets(spark, read_run(tmp_path / "run"))
    counts = {row.link: row["count"] for row in frame.groupBy("link").count().collect()}
    assert counts == {link: len(records) for link, records in made.captures.records.items()}


def test_loss_and_retransmission_show_in_delay_and_overhead(spark, tmp_path):
    late = {"count": 0}

    def decide(_host, _number, payload):
        late["count"] += bool(payload)
        return Passing(late_ns=(late["count"] % 3) * 40 * MS if payload else 0)

    folder = tmp_path / "run"
    StarRun(publications=list(plain(30, 2)), decide=decide).write(folder)
    summary = measure(spark.sparkContext, read_run(folder))
    assert summary["messages"]["lost"] == 0
    assert summary["overhead"]["retransmitted_packets"] > 0
    assert summary["delay_s"]["1"]["max"] > summary["delay_s"]["1"]["p50"]


def test_divided_messages_arrive_when_their_last_piece_does(spark, tmp_path):
    def as_frames(message: wire.Message, mask: bytes) -> bytes:
        return write_mixed(random.Random(1), [message], "levels", 1000, mask)[0].data

    folder = tmp_path / "run"
    sent = [Publication(sensor=0, at_ms=100 * n, size=5000) for n in range(6)]
    made = StarRun(publications=sent, as_frames=as_frames).write(folder)
    summary = measure(spark.sparkContext, read_run(folder))
    assert (summary["messages"]["lost"], summary["fidelity"]["reasons"]) == (0, [])
    found = {(row["id"], row["receiver"]): row["received_ns"] for row in rows(folder, "deliveries")}
    assert found == made.arrivals
    published = [row for row in rows(folder, "messages") if row["kind"] == "PUBLISH"]
    assert {row["pieces"] for row in published} == {6}
    labels = sum(row["bytes"] for row in rows(folder, "overhead") if row["layer"] == "label")
    assert labels == 6 * len(published) == sum(row["label_bytes"] for row in published)
    assert summary["overhead"]["wire_bytes"] == sum(
        len(data) for records in made.captures.records.values() for _, data in records
    )
    assert (
        sum(row["bytes"] for row in rows(folder, "overhead")) == summary["overhead"]["wire_bytes"]
    )
    manifest = json.loads((folder / "run.json").read_text())
    for node in manifest["topology"]["nodes"]:
        fifo = {"method": "fifo", "parameters": []}
        node["delivery"] = fifo if node["kind"] != "broker" else None
        if node["name"] == "town-1":
            node["delivery"] = {"method": "preemptive", "parameters": [["dv", 1000]]}
    (folder / "run.json").write_text(json.dumps(manifest))
    page = write_report(folder).read_text()
    assert "</span>labels</td>" in page
    assert "<td>town-1</td><td>preemptive (dv 1000)</td><td>up</td>" in page
    assert "<td>town-2</td><td>fifo</td><td>up</td>" in page
    assert "<td>broker</td><td>–</td><td>up</td>" in page


def test_a_file_that_is_no_capture_is_refused_before_spark_starts(tmp_path):
    StarRun().write(tmp_path / "run")
    (tmp_path / "run" / "pcap" / "broker.pcap").write_text("this is not a capture at all")
    with pytest.raises(AnalysisError, match=r"broker\.pcap is not a pcap file"):
        analyze(tmp_path / "run")

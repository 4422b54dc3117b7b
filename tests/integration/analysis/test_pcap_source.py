"""`spark.read.format("pcap")`: the same rows as a plain read, limited to the requested columns and conditions."""

import gzip
import random
from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from analysis.captures.columns import PROBLEMS, SCHEMA
from analysis.captures.records import CUT_OFF
from analysis.captures.source import register
from support.captures.capture_files import (
    START_NS,
    Captured,
    Interface,
    Pcapng,
    pcap,
    read_all,
    records,
)
from support.runs.star_runs import Host, arp, packet

pytestmark = pytest.mark.spark

ONE, TWO = Host("one", 1, "10.77.0.1"), Host("two", 2, "10.77.0.2")


@pytest.fixture(scope="module")
def reading(spark):
    register(spark)
    return lambda **options: spark.read.format("pcap").options(**options)


def some_packets(count: int, seed: int = 1) -> list[Captured]:
    chance = random.Random(seed)
    made = []
    for number in range(count):
        ports = (40_000 + number % 7, 8765)
        payload = chance.randbytes(chance.randrange(300))
        data = packet(ONE, TWO, ports, number * 99, 7, 0x10, payload)
        made.append(Captured(arp(ONE) if number % 10 == 0 else data, START_NS + number * 1000))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Files of several kinds, one of them damaged."""
    place = tmp_path_factory.mktemp("anybody")
    (place / "plain.pcap").write_bytes(pcap(some_packets(2000)))
    section = Pcapng(interfaces=[Interface(name="eth0"), Interface(resolution=6)])
    for number, one in enumerate(some_packets(300, 2)):
        comment = "look here" if number == 5 else None
        section.add(Captured(one.data, one.ts_ns, None, number % 2, comment))
    (place / "deeper").mkdir()
    (place / "deeper" / "next.pcapng").write_bytes(section.bytes())
    (place / "packed.pcap.gz").write_bytes(gzip.compress(pcap(some_packets(100, 3))))
    damaged = pcap(some_packets(50, 4)) + b"\xff" * 99 + records(some_packets(50, 5))
    (place / "damaged.pcap").write_bytes(damaged[:-1])
    (place / "notes.txt").write_text("no capture, and not meant")
    return place


def as_set(rows: list[dict]) -> set[tuple]:
    return {tuple(row[name] for name in SCHEMA.names) for row in rows}


def test_a_folder_in_pieces_has_the_rows_of_a_plain_read(reading, folder):
    frame = reading(piece_bytes=40_000).load(str(folder))
    found = [row.asDict() for row in frame.collect()]
    expected = [row for path in sorted(folder.rglob("*.pcap*")) for row in read_all(path).rows]
    good = [row for row in found if row["problem"] is None]
    assert len(good) == len(expected) == 2000 + 300 + 100 + 99
    assert as_set(good) == as_set(expected)
    assert frame.rdd.getNumPartitions() > 5


def test_unreadable_bytes_have_rows_among_the_packets_and_a_table_of_their_own(
    reading, spark, folder
):
    path = str(folder / "damaged.pcap")
    expected = [(path, *one) for one in read_all(path).problems]
    assert [one[3] for one in expected] == ["no record: it would be 4294967295 bytes long", CUT_OFF]
    rows = reading().load(path).where("problem is not null")
    among = [(row.path, row.offset, row.record_bytes, row.problem) for row in rows.collect()]
    table = spark.read.format("pcap-problems").load(str(folder))
    assert among == expected == [tuple(row) for row in table.collect()]
    assert table.columns == PROBLEMS.names


def test_modes_are_those_of_sparks_own_sources(reading, folder):
    path = str(folder / "damaged.pcap")
    counts = {
        mode: reading(mode=mode).load(path).count() for mode in ("permissive", "dropMalformed")
    }
    assert counts == {"permissive": 101, "dropMalformed": 99}
    with pytest.raises(Exception, match=r"byte .*no record"):
        reading(mode="failFast").load(path).count()


def test_only_columns_that_are_asked_for_are_made(reading, folder):
    chosen = reading(columns="src_port, ts_ns").load(str(folder / "plain.pcap"))
    assert chosen.columns == ["src_port", "ts_ns"]
    schema = "ip_src string, wirelen bigint"
    by_schema = reading().schema(schema).load(str(folder / "plain.pcap"))
    assert by_schema.where("ip_src = '10.77.0.1'").count() == 1800
    with pytest.raises(Exception, match="there is no column length"):
        reading(columns="length").load(str(folder)).count()
    with pytest.raises(Exception, match="ts_ns is of type bigint, not string"):
        reading().schema("ts_ns string").load(str(folder)).count()


@pytest.mark.parametrize(
    ("condition", "how_many"),
    [
        ("src_port = 40003", lambda row: row["src_port"] == 40003),
        ("src_port != 40003", lambda row: row["src_port"] not in (None, 40003)),
        ("src_port <=> null", lambda row: row["src_port"] is None),
        ("src_port in (40001, 40002)", lambda row: row["src_port"] in (40001, 40002)),
        (
            "src_port not in (40001, 40002)",
            lambda row: row["src_port"] in (40000, *range(40003, 40007)),
        ),
        ("src_port not in (40001, null)", lambda row: False),
        (
            "ip_src is null and wirelen < 50",
            lambda row: row["ip_src"] is None and row["wirelen"] < 50,
        ),
        ("kind = 'tcp' and payload_len >= 250", lambda row: (row["payload_len"] or 0) >= 250),
        ("kind like '%c%'", lambda row: row["kind"] == "tcp"),
        ("seq > 5000 or kind = 'arp'", lambda row: row["kind"] == "arp" or row["seq"] > 5000),
    ],
)
def test_conditions_mean_what_they_mean_in_sql(reading, folder, condition, how_many):
    path = folder / "plain.pcap"
    expected = sum(bool(how_many(row)) for row in read_all(path).rows)
    assert reading().load(str(path)).where(condition).count() == expected


def test_conditions_are_judged_where_the_packets_are_read(reading, folder):
    frame = reading().load(str(folder / "plain.pcap"))

    def plan(condition: str) -> str:
        return frame.where(condition)._jdf.queryExecution().executedPlan().toString()

    assert "Filter " not in plan("src_port = 40003 and kind != 'udp'")
    assert "Filter " in plan("kind like '%c%'")


def test_several_paths_and_patterns(reading, folder):
    several = reading().load([str(folder / "plain.pcap"), str(folder / "deeper")])
    assert several.count() == 2300
    assert reading().load(f"{folder}/p*.pcap*").count() == 2100
    with pytest.raises(Exception, match="there is no capture at"):
        reading().load(str(folder / "nothing*")).count()


def test_comments_and_interfaces_can_be_counted(reading, folder):
    frame = reading().load(str(folder / "deeper"))
    counted = frame.groupBy("interface_name").agg(sf.count("*"), sf.max("comment")).collect()
    assert sorted(map(tuple, counted), key=str) == [("eth0", 150, None), (None, 150, "look here")]

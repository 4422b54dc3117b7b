"""`spark.readStream.format("pcap")`: captures that grow, and files that appear, are read exactly once."""

import pyspark
import pytest

from analysis.captures.source import register
from support.captures.capture_files import START_NS, Captured, Pcapng, pcap, read_all, records
from support.runs.star_runs import Host, packet

pytestmark = pytest.mark.spark

ONE, TWO = Host("one", 1, "10.77.0.1"), Host("two", 2, "10.77.0.2")
COLUMNS = "path,offset,ts_ns,seq,problem"


def some(first: int, count: int) -> list[Captured]:
    return [
        Captured(packet(ONE, TWO, (40000, 80), number, 7, 24, b"x" * 50), START_NS + number)
        for number in range(first, first + count)
    ]


@pytest.fixture
def stream(spark, tmp_path):
    """stream(): a reader of the folder, which is empty at first."""
    register(spark)
    (tmp_path / "in").mkdir()

    def reader(**options: object):
        asked = spark.readStream.format("pcap").option("columns", COLUMNS)
        return asked.options(**options).load(str(tmp_path / "in"))

    return reader


@pytest.fixture
def read_now(stream, spark, tmp_path):
    """read_now(): continue from the checkpoint with everything that is there, and stop; return all rows so far."""

    def go_on(**options: object) -> list[tuple]:
        frame = stream(**options)
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        assert query.awaitTermination(120)
        rows = spark.read.schema(frame.schema).parquet(str(tmp_path / "out")).collect()
        return sorted((row.path, row.offset, row.seq, row.problem) for row in rows)

    return go_on


def of_batch(folder) -> list[tuple]:
    return sorted(
        (row["path"], row["offset"], row["seq"], row["problem"])
        for path in sorted(folder.rglob("*.pcap*"))
        for row in read_all(path).rows
    )


def test_sparks_python_processes_import_pyspark_from_files_with_cached_bytecode(spark):
    """From Spark's archive it takes three times as long, and the process of a source has 10 s to start."""

    def place(batches):
        import pyarrow as pa
        import pyspark

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(place, "place string").collect()
    assert row.place == pyspark.__file__


def test_restarts_read_nothing_twice_and_leave_nothing_out(read_now, tmp_path):
    folder = tmp_path / "in"
    assert read_now() == []
    whole = pcap(some(0, 40))
    (folder / "a.pcap").write_bytes(whole[:2500])  # in the middle of a record
    first = read_now()
    assert [row[2] for row in first] == list(range(20))
    assert read_now() == first

    (folder / "a.pcap").write_bytes(whole)
    section = Pcapng()
    for one in some(100, 5):
        section.add(one)
    (folder / "later").mkdir()
    (folder / "later" / "b.pcapng").write_bytes(section.bytes())
    assert read_now() == of_batch(folder)

    for one in some(105, 5):
        section.add(one)
    (folder / "later" / "b.pcapng").write_bytes(section.bytes())
    found = read_now(maxBytesPerTrigger=1)
    assert found == of_batch(folder)
    assert len(found) == 50
    assert not any(row[3] for row in found)


def test_a_running_query_sees_packets_that_are_added(stream, spark, tmp_path):
    path = tmp_path / "in" / "x.pcap"
    query = stream().writeStream.format("memory").queryName("packets_so_far").start()
    try:
        path.write_bytes(pcap(some(0, 3)))
        query.processAllAvailable()
        assert spark.table("packets_so_far").count() == 3
        with path.open("ab") as file:
            file.write(records(some(3, 4))[:-1])
        query.processAllAvailable()
        assert spark.table("packets_so_far").count() == 6
        with path.open("ab") as file:
            file.write(records(some(6, 1))[-1:])
        query.processAllAvailable()
        rows = spark.table("packets_so_far").collect()
    finally:
        query.stop()
    assert [row.seq for row in rows] == list(range(7))
    assert not any(row.problem for row in rows)


def test_a_batch_that_failed_is_done_again_as_it_was(stream, tmp_path):
    path, done = tmp_path / "in" / "x.pcap", []
    path.write_bytes(pcap(some(0, 3)))
    broken = True

    def take(batch, number: int) -> None:
        rows = sorted(row.seq for row in batch.collect())
        if broken:
            raise RuntimeError("the disk is full")
        done.append((number, rows))

    def run():
        writing = stream().writeStream.foreachBatch(take).trigger(availableNow=True)
        return writing.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    with pytest.raises(Exception, match="the disk is full"):
        run().awaitTermination(120)
    with path.open("ab") as file:
        file.write(records(some(3, 2)))
    broken = False
    assert run().awaitTermination(120)
    assert done == [(0, [0, 1, 2]), (1, [3, 4])]

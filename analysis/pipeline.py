"""From a run folder to its metrics and summary: packets -> streams -> messages -> hops -> deliveries.

Each metric is written as Parquet and read back by the next: the files are the pipeline's own intermediate results.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.fidelity import Evidence, verdict
from analysis.runfolder import Run, read_run
from analysis.scan import jobs_of, scan
from analysis.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str, int, int], None]
STARTING, READING, FOLLOWING, SUMMING = (
    "starting Spark",
    "reading the captures",
    "following the messages",
    "summing up",
)


def _ignore(_stage: str, _done: int, _total: int) -> None:
    """A listener that does not care."""


def analyze(run_dir: Path, *, emit: Progress = _ignore, master: str = "local[*]") -> dict[str, Any]:
    """Measure a run: writes metrics/*.parquet and summary.json, returns the summary."""
    run = read_run(Path(run_dir).resolve())
    jobs_of(run)  # wrong files are found before Spark is started
    emit(STARTING, 0, 1)
    with open_session(master) as spark:
        emit(STARTING, 1, 1)
        return measure(spark, run, emit)


def measure(spark: "SparkSession", run: Run, emit: Progress = _ignore) -> dict[str, Any]:
    """The same in a session that is open already. Metrics of an earlier analysis stay until the new ones are whole."""
    unfinished = run.folder / "metrics.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    summary = _Measurement(spark, run, unfinished, emit).measure()
    shutil.rmtree(run.metrics, ignore_errors=True)
    unfinished.rename(run.metrics)
    _write_json(run.summary, summary)
    return summary


class _Measurement:
    """One run in one session."""

    def __init__(self, spark: "SparkSession", run: Run, folder: Path, emit: Progress) -> None:
        self.spark = spark
        self.run = run
        self.folder = folder
        self.emit = emit

    def measure(self) -> dict[str, Any]:
        from analysis.metrics import delay, deliveries, hops, messages, overhead, publications

        self.emit(READING, 0, 3)
        scanned = scan(self.spark, self.run).persist()
        seen = self._keep("messages", messages.messages(scanned), messages.SCHEMA)
        self.emit(READING, 1, 3)
        links = self._keep("links", overhead.links(scanned), overhead.LINKS_SCHEMA)
        scanned.unpersist()
        self._keep("overhead", overhead.overhead(links), overhead.SCHEMA)
        self.emit(READING, 2, 3)
        logs = self._logs()
        published = self._keep("publications", publications.publications(logs), publications.SCHEMA)
        self.emit(READING, 3, 3)

        self.emit(FOLLOWING, 0, 2)
        crossed = self._keep("hops", hops.hops(seen), hops.SCHEMA)
        self.emit(FOLLOWING, 1, 2)
        brokers = [node.name for node in self.run.nodes if node.kind == "broker"]
        delivered = self._keep(
            "deliveries",
            deliveries.deliveries(published, self._wanted(), crossed, brokers),
            deliveries.SCHEMA,
        )
        self.emit(FOLLOWING, 2, 2)

        self.emit(SUMMING, 0, 1)
        by_priority = self._keep("delay", delay.delay(delivered), delay.SCHEMA)
        receptions = publications.receptions(logs)
        summary = self._summary(published, delivered, by_priority, links, crossed, receptions)
        self.emit(SUMMING, 1, 1)
        return summary

    def _keep(self, name: str, frame: "DataFrame", schema: str) -> "DataFrame":
        """Write a metric and read it back."""
        path = str(self.folder / f"{name}.parquet")
        frame.write.parquet(path)
        return self.spark.read.schema(schema).parquet(path)

    def _logs(self) -> "DataFrame":
        from analysis.metrics.publications import LOG_SCHEMA

        files = [str(path) for path in self.run.log_files()]
        if not files:
            return self.spark.createDataFrame([], LOG_SCHEMA)
        return self.spark.read.schema(LOG_SCHEMA).json(files)

    def _wanted(self) -> "DataFrame":
        """Who wants which topic, from the manifest."""
        pairs = [(topic, node.name) for node in self.run.nodes for topic in node.topics]
        return self.spark.createDataFrame(pairs, "topic string, receiver string")

    def _summary(
        self,
        published: "DataFrame",
        delivered: "DataFrame",
        by_priority: "DataFrame",
        links: "DataFrame",
        crossed: "DataFrame",
        receptions: "DataFrame",
    ) -> dict[str, Any]:
        from pyspark.sql import functions as sf

        levels = sorted(by_priority.collect(), key=lambda row: -row.priority)
        reached = [row for row in levels if row.delivered]
        per_link = links.collect()
        plays = published.agg(
            sf.count("*").alias("n"), sf.percentile("late_s", 0.99).alias("late")
        ).first()
        assert plays is not None
        reasons = delivered.where("status = 'lost'").groupBy("reason").count().collect()
        got = delivered.where("status = 'delivered'").select("id", "receiver")
        evidence = Evidence(
            late_p99_s=plays.late,
            lost_tail_links=tuple(sorted(row.link for row in per_link if row.lost_tail_bytes)),
            missing_bytes=_by_link(per_link, "missing_bytes"),
            compressed_messages=sum(row.compressed_messages for row in per_link),
            unlogged_messages=crossed.select("id").distinct().join(published, "id", "anti").count(),
            unseen_receptions=receptions.join(got, ["id", "receiver"], "anti").count(),
        )
        return {
            "run": self.run.name,
            "backend": self.run.backend,
            "emulator": self.run.emulator,
            "messages": {
                "published": plays.n,
                "expected_deliveries": sum(row.expected for row in levels),
                "delivered": sum(row.delivered for row in levels),
                "lost": sum(row.lost for row in levels),
                "duplicates": sum(row.duplicates for row in levels),
            },
            "delay_s": {
                str(row.priority): {
                    "n": row.delivered,
                    **{name: row[name] for name in ("p50", "p95", "p99", "max")},
                }
                for row in reached
            },
            "hops": {
                str(row.priority): {"mean": row.hops_mean, "max": row.hops_max} for row in reached
            },
            "overhead": {
                "payload_bytes": sum(row.payload_bytes for row in per_link),
                "wire_bytes": sum(row.wire_bytes for row in per_link),
                "packets": sum(row.packets for row in per_link),
                "retransmitted_packets": sum(row.retransmitted_packets for row in per_link),
            },
            "fidelity": verdict(self.run, evidence),
            "by_priority": {
                str(row.priority): {
                    "expected": row.expected,
                    "delivered": row.delivered,
                    "lost": row.lost,
                }
                for row in levels
            },
            "lost_reasons": {row.reason: row["count"] for row in sorted(reasons, key=_commonest)},
        }


def _commonest(row: Any) -> tuple[int, str]:
    return -row["count"], row.reason


def _by_link(rows: list[Any], column: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for row in rows:
        if row[column]:
            sizes[row.link] = sizes.get(row.link, 0) + row[column]
    return sizes


def _write_json(path: Path, document: dict[str, Any]) -> None:
    """All of it or nothing: the file appears when it is whole."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(document, indent=2) + "\n")
    unfinished.replace(path)

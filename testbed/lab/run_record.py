"""The record of a run: published.jsonl lists its publications, the manifest says how late they were.

The times of boards with wrong clocks are corrected. hazard.json describes the course of the scenario's hazard.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.hazards.record import record
from testbed.jsonfiles import write_json
from testbed.places import RunPlace
from testbed.recording.actions import FAILED, actions_of, recorded
from testbed.recording.deliveries import MARKS, Deliveries, Missing, deliveries_of
from testbed.recording.events import PLAY
from testbed.recording.lateness import Lateness, lateness
from testbed.recording.publications import (
    PUBLISHED,
    RecordedPublication,
    as_lines,
    never_published,
    read_planned_publications,
    read_recorded_publications,
    recorded_publications,
)
from testbed.records import UNFINISHED, read_manifest, update_manifest
from testbed.scenario import Downtimes, Publication, without_downtimes
from testbed.scenario.compile import hazard_histories
from testbed.topology.model import ActionKind, Topology

# Boards with wrong clocks: they get times by their own clocks, and their logs are corrected when read.


CLOCKS_FILE = "clocks.jsonl"
MIN_OFFSET_NS = 5_000_000  # ignore smaller offsets: the scenario's times are not more exact


def clock_offsets(run: RunPlace) -> dict[str, int]:
    """Node -> how far its clock was ahead at its setup (ns), if that matters; constant through the run."""
    path = run.folder / CLOCKS_FILE
    if not path.exists():
        return {}
    first: dict[str, int] = {}
    for line in path.read_text().splitlines():
        with suppress(ValueError, KeyError, TypeError):  # torn by a crash
            reading = json.loads(line)
            first.setdefault(str(reading["node"]), int(reading["offset_ns"]))
    return {node: ahead for node, ahead in first.items() if abs(ahead) > MIN_OFFSET_NS}


INJECTED = "injected"  # key of the manifest: publications by hand


def record_publications(run: RunPlace) -> Lateness | None:
    """Write the publications since the scenario began, or since the first one if no scenario was played.

    Called at the end of a scenario, and again when the lab is down: more may have been injected by then.
    """
    manifest = read_manifest(run)
    play = manifest.get("play")
    lines = list(_published(run))
    start_ns = began_ns(run, manifest)
    if start_ns is None:
        start_ns = min((line["t"] for line in lines), default=0)
    planned = (
        read_planned_publications(run.planned.read_text().splitlines())
        if run.planned.exists()
        else []
    )
    rows = recorded_publications(planned, lines, start_ns)
    beside = run.published.with_suffix(".new")
    beside.write_text("".join(as_lines(rows)))
    beside.replace(run.published)
    late = lateness(row.late_ns for row in rows if row.late_ns is not None)
    if play:
        actions = actions_of(recorded(manifest), start_ns, as_due=True)
        # Only now it is known which nodes were down when.
        due = without_downtimes(planned, actions)
        counts = {
            "planned": len(due),
            "published": len(rows),
            "unplanned": sum(not row.planned for row in rows),
            "never_published": len(never_published(due, rows)),
        }
        action_lateness = lateness(
            entry["t_ns"] - entry["due_ns"]
            for entry in recorded(manifest)
            if entry["t_ns"] >= start_ns
            and FAILED not in entry["details"]
            and entry["action"]
            != ActionKind.START  # it holds when the node runs, not when it was due
        )
        summary = {
            "lateness": asdict(late) if late else None,
            "action_lateness": asdict(action_lateness) if action_lateness else None,
            "publications": counts,
        }
        update_manifest(run, play={**play, **summary})
    return late


def began_ns(run: RunPlace, manifest: dict[str, Any]) -> int | None:
    """Start time of the scenario, from the journal if it was interrupted; None if no scenario was played."""
    if play := manifest.get("play"):
        return int(play["start_ns"])
    if not run.journal.exists():
        return None
    starts = [
        int(step["start_ns"])
        for step in _objects(run.journal, f'"{PLAY}"')
        if step.get("step") == PLAY and "start_ns" in step
    ]
    return starts[-1] if starts else None


def publications_in(run: RunPlace) -> list[RecordedPublication]:
    """The publications of a run; written anew from its logs while it runs, or if it has no record yet."""
    if not run.published.exists() or read_manifest(run)["status"] in UNFINISHED:
        record_publications(run)
    return read_recorded_publications(run.published.read_text().splitlines())


def deliveries_in(run: RunPlace, topology: Topology, since_ns: int) -> Deliveries | None:
    """The deliveries of all publications since this time, by the nodes' logs; None if not all logs are here."""
    paths = [run.log(node.name) for node in topology.ours]
    if not all(path.exists() for path in paths):  # boards keep their logs until the lab goes down
        return None
    manifest = read_manifest(run)
    start_ns = began_ns(run, manifest) or 0
    times = Downtimes(actions_of(recorded(manifest), start_ns))
    records = (record for path in paths for record in _objects(path, *MARKS))
    return deliveries_of(
        topology, records, since_ns, lambda name, at_ns: times.down(name, at_ns - start_ns)
    )


def record_under_way(run: RunPlace, coming: Sequence[Missing]) -> None:
    """Record how many missing deliveries a longer wait may have brought."""
    play = read_manifest(run)["play"]
    update_manifest(run, play={**play, "under_way": len(coming)})


def _published(run: RunPlace) -> Iterator[dict[str, Any]]:
    """Log lines of publications, with times of this machine's clock."""
    ahead = clock_offsets(run)
    for path in sorted(run.logs.glob("*.jsonl")):
        for line in _objects(path, f'"{PUBLISHED}"'):
            yield {**line, "t": int(line["t"]) - ahead.get(path.stem, 0)}


def _objects(path: Path, *marks: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of those lines that contain one of the marks."""
    with path.open() as lines:
        for line in lines:
            if any(mark in line for mark in marks):
                with suppress(ValueError):  # torn by a crash
                    yield json.loads(line)


def injected_since(run: RunPlace, since_ns: int, start_ns: int) -> tuple[Publication, ...]:
    """Publications by hand since this time; their times count from the scenario's start."""
    return tuple(
        Publication(
            entry["t_ns"] - start_ns,
            entry["node"],
            entry["topic"],
            entry["priority"],
            entry["size"],
            tuple(entry["place"]),
        )
        for entry in read_manifest(run).get(INJECTED, [])
        if entry["t_ns"] >= since_ns
    )


# hazard.json of a run, for the report.


def record_hazard(run: RunPlace, topology: Topology) -> None:
    """Write hazard.json; remove it if the scenario has no hazard."""
    scenario = topology.scenario
    if scenario.hazard is None:
        run.hazard.unlink(missing_ok=True)
        return
    histories = hazard_histories(topology, scenario.hazard)
    write_json(run.hazard, record(scenario.hazard, histories, scenario.duration_s, scenario.speed))

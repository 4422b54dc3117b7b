"""Which files of a tree take part in three journeys, found by running them with a recorder (recorder.py).

message     a level-5 message, from the publication in the sensor's process to the subscriber's log line
delay       `testbed analyze`: from the first look into a capture to the written delay table
up          `testbed up` on the netns backend: from the command to the nodes' first log lines
up-docker   the same on the docker backend; needs an engine

Modules are not named here: a run's logs, its tables and the opened files are the markers.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.inventory_parts import recorder
from scripts.inventory_parts.running import SAMPLE, SMALL
from scripts.inventory_parts.trees import PRODUCT, Finished, Tree, say, scratch

MESSAGE, DELAY, UP, UP_DOCKER = "message", "delay", "up", "up-docker"
DESCRIBED = {
    MESSAGE: "A level-5 message, from `publish` to the subscriber's log line",
    DELAY: "`testbed analyze`, from the capture to the delay table",
    UP: "`testbed up` on netns, from the command to the start of the nodes' processes",
    UP_DOCKER: "`testbed up` on docker, from the command to the start of the containers",
}
JOURNEYS = tuple(DESCRIBED)
USUAL = f"{MESSAGE},{DELAY},{UP}"
MESSAGE_ID = re.compile(r"[0-9a-f]{16}")
CAPTURES, DELAY_TABLE = "pcap", "delay*"
ROLE = re.compile(rb"TESTBED_ROLE=([^\0]+)")
BESIDE = ("relay", "capture", "monitor", "calibration")  # processes that carry no part of `up`


@dataclass(frozen=True)
class Call:
    """A line of the recorder."""

    t: int
    turn: int
    what: str


@dataclass
class Process:
    """The notes of a process."""

    pid: int
    label: str
    calls: list[Call] = field(default_factory=list)

    def files(self, begin: int, end: int) -> list[str]:
        """The files that run in this time, in the order of their first calls."""
        found = (call.what for call in self.calls if begin <= call.t <= end)
        return list(dict.fromkeys(what for what in found if not what.startswith("!")))


@dataclass(frozen=True)
class Journey:
    """What took part, by process; the processes in the order in which they began."""

    processes: dict[str, list[str]]

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(file for files in self.processes.values() for file in files))

    def as_json(self) -> dict[str, Any]:
        return {"files": len(self.files), "processes": self.processes}


class Recording:
    """A folder with the recorder's notes, and the environment that makes processes write them."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        self._tree = tree
        self._folder = folder / "calls"
        self._folder.mkdir()
        self._switch = self._folder / recorder.SWITCH
        self.every_call(False)
        self._place = folder / "recorder"
        self._place.mkdir()
        shutil.copy(recorder.__file__, self._place / "sitecustomize.py")
        self.roles: dict[int, str] = {}

    @property
    def variables(self) -> dict[str, str]:
        packages = [f"{self._tree.folder / name}/" for name in PRODUCT]
        return {
            "PYTHONPATH": os.pathsep.join([str(self._place), str(self._tree.folder)]),
            recorder.FOLDER: str(self._folder),
            recorder.TREE: os.pathsep.join(packages),
            recorder.WATCHED: CAPTURES,
        }

    def every_call(self, on: bool) -> None:
        """Whether all calls are noted, or the first of each file."""
        with self._switch.open("r+b" if self._switch.exists() else "wb") as file:
            file.write(b"\1" if on else b"\0")

    def look_at_roles(self) -> None:
        """The roles of the processes that live now: a fork may have changed its own since it began."""
        for path in self._folder.iterdir():
            try:
                found = ROLE.search(Path("/proc", path.name, "environ").read_bytes())
            except OSError:
                continue
            if found:
                self.roles[int(path.name)] = found[1].decode()

    def processes(self) -> list[Process]:
        """In the order of their first notes."""
        paths = (path for path in self._folder.iterdir() if path.name.isdigit())
        found = [self._process(path) for path in paths]
        return sorted((each for each in found if each.calls), key=lambda each: each.calls[0].t)

    def _process(self, path: Path) -> Process:
        pid, calls, label = int(path.name), [], ""
        for line in path.read_text().splitlines():
            first, second, rest = line.split("\t", 2)
            if first == "#":
                label = self.roles.get(pid) or _label(*rest.split("\t", 1))
            else:
                calls.append(Call(int(first), int(second), rest))
        return Process(pid, label, calls)


def _label(role: str, command: str) -> str:
    """What a process is called in the lists."""
    return role or ("Spark's Python workers" if "pyspark" in command else "command")


def journeys(tree: Tree, only: Sequence[str]) -> dict[str, Journey]:
    """Run what the chosen journeys need."""
    found = {}
    if {MESSAGE, UP} & set(only):
        with scratch() as folder:
            found.update(_lab(tree, folder, "netns", play=MESSAGE in only))
    if DELAY in only:
        with scratch() as folder:
            found[DELAY] = _analysis(tree, folder)
    if UP_DOCKER in only:  # no recorder runs in containers: nothing is played
        with scratch() as folder:
            found[UP_DOCKER] = _lab(tree, folder, "docker", play=False)[UP]
    return {name: found[name] for name in only}


def _lab(tree: Tree, folder: Path, backend: str, *, play: bool) -> dict[str, Journey]:
    """The small topology: up, its scenario, down."""
    recording = Recording(tree, folder)
    topology = str(tree.folder / SMALL)

    def command(*arguments: str) -> Finished:
        say(f"testbed {arguments[0]} ...")
        return tree.command(*arguments, cwd=folder, variables=recording.variables)

    try:
        _well(command("up", topology, "--backend", backend))
        recording.look_at_roles()
        if play:
            recording.every_call(True)
            _well(command("play"))
            recording.every_call(False)
    finally:
        down = command("down", Path(topology).stem)
    _well(down)
    (run,) = (folder / "captures").iterdir()
    records = read_logs(run / "logs")
    found = {UP: up_journey(recording.processes(), records)}
    if play:
        found[MESSAGE] = message_journey(recording.processes(), records)
    return found


def _analysis(tree: Tree, folder: Path) -> Journey:
    recording = Recording(tree, folder)
    run = folder / "captures" / "sample"
    shutil.copytree(tree.folder / SAMPLE, run)
    shutil.rmtree(run / "metrics", ignore_errors=True)
    say("testbed analyze ...")
    _well(tree.command("analyze", str(run), cwd=folder, variables=recording.variables))
    tables = [path for table in (run / "metrics").glob(DELAY_TABLE) for path in table.rglob("*")]
    end = max(path.stat().st_mtime_ns for path in tables)
    return delay_journey(recording.processes(), end)


def _well(done: Finished) -> None:
    if done.code:
        raise RuntimeError(f"exit code {done.code}:\n{done.out[-2000:]}{done.err[-2000:]}")


def read_logs(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Node -> the records of its log."""
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.glob("*.jsonl"))
    }


def up_journey(processes: Iterable[Process], records: Mapping[str, Any]) -> Journey:
    """All that runs until the last node has begun, except in the nodes and in processes beside them."""
    end = max(lines[0]["t"] for lines in records.values())
    apart = tuple(each for each in processes if not _stands_beside(each.label))
    return _together((each.label, each.files(0, end)) for each in apart)


def _stands_beside(label: str) -> bool:
    return label.startswith(("node:", *BESIDE))


def delay_journey(processes: Sequence[Process], end: int) -> Journey:
    """All that runs between the first opening of a capture and the end of the delay table."""
    opened = [call.t for each in processes for call in each.calls if call.what.startswith("!open")]
    return _together((each.label, each.files(min(opened), end)) for each in processes)


def _together(labelled: Iterable[tuple[str, list[str]]]) -> Journey:
    found: dict[str, dict[str, None]] = {}
    for label, files in labelled:
        if files:
            found.setdefault(label, {}).update(dict.fromkeys(files))
    return Journey({label: list(files) for label, files in found.items()})


@dataclass(frozen=True)
class Passage:
    """A message that one node published and another got."""

    origin: str
    published: int
    receiver: str
    received: int


def passages(records: Mapping[str, list[dict[str, Any]]]) -> list[Passage]:
    """From the logs: each message's first record, and the first one in another node's log."""
    sightings: dict[str, list[tuple[int, str]]] = {}
    for node, lines in records.items():
        for line in lines:
            texts = [value for value in line.values() if isinstance(value, str)]
            for text in texts:
                if MESSAGE_ID.fullmatch(text):
                    sightings.setdefault(text, []).append((line["t"], node))
    found = []
    for seen in sightings.values():
        t, origin = min(seen)
        others = sorted(each for each in seen if each[1] != origin)
        if others:
            found.append(Passage(origin, t, others[0][1], others[0][0]))
    return sorted(found, key=lambda each: each.published)


def message_journey(
    processes: Sequence[Process], records: Mapping[str, list[dict[str, Any]]]
) -> Journey:
    """What runs in each message's time in the nodes: files that run for some messages only are others' work."""
    nodes = {each.label.removeprefix("node:"): each for each in processes if "node:" in each.label}
    ways = passages(records)
    if not ways:
        raise RuntimeError("no message has arrived")
    found: dict[str, list[str]] = {}
    for way in ways:
        begin = _begin(nodes[way.origin], way.published)
        end = _written(nodes[way.receiver], way.received)
        for name, process in nodes.items():
            files = process.files(begin, end)
            kept = found.get(name, files)
            found[name] = [file for file in kept if file in files]
    ends = (ways[0].origin, ways[0].receiver)
    between = [name for name in found if name not in ends]
    return Journey({f"node:{name}": found[name] for name in (ends[0], *between, ends[1])})


def _begin(process: Process, t: int) -> int:
    """When the callback began in which the message was published."""
    return max((call.turn for call in process.calls if call.turn <= t), default=t)


def _written(process: Process, t: int) -> int:
    """When the record of this time was written."""
    return min(call.t for call in process.calls if call.what == "!write" and call.t >= t)


def shown(found: Mapping[str, Journey]) -> str:
    """Numbers and lists, as Markdown."""
    parts = []
    for name, journey in found.items():
        parts += [f"### {DESCRIBED[name]}: {len(journey.files)} files", "", "```text"]
        for label, files in journey.processes.items():
            parts += [f"{label} ({len(files)})", *(f"    {file}" for file in files)]
        parts += ["```", ""]
    return "\n".join(parts).rstrip()


def compared(old: Mapping[str, Any], new: Mapping[str, Journey]) -> str:
    """How many files took part before and do now, as a Markdown table; `old` is a document of `--json`."""
    lines = ["| journey | before | now |", "| --- | --- | --- |"]
    for name, journey in new.items():
        before = old.get(name, {}).get("files", "not measured")
        lines.append(f"| {DESCRIBED[name]} | {before} | {len(journey.files)} |")
    return "\n".join(lines)

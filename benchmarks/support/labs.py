"""Labs for benchmarks: a topology of any size, brought up and taken down with the command that users call."""

import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.support.harness import finished, timed
from testbed.errors import TestbedError
from testbed.keeper.client import Keeper
from testbed.keeper.processes import end_marked
from testbed.places import LabPlace, RunPlace
from testbed.records import read_manifest

# The peer of the netns backend can only limit rates here, so do both.
RATE_ONLY = "128kbit/s"
_STAR = """\
name: {name}
links:
  emulator: {emulator}
  profiles:
    rate-only:
      both: {{rate: {rate}}}
defaults:
  link: {link}
nodes:
  broker: {{kind: broker, link: lan}}
groups:
  sensors: {{kind: sensor, count: {sensors}}}
  offices: {{kind: subscriber, count: {offices}, topics: [alerts]}}
scenario:
  duration: 1s
"""


def star(name: str, count: int, link: str, emulator: str = "auto") -> str:
    """The text of a topology of `count` nodes: a broker, a tenth of the rest subscribers, the others sensors."""
    offices = max(1, (count - 1) // 10)
    return _STAR.format(
        name=name,
        link=link,
        emulator=emulator,
        rate=RATE_ONLY,
        offices=offices,
        sensors=count - 1 - offices,
    )


@dataclass(frozen=True, slots=True)
class BenchmarkLab:
    """One lab in a folder of the benchmark's own."""

    name: str
    folder: Path
    text: str
    backend: str
    env: Mapping[str, str]

    @property
    def file(self) -> Path:
        """The topology file."""
        return self.folder / f"{self.name}.yaml"

    def up(self) -> float:
        """Seconds until `up` returns: all nodes are connected, the links calibrated."""
        self.file.write_text(self.text)
        return self.command("up", str(self.file), "--backend", self.backend)

    def up_and_ready(self) -> tuple[float, float]:
        """Seconds until `up` returns, and until the last node was ready, by its log."""
        began_s = time.time()
        took_s = self.up()
        return took_s, max(map(ready_at, self._logs())) / 1e9 - began_s

    def manifest(self) -> dict[str, Any]:
        """The manifest of the newest run."""
        return read_manifest(self.newest_run())

    def newest_run(self) -> RunPlace:
        """The folder of the newest run."""
        runs = (self.folder / "c").glob(f"{self.name}-*")
        return RunPlace(max(runs, key=lambda run: run.stat().st_mtime))

    def _logs(self) -> list[Path]:
        """The logs of all nodes of the newest run."""
        return sorted(self.newest_run().logs.glob("*.jsonl"))

    def down(self) -> float:
        """Seconds until nothing is left."""
        return self.command("down", self.name)

    def command(self, *arguments: str) -> float:
        """Seconds that a command of the testbed took."""
        argv = [sys.executable, "-m", "testbed", *arguments]
        return timed(argv, self._environment, self.folder)

    def answer(self, *arguments: str) -> dict[str, Any]:
        """The --json document of a testbed command."""
        argv = [sys.executable, "-m", "testbed", *arguments, "--json"]
        output = finished(argv, self._environment, self.folder).stdout
        document: dict[str, Any] = json.loads(output)
        return document

    def clear(self) -> None:
        """Remove the rest of the lab, after a failure or an interrupt."""
        with suppress(TestbedError):
            self.down()

    @property
    def _environment(self) -> dict[str, str]:
        source = str(Path(__file__).resolve().parents[2])
        return {
            **self.env,
            "PYTHONPATH": source,
            "TESTBED_STATE": str(self.folder / "s"),
            "TESTBED_CAPTURES": str(self.folder / "c"),
        }


def ready_at(log: Path) -> int:
    """When the node was first ready, in ns since 1970."""
    events = (json.loads(line) for line in log.read_text().splitlines())
    return next(int(event["t"]) for event in events if event["event"] == "ready")


# A lab's core without a lab: the benchmark adds links and programs one by one.


class BareCore:
    """A context manager, which ends everything that was added to it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._place = LabPlace(folder / "s" / name)

    def __enter__(self) -> Self:
        self._place.folder.mkdir(parents=True)
        self._keeper = Keeper.launch(self._place, "benchmark")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end_marked(self._place)

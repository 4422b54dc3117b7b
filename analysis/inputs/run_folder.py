"""A run folder: the manifest, and the paths of captures, traces, logs and results."""

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError

FORMAT = 2
MAC_PREFIX = 0x027462 << 24  # 02:74:62: and the node's number


@dataclass(frozen=True, slots=True)
class RunNode:
    """A node of the manifest."""

    name: str
    number: int
    kind: str
    profile: str
    address: int
    topics: tuple[str, ...]
    at: tuple[float, float] | None
    router: str | None = None  # the node whose link it shares

    @property
    def mac(self) -> int:
        return MAC_PREFIX + self.number


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder with its manifest read."""

    folder: Path
    manifest: dict[str, Any]
    nodes: tuple[RunNode, ...]

    @property
    def name(self) -> str:
        return str(self.manifest["run"])

    @property
    def backend(self) -> str:
        return str(self.manifest["backend"]["name"])

    @property
    def emulator(self) -> str:
        """The link emulator; unknown if the start of the lab was killed before there were links."""
        return str(self.manifest["emulator"]["name"]) if self.manifest["emulator"] else "unknown"

    @property
    def simulated(self) -> bool:
        """Whether there are traces of a simulator instead of captures."""
        return self.trace.is_dir()

    @property
    def captures_wanted(self) -> bool:
        return bool(self.manifest["topology"]["capture"]["enabled"])

    @property
    def measured_from_ns(self) -> int:
        """Only publications from this time on count: before it, the lab was different (`up` after an edit)."""
        return int(self.manifest.get("measured_from_ns") or 0)

    @property
    def trace(self) -> Path:
        return self.folder / "trace"

    @property
    def machine(self) -> Path:
        return self.folder / "machine.jsonl"

    @property
    def clocks(self) -> Path:
        """Measurements of clocks other than the lab machine's."""
        return self.folder / "clocks.jsonl"

    @property
    def boards(self) -> Path:
        """The boards of the run; a board has its own clock."""
        return self.folder / "boards.json"

    @property
    def hazard(self) -> Path:
        return self.folder / "hazard.json"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics"

    @property
    def summary(self) -> Path:
        return self.folder / "summary.json"

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def pcap(self, node: RunNode) -> Path:
        return self.folder / "pcap" / f"{node.name}.pcap"

    def captured(self) -> tuple[RunNode, ...]:
        """The nodes whose link was captured."""
        return tuple(node for node in self.nodes if self.pcap(node).exists())

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if node.kind == "broker")

    @property
    def played(self) -> tuple[int, int] | None:
        """Begin and end of the scenario in ns; None if none was played."""
        play = self.manifest.get("play")
        return (int(play["start_ns"]), int(play["end_ns"])) if play else None

    @property
    def start_ns(self) -> int:
        """Begin of the scenario; of the run if none was played."""
        return self.played[0] if self.played else int(self.manifest["created_ns"])

    @property
    def deadlines(self) -> dict[int, float]:
        """Level -> deadline in seconds; levels without one are left out."""
        return {int(level): float(s) for level, s in self.manifest["topology"].get("deadlines", ())}

    @property
    def captures_removed(self) -> bool:
        """Whether `testbed runs prune --captures-only` has removed the captures or traces."""
        return bool(self.manifest.get("captures_removed")) and not (
            self.captured() or (self.simulated and any(self.trace.iterdir()))
        )

    def log_files(self) -> list[Path]:
        return sorted((self.folder / "logs").glob("*.jsonl"))


def read_run(folder: Path) -> Run:
    """Read the run in this folder; AnalysisError if that is not possible."""
    path = folder / "run.json"
    try:
        manifest = json.loads(path.read_text())
    except FileNotFoundError:
        raise AnalysisError(
            f"{folder} is not a run folder: it has no run.json.",
            "`testbed run` makes one; `testbed status` names the latest.",
        ) from None
    except ValueError as error:
        raise AnalysisError(
            f"{path} is not JSON ({error}).", "The run did not end well; run it again."
        ) from None
    if manifest.get("format") != FORMAT:
        raise AnalysisError(
            f"{path} has format {manifest.get('format')!r}; this version reads {FORMAT}.",
            "Run its topology again, or use the version of testbed that made the run.",
        )
    nodes = tuple(_node(value) for value in manifest["topology"]["nodes"])
    return Run(folder, manifest, nodes)


def refuse_removed_captures(run: Run) -> None:
    """AnalysisError if there is nothing to measure any more: results without messages would replace the real ones."""
    if not run.captures_removed:
        return
    kept = (
        "Its metrics and its report are still there"
        if run.summary.exists()
        else "It has no metrics"
    )
    raise AnalysisError(
        f"The captures of {run.name} were removed by `testbed runs prune --captures-only`, so it cannot be "
        "measured again.",
        f"{kept}; run its topology again for new captures: `testbed runs show {run.name}` has the command.",
    )


def _node(value: dict[str, Any]) -> RunNode:
    at = value.get("at")
    return RunNode(
        name=value["name"],
        number=value["number"],
        kind=value["kind"],
        profile=value["profile"],
        address=int(ipaddress.ip_address(value["address"])),
        topics=tuple(value["topics"]),
        at=(at[0], at[1]) if at else None,
        router=value.get("router"),
    )

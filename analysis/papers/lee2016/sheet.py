"""Which node of a run is which cell: read from the manifest, where `testbed reproduce` writes it as `paper`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.errors import AnalysisError
from analysis.runfolder import Run

DELAY, TRAFFIC = "delay", "traffic"  # experiments
THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Sheet:
    """One lab of a reproduction."""

    scale: int
    emulator: str
    cells: Mapping[str, Mapping[str, Any]]  # node: cell
    urgent_topics: tuple[str, ...]
    messages_of_traffic: int
    standard_period_s: float
    titles: Mapping[str, str]  # series: title, in their order
    thesis: Mapping[str, Any]

    def nodes(self, experiment: str) -> list[str]:
        """The nodes of an experiment."""
        return [name for name, cell in self.cells.items() if cell["experiment"] == experiment]


def read_sheet(run: Run) -> Sheet:
    """AnalysisError if the run was not made to reproduce this paper."""
    paper = run.manifest.get("paper") or {}
    if paper.get("name") != "lee2016":
        raise AnalysisError(
            f"Run {run.name} was not made to reproduce lee2016.", "`testbed reproduce lee2016`"
        )
    return Sheet(
        scale=paper["scale"],
        emulator=paper["emulator"],
        cells=paper["cells"],
        urgent_topics=tuple(paper["urgent_topics"]),
        messages_of_traffic=paper["messages_of_traffic"],
        standard_period_s=paper["standard_period_s"],
        titles={one["key"]: one["title"] for one in paper["series"]},
        thesis=paper["thesis"],
    )

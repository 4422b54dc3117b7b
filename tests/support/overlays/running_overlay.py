"""Ask the brokers of a real lab for their graph while they run, and read the publications in its nodes' logs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.lines import records
from support.overlays.reported_graph import reported_links, sorted_links
from testbed.control import request_all
from testbed.places import LabPlace

PATIENCE_S = 60.0  # a node that has ended does not take so long: its socket refuses


def ask(lab: str, names: Iterable[str], question: str) -> dict[str, dict[str, Any]]:
    """The answers of the nodes that are alive, by name."""
    place = LabPlace.of(lab)
    paths = {name: place.node_control(name) for name in names}
    return request_all(paths, {"do": question}, PATIENCE_S)


def overlay_is_whole(lab: str, brokers: Iterable[str]) -> bool:
    """Whether the running brokers have, on every level, exactly the neighbours that sorting gives."""
    answers = ask(lab, brokers, "overlay").values()
    graphs = [answer["overlay"]["graph"] for answer in answers]
    return bool(graphs) and reported_links(graphs) == sorted_links(graphs)


@dataclass(frozen=True, slots=True)
class PublicationLog:
    """Publications in the logs of a run, by id, and how often each subscriber's application got each."""

    published: dict[str, dict[str, Any]]
    handed: Counter[tuple[str, str]]  # subscriber and id

    @classmethod
    def read(cls, run_folder: Path) -> "PublicationLog":
        """Read the logs of all nodes of the run."""
        logs = sorted((run_folder / "logs").glob("*.jsonl"))
        events = [record for log in logs for record in records(log)]
        published = {e["id"]: e for e in events if e["event"] == "publish"}
        handed = Counter((e["node"], e["id"]) for e in events if e["event"] == "receive")
        return cls(published, handed)

    def missing(self, topics: dict[str, set[str]], level: int) -> list[tuple[str, str]]:
        """Publications of this level that were not handed to a subscriber which wants them."""
        return [
            (subscriber, identity)
            for subscriber, wanted in topics.items()
            for identity, event in self.published.items()
            if event["priority"] == level and event["topic"] in wanted
            if not self.handed[subscriber, identity]
        ]

    def twice(self) -> list[tuple[str, str]]:
        """Publications that were handed to an application more than once."""
        return [pair for pair, times in self.handed.items() if times > 1]

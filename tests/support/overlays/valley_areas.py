"""Which subscriber should get which event of a topology file with areas, found in the file itself by plain comparisons.

Independent of the product: no coordinates, no boxes, no interests. An event's level gives its values.
"""

from pathlib import Path
from typing import Any

import yaml

TOPOLOGIES = Path(__file__).resolve().parents[3] / "topologies"


class Valley:
    """The topology file, parsed by this module alone."""

    def __init__(self, file: str = "valley-alerts") -> None:
        self.text = (TOPOLOGIES / f"{file}.yaml").read_text()
        raw = yaml.safe_load(self.text)
        self.at = {name: node["at"] for name, node in raw["nodes"].items() if "at" in node}
        for name, group in raw["groups"].items():
            self.at |= {f"{name}-{index}": place for index, place in enumerate(group.get("at", ()))}
        self.wanted = {
            name: _wanted(node)
            for name, node in raw["nodes"].items()
            if node["kind"] == "subscriber"
        }
        events = [event["publish"] for event in raw["scenario"]["events"]]
        self.tilts = {event["priority"]: event.get("values", {}).get("tilt", 0) for event in events}
        assert len(self.tilts) == len(events), "a level identifies the event"

    def receivers(self, sensor: str, level: int) -> set[str]:
        """The subscribers that should get an alert of this level from there."""
        latitude, longitude = self.at[sensor]
        return {
            name
            for name, several in self.wanted.items()
            if any(
                level >= low_level
                and south <= latitude <= north
                and west <= longitude <= east
                and flat <= self.tilts[level] <= steep
                for low_level, (south, west), (north, east), (flat, steep) in several
            )
        }


def _wanted(node: dict[str, Any]) -> list[Any]:
    several = node.get("subscribe", {} if "topics" in node else None)
    return [
        (
            one.get("min_priority", 1),
            *one.get("within", ([-90, -180], [90, 180])),
            one.get("where", {}).get("tilt", (-90, 90)),
        )
        for one in (several if isinstance(several, list) else [several])
    ]

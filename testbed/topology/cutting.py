"""Taking the wrong parts out of a file's data, so that the sound rest can be checked further in the same go."""

import copy
from collections.abc import Iterable
from typing import Any

from testbed.topology.source_map import Path

EVENTS: Path = ("scenario", "events")  # the one list whose items stand each for itself

# A required value that is wrong is replaced by a harmless one, or its whole section would have to go.
_STAND_INS: dict[tuple[str, str], Any] = {
    ("nodes", "kind"): "sensor",
    ("groups", "kind"): "sensor",
    ("groups", "count"): 1,
    ("scenario", "duration"): "0s",
    ("scenario", "at"): "0s",
    ("scenario", "topic"): "x",
    ("scenario", "size"): "1B",
    ("scenario", "down"): "1s",
    ("scenario", "above"): "1s",
    ("scenario", "rate"): "1bit/s",
    ("scenario", "to"): "x",
    ("scenario", "up"): "1s",
}


def has_stand_in(path: Path) -> bool:
    """Whether a wrong or missing value at this path can be replaced."""
    return _stand_in(path) is not None


def _stand_in(path: Path) -> Any:
    return _STAND_INS.get((str(path[0]), str(path[-1])))


class Cutting:
    """The data, of which one wrong part after another is taken away or replaced; the original stays as it is."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.cut: set[Path] = set()  # in the places of the original file
        scenario = self.data.get("scenario")
        events = scenario.get("events") if isinstance(scenario, dict) else None
        self.events = list(range(len(events))) if isinstance(events, list) else []

    def remove(self, wrong: Iterable[Path]) -> bool:
        """Take out these parts, named by their places in `data`; False if nothing would be left."""
        if not self.cut:
            self.data = copy.deepcopy(self.data)
        # Later list items first, so that the places of the earlier ones stay right; parts before what contains them.
        order = sorted(
            set(wrong), key=lambda path: [(type(s) is int, s) for s in path], reverse=True
        )
        for path in order:
            if not path:
                return False
            original = self._original(path)
            container = self.data
            for step in path[:-1]:
                container = container[step]
            stand_in = _stand_in(path)
            if stand_in is not None and original not in self.cut and isinstance(container, dict):
                container[path[-1]] = stand_in
            else:
                container.pop(path[-1])
                if path[:-1] == EVENTS:
                    self.events.pop(int(path[-1]))
            self.cut.add(original)
        return True

    def _original(self, path: Path) -> Path:
        if path[:2] == EVENTS and len(path) > 2:
            return (*EVENTS, self.events[int(path[2])], *path[3:])
        return path

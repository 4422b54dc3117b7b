"""The clocks of nodes that do not use the lab machine's, from measurements (`clocks.jsonl`). Pure.

A measurement says that at `t_ns` of the lab machine's clock a node's clock was `offset_ns` ahead, with an error up to
`error_ns`. Of measurements within 5 s of each other the best counts. Between measurements the offset is interpolated
linearly; outside it stays constant. The bound of the error is the sum of

    the errors of the measurements                      interpolated in the same way
    the drift of the clock                              with a rate error of at most 50 ppm: 2 r a b / (a + b)
                                                        between two measurements, a before one and b after the other;
                                                        r d outside, at a distance of d
    the disagreement of measurements                    if it exceeds the drift, the clock was set: then it
                                                        may have been anywhere between the two measured offsets
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analysis.captures.clock import Array, Clock, Measurement, clock_of

MOST_NS = 1 << 62  # of times and offsets, so that their sums fit in 64 bits
WHEN = ("before", "during", "after")


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a run; nodes that are not in `by_node` use the lab machine's. `damaged`: damaged line numbers."""

    by_node: Mapping[str, Clock] = field(default_factory=dict)
    damaged: tuple[int, ...] = ()

    def get(self, node: str) -> Clock | None:
        return self.by_node.get(node)

    def error_s(self, node: str, lab_ns: Array) -> Array | float:
        """The error bound of this node's times; 0 if they are the lab machine's."""
        clock = self.by_node.get(node)
        return 0.0 if clock is None else clock.error_at(lab_ns) / 1e9


NONE = Clocks()


def read_clocks(path: Path) -> Clocks:
    """The clocks of a run; NONE if there are no measurements."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return NONE
    return parse_clocks(text)


def parse_clocks(text: bytes) -> Clocks:
    """Parse the lines of the file. Damaged lines are listed, the others count."""
    found: dict[str, list[Measurement]] = {}
    damaged = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        known = _measurement(line)
        if known is None:
            damaged.append(number)
        else:
            found.setdefault(known[0], []).append(known[1])
    by_node = {node: clock_of(node, found[node]) for node in sorted(found)}
    return Clocks(by_node, tuple(damaged))


def _measurement(line: bytes) -> tuple[str, Measurement] | None:
    """The node and the measurement of a line; None if the line is incomplete or impossible."""
    try:
        record = json.loads(line)
        node, when = record["node"], record.get("when", "during")
        t_ns, offset_ns, error_ns = (record[name] for name in ("t_ns", "offset_ns", "error_ns"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    numbers = (t_ns, offset_ns, error_ns)
    if not isinstance(node, str) or when not in WHEN:
        return None
    if any(type(number) is not int or abs(number) >= MOST_NS for number in numbers):
        return None
    if t_ns < 0 or error_ns < 0 or not 0 <= t_ns + offset_ns < MOST_NS:
        return None
    return node, Measurement(t_ns, offset_ns, error_ns, when)

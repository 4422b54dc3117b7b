"""The clocks of nodes that have one of their own, from what was measured of them (`clocks.jsonl`). Pure.

A measurement says that at `t_ns` of the lab machine's clock a node's clock was `offset_ns` ahead, give or take
`error_ns`. Of those within 5 s of each other the best counts. Between them the offset lies on a straight line, outside
it stays what it was. How far from that the clock may have been is the sum of

    what the measurements themselves may be off         their errors, on the same line
    how far a clock may stray from the line             with a rate that is wrong by at most 50 ppm: 2 r a b / (a + b)
                                                        between two measurements, a before one and b after the other;
                                                        r d outside, at a distance of d
    how much measurements disagree                      more than such a clock can: it was set, or pulled hard. Then it
                                                        may have been anywhere between the two measured offsets
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analysis.captures.clock import Array, Clock, Measurement, clock_of

MOST_NS = 1 << 62  # of times and offsets: their sums are whole numbers of 64 bits
WHEN = ("before", "during", "after")


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a run; who is not in `by_node` has the lab machine's. `damaged`: numbers of damaged lines."""

    by_node: Mapping[str, Clock] = field(default_factory=dict)
    damaged: tuple[int, ...] = ()

    def get(self, node: str) -> Clock | None:
        return self.by_node.get(node)

    def error_s(self, node: str, lab_ns: Array) -> Array | float:
        """How far this node's times may be off; 0 if they are the lab machine's."""
        clock = self.by_node.get(node)
        return 0.0 if clock is None else clock.error_at(lab_ns) / 1e9


NONE = Clocks()


def read_clocks(path: Path) -> Clocks:
    """The clocks of a run; NONE if nobody measured any."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return NONE
    return parse_clocks(text)


def parse_clocks(text: bytes) -> Clocks:
    """From the lines of the file. A damaged line is told, and the others count."""
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
    """Whose, and what; None if the line is not whole, or says what cannot be."""
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

"""What failed on purpose while the scenario was played, as the manifest tells it: {"t_ns", "action", "nodes"}. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

ENDS, BEGINS = ("crash", "stop"), "restart"
WORDS = {
    "crash": "crashed",
    "stop": "left in order",
    "restart": "began again",
    "cut": "line cut",
    "heal": "line healed",
}
NEVER_NS = 1 << 62
Downtimes = Mapping[str, Sequence[tuple[int, int]]]  # node -> from when to when it was down


def downtimes(manifest: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """When each node that was ended on purpose was down."""
    down: dict[str, list[tuple[int, int]]] = {}
    for fault in sorted(manifest.get("faults") or (), key=lambda fault: fault["t_ns"]):
        for node in fault["nodes"]:
            times = down.setdefault(node, [])
            if fault["action"] in ENDS and not (times and times[-1][1] == NEVER_NS):
                times.append((fault["t_ns"], NEVER_NS))
            elif fault["action"] == BEGINS and times and times[-1][1] == NEVER_NS:
                times[-1] = (times[-1][0], fault["t_ns"])
    return {node: times for node, times in down.items() if times}


def was_down(times: Downtimes, node: str, at_ns: int) -> bool:
    """Whether the node was down at this moment."""
    return any(begin <= at_ns < end for begin, end in times.get(node, ()))


def fault_rows(manifest: Mapping[str, Any], start_ns: int) -> list[dict[str, Any]]:
    """For the report: when, what, and to whom."""
    return [
        {
            "when": f"{(fault['t_ns'] - start_ns) / 1e9:.1f} s",
            "what": WORDS.get(fault["action"], fault["action"]),
            "nodes": ", ".join(fault["nodes"]),
        }
        for fault in manifest.get("faults") or ()
    ]

"""What happened beside publications, as the manifest tells it under `actions`. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

ENDS, BEGINS = ("crash", "stop"), "start"
WORDS = {
    "crash": "crashed",
    "stop": "left in order",
    "start": "began again",
    "cut": "line cut",
    "restore": "line restored",
    "link": "line changed",
    "partition": "cut apart in the core",
    "reunite": "one again in the core",
    "load": "background traffic begins",
    "unload": "background traffic ends",
    "exec": "command run",
}
FORMER = {"restart": "start", "heal": "restore"}  # as older runs name them
NEVER_NS = 1 << 62
Downtimes = Mapping[str, Sequence[tuple[int, int]]]  # node -> from when to when it was down


def actions_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was done, in the order of time; older runs had only faults, in other words."""
    former = [
        {
            "t_ns": fault["t_ns"],
            "action": FORMER.get(fault["action"], fault["action"]),
            "targets": fault["nodes"],
            "details": {},
        }
        for fault in manifest.get("faults") or ()
    ]
    found = [*former, *(manifest.get("actions") or ())]
    done = [action for action in found if "failed" not in action["details"]]
    return sorted(done, key=lambda action: int(action["t_ns"]))


def downtimes(manifest: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """When each node that was ended on purpose was down."""
    down: dict[str, list[tuple[int, int]]] = {}
    for fault in actions_of(manifest):
        for node in fault["targets"]:
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
            "when": f"{(action['t_ns'] - start_ns) / 1e9:.1f} s",
            "what": _told(action),
            "nodes": ", ".join(action["targets"]),
        }
        for action in actions_of(manifest)
    ]


def _told(action: Mapping[str, Any]) -> str:
    if action["action"] == "mark":
        return str(action["details"]["name"])
    return WORDS.get(action["action"], str(action["action"]))

"""Reads the manifest of a run: actions other than publications, downtimes of nodes, delivery methods. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

ENDS, BEGINS = ("crash", "stop"), "start"
NEVER_NS = 1 << 62
Downtimes = Mapping[str, Sequence[tuple[int, int]]]  # node -> begin and end of each downtime


def actions_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The actions that did not fail, in the order of time."""
    recorded = manifest.get("actions") or ()
    done = [action for action in recorded if "failed" not in action["details"]]
    return sorted(done, key=lambda action: int(action["t_ns"]))


def downtimes(manifest: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """The downtimes of nodes that were stopped or crashed on purpose."""
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


# Values of the manifest as text.


def deliveries(topology: dict[str, Any]) -> str:
    """The lab's delivery method, and the number of links with another one."""
    own = [node.get("delivery") for node in topology["nodes"]]
    others = Counter(method(chosen) for chosen in own if chosen not in (None, topology["delivery"]))
    methods = [method(topology["delivery"])]
    methods += [f"{name} on {n} link{'s' if n != 1 else ''}" for name, n in others.items()]
    return "; ".join(methods)


def method_of_each(topology: dict[str, Any]) -> dict[str, str]:
    """The delivery method of each node's link."""
    default = topology["delivery"]
    return {node["name"]: method(node.get("delivery") or default) for node in topology["nodes"]}


def method(chosen: dict[str, Any]) -> str:
    """A method with its parameters."""
    parameters = ", ".join(f"{name} {value}" for name, value in chosen["parameters"])
    return f"{chosen['method']} ({parameters})" if parameters else str(chosen["method"])

"""Values of a run's manifest as a reader wants them. Pure."""

from collections import Counter
from typing import Any

from analysis import findings

DIGEST = "sha256:"
DIGITS = 12  # of a digest, as container engines show it


def fact(name: str, value: Any) -> tuple[str, str]:
    """A value in a unit that people read; the end of its name tells what it is in."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        for ending, told in (("_bytes", findings.size), ("_s", findings.seconds)):
            if name.endswith(ending):
                return name.removesuffix(ending).replace("_", " "), told(value)
        if name == "size":
            return name, findings.size(value)
    return name.replace("_", " "), _plain(value)


def deliveries(topology: dict[str, Any]) -> str:
    """The lab's delivery method, and on how many links there is another one."""
    own = [node.get("delivery") for node in topology["nodes"]]
    others = Counter(method(chosen) for chosen in own if chosen not in (None, topology["delivery"]))
    told = [method(topology["delivery"])]
    told += [f"{name} on {n} link{'s' if n != 1 else ''}" for name, n in others.items()]
    return "; ".join(told)


def method_of_each(topology: dict[str, Any]) -> dict[str, str]:
    """The delivery method of each node's link."""
    default = topology["delivery"]
    return {node["name"]: method(node.get("delivery") or default) for node in topology["nodes"]}


def method(chosen: dict[str, Any]) -> str:
    """A method with its parameters."""
    parameters = ", ".join(f"{name} {value}" for name, value in chosen["parameters"])
    return f"{chosen['method']} ({parameters})" if parameters else str(chosen["method"])


def _plain(value: Any) -> str:
    """What is not known is left out; of several things each is named first."""
    if isinstance(value, dict):
        known = {key: item for key, item in value.items() if item is not None}
        if any(isinstance(item, dict) for item in known.values()):
            return "; ".join(f"{key}: {_plain(item)}" for key, item in known.items())
        return ", ".join(" ".join(fact(key, item)) for key, item in known.items())
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, str) and value.startswith(DIGEST):
        return value[: len(DIGEST) + DIGITS]
    return f"{value:.3g}" if isinstance(value, float) else str(value)

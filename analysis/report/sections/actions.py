"""The report's section on actions of the scenario and changes of links. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.formatting import NARROW, percent, rate, seconds, size
from analysis.inputs.manifest import actions_of

MOST_NAMED = 6  # links in one row


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change of links."""

    when: str  # from the scenario's start
    what: str
    links: str
    values: str


def change_rows(manifest: Mapping[str, Any], start_ns: int) -> list[ChangeRow]:
    """The changes in order."""
    return [
        ChangeRow(
            _when((entry["t_ns"] - start_ns) / 1e9),
            f"{entry['action']} ({' and '.join(entry['directions'])})",
            _links(entry["links"]),
            _values(entry),
        )
        for entry in manifest.get("link_changes") or []
    ]


def _when(after_s: float) -> str:
    if after_s < 0:
        return f"{-after_s:.1f}{NARROW}s before"
    return f"{after_s:.1f}{NARROW}s"


def _links(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _values(entry: Mapping[str, Any]) -> str:
    """The values that were set; once if they are the same in both directions."""
    texts = {
        direction: ", ".join(_value(name, value) for name, value in shape.items())
        for direction, shape in (entry.get("shapes") or {}).items()
    }
    if len(set(texts.values())) == 1:
        text = next(iter(texts.values()))
    else:
        text = "; ".join(f"{direction}: {values}" for direction, values in texts.items())
    profile = entry.get("profile")
    return f"{profile} ({text})" if profile else text


def _value(name: str, value: float | None) -> str:
    match name:
        case "rate_bps":
            return "no limit" if value is None else rate(value)
        case "delay_s":
            return f"delay {seconds(value)}"
        case "jitter_s":
            return f"jitter {seconds(value)}"
        case "loss":
            return f"loss {percent(value or 0.0, 'g')}"
        case "queue_bytes":
            return "default queue" if value is None else f"queue {size(value)}"
        case _:
            return f"{name} {value}"


ACTION_TEXTS = {
    "crash": "crashed",
    "stop": "stopped in order",
    "start": "started again",
    "cut": "link cut",
    "restore": "link restored",
    "link": "link changed",
    "partition": "partitioned in the core",
    "heal": "partition ended in the core",
    "load": "background traffic begins",
    "unload": "background traffic ends",
    "exec": "command run",
}


def fault_rows(manifest: Mapping[str, Any], start_ns: int) -> list[dict[str, Any]]:
    """Rows for the report: time, action, nodes."""
    return [
        {
            "when": f"{(action['t_ns'] - start_ns) / 1e9:.1f} s",
            "what": _describe(action),
            "nodes": ", ".join(action["targets"]),
        }
        for action in actions_of(manifest)
    ]


def _describe(action: Mapping[str, Any]) -> str:
    if action["action"] == "mark":
        return str(action["details"]["name"])
    return ACTION_TEXTS.get(action["action"], str(action["action"]))

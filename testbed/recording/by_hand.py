"""Links that were changed by hand while a run went on (`testbed link`), as incidents that can be played again."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from testbed.scenario import Incident
from testbed.scenario.unfolding import ONLY
from testbed.topology.model import ActionKind

DIRECTIONS = "directions"  # of an incident's details
_MENDED = {"restore": {ONLY: ActionKind.CUT.value}, "reset": {}}


def link_incidents(
    changes: Iterable[Mapping[str, Any]], actions: Iterable[Mapping[str, Any]], start_ns: int
) -> tuple[Incident, ...]:
    """Of entries of a manifest; what an action of the scenario caused is left out, for that is played itself.

    What was changed before the scenario began holds from its first moment on.
    """
    spans = [
        (entry["due_ns"], entry["t_ns"])
        for entry in actions
        if ActionKind(entry["action"]).of_links
    ]
    return tuple(
        incident
        for change in changes
        if not any(due_ns <= change["t_ns"] <= t_ns for due_ns, t_ns in spans)
        for incident in _incidents(change, max(0, change["t_ns"] - start_ns))
    )


def _incidents(change: Mapping[str, Any], at_ns: int) -> Iterator[Incident]:
    links, directions = tuple(change["links"]), tuple(change["directions"])
    if change["action"] == "cut":
        yield Incident(at_ns, ActionKind.CUT, links, {DIRECTIONS: directions})
    elif change["action"] == "set":
        for direction in directions:
            values = change["shapes"][direction]
            details = {"profile": None, DIRECTIONS: (direction,), "values": values}
            yield Incident(at_ns, ActionKind.LINK, links, details)
    else:
        details = {**_MENDED[change["action"]], DIRECTIONS: directions}
        yield Incident(at_ns, ActionKind.RESTORE, links, details)

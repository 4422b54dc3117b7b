"""Actions as the manifest records them under `actions`: one entry each, the same on every backend.

`{"t_ns", "due_ns", "action", "targets", "details"}`: the time since which the action holds and the time at which it
was due (ns since 1970), its kind, its nodes or links, and the values of its kind. The details of a failed action give
the reason under `failed`; those of an `unload` give the number of datagrams `sent`, and of those left (`unsent`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from testbed.scenario import TimedAction
from testbed.scenario.model import ONLY
from testbed.topology.model import ActionKind

ACTIONS = "actions"  # key of the manifest
FAILED = "failed"  # key of an entry's details
EXIT_CODE = "exit_code"  # key of the details of a mark: a command has ended
OUTCOMES = (
    "sent",
    "unsent",
)  # keys of the details of an unload: datagrams; a replay counts its own


def action_entry(action: TimedAction, start_ns: int, t_ns: int, **more: Any) -> dict[str, Any]:
    """The entry of an action that was performed; `more`: its outcome."""
    return {
        "t_ns": t_ns,
        "due_ns": start_ns + action.at_ns,
        "action": action.kind.value,
        "targets": [*action.nodes],
        "details": {**action.details, **more},
    }


def recorded(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All entries of a run, in the order in which they were recorded."""
    return [*(manifest.get(ACTIONS) or ())]


def actions_of(
    entries: Iterable[Mapping[str, Any]], start_ns: int, *, as_due: bool = False
) -> tuple[TimedAction, ...]:
    """The recorded actions, at the times when they were performed (or due), in the order of time.

    Failed actions are left out, and so are the ends of commands, which end by themselves.
    A start takes a while, so it has the time at which it was due: the node is then ready at the same time as before.
    """
    actions = (
        TimedAction(
            each["due_ns" if as_due or each["action"] == ActionKind.START else "t_ns"] - start_ns,
            ActionKind(each["action"]),
            tuple(each["targets"]),
            {key: value for key, value in each["details"].items() if key not in OUTCOMES},
        )
        for each in entries
        if each["t_ns"] >= start_ns and each["details"].keys().isdisjoint((FAILED, EXIT_CODE))
    )
    return tuple(sorted(actions, key=lambda one: one.at_ns))


# Changes of links by hand during a run (`testbed link`), as actions that can be replayed.


DIRECTIONS = "directions"  # key of an action's details
_MENDED = {"restore": {ONLY: ActionKind.CUT.value}, "reset": {}}


def link_actions(
    changes: Iterable[Mapping[str, Any]], entries: Iterable[Mapping[str, Any]], start_ns: int
) -> tuple[TimedAction, ...]:
    """The link changes of a manifest as actions. Changes by the scenario's own actions are left out.

    Changes before the scenario's start hold from its first moment on.
    """
    spans = [
        (entry["due_ns"], entry["t_ns"])
        for entry in entries
        if ActionKind(entry["action"]).of_links
    ]
    return tuple(
        action
        for change in changes
        if not any(due_ns <= change["t_ns"] <= t_ns for due_ns, t_ns in spans)
        for action in _actions_of_change(change, max(0, change["t_ns"] - start_ns))
    )


def _actions_of_change(change: Mapping[str, Any], at_ns: int) -> Iterator[TimedAction]:
    links, directions = tuple(change["links"]), tuple(change["directions"])
    if change["action"] == "cut":
        yield TimedAction(at_ns, ActionKind.CUT, links, {DIRECTIONS: directions})
    elif change["action"] == "set":
        for direction in directions:
            values = change["shapes"][direction]
            details = {"profile": None, DIRECTIONS: (direction,), "values": values}
            yield TimedAction(at_ns, ActionKind.LINK, links, details)
    else:
        details = {**_MENDED[change["action"]], DIRECTIONS: directions}
        yield TimedAction(at_ns, ActionKind.RESTORE, links, details)

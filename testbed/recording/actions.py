"""What happened beside publications, as the manifest has it under `entries`: one entry each, the same in every place.

`{"t_ns", "due_ns", "action", "targets", "details"}`: since when it held and when it was due (ns since 1970), what was
done to whom, and the kind's own values. What could not be done has its reason in `details` under `failed`; an `unload`
has there how many datagrams were `sent`, and how many more were due (`unsent`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from testbed.scenario import TimedAction
from testbed.scenario.model import ONLY
from testbed.topology.model import FORMER_KINDS, ActionKind

ACTIONS = "actions"  # of the manifest
FAILED = "failed"  # of an entry's details
EXIT_CODE = "exit_code"  # of the details of a mark: a command has ended, which it does by itself
OUTCOMES = (
    "sent",
    "unsent",
)  # of the details of an unload: datagrams, which is another matter next time


def action_entry(action: TimedAction, start_ns: int, t_ns: int, **more: Any) -> dict[str, Any]:
    """This incident as it was done; `more`: what came of it."""
    return {
        "t_ns": t_ns,
        "due_ns": start_ns + action.at_ns,
        "action": action.kind.value,
        "targets": [*action.nodes],
        "details": {**action.details, **more},
    }


def recorded(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All entries of a run; those of older ones, which had only faults, in the words of today."""
    if manifest.get(ACTIONS):
        return [*manifest[ACTIONS]]
    return [
        {
            "t_ns": fault["t_ns"],
            "due_ns": fault["t_ns"],
            "action": FORMER_KINDS.get(fault["action"], fault["action"]),
            "targets": [*fault["nodes"]],
            "details": {},
        }
        for fault in manifest.get("faults") or ()
    ]


def actions_of(
    entries: Iterable[Mapping[str, Any]], start_ns: int, *, as_due: bool = False
) -> tuple[TimedAction, ...]:
    """The same again, at the times when they really happened (or were due), in their order.

    What failed is left out, and the ends of commands, which come by themselves.
    To start a node takes a while: it is ordered again when it was ordered, so that it is there when it was.
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


# Links that were changed by hand while a run went on (`testbed link`), as incidents that can be played again.


DIRECTIONS = "directions"  # of an incident's details
_MENDED = {"restore": {ONLY: ActionKind.CUT.value}, "reset": {}}


def link_actions(
    changes: Iterable[Mapping[str, Any]], entries: Iterable[Mapping[str, Any]], start_ns: int
) -> tuple[TimedAction, ...]:
    """Of entries of a manifest; what an action of the scenario caused is left out, for that is played itself.

    What was changed before the scenario began holds from its first moment on.
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

"""A node's life as a table of transitions; what is not in the table is refused.

A node waits for `go`, so that the orchestrator can wire and capture its link before the first packet. After SIGTERM
the node publishes nothing new, hands over its queued messages and ends.
"""

from enum import StrEnum

HAND_OVER_S = 3.0  # for what is queued when SIGTERM comes
CLOSE_S = 3.0  # for closing every link
# How long a node may take from SIGTERM to its end, without the end of a slow interpreter. The orchestrator waits
# for so long, and a little more, before it sends SIGKILL.
STOP_WITHIN_S = HAND_OVER_S + CLOSE_S


class State(StrEnum):
    """Where a node is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class Cause(StrEnum):
    """What can happen to it."""

    GO = "go"
    SIGTERM = "SIGTERM"
    HANDED_OVER = f"all handed over, or {HAND_OVER_S:g} s"


TRANSITIONS: dict[tuple[State, Cause], State] = {
    (State.WAITING, Cause.GO): State.RUNNING,
    (State.WAITING, Cause.SIGTERM): State.STOPPING,
    (State.RUNNING, Cause.GO): State.RUNNING,
    (State.RUNNING, Cause.SIGTERM): State.STOPPING,
    (State.STOPPING, Cause.SIGTERM): State.STOPPING,
    (State.STOPPING, Cause.HANDED_OVER): State.ENDED,
    (State.ENDED, Cause.SIGTERM): State.ENDED,
}


class NoTransition(ValueError):
    """This cannot happen to a node in this state."""


def after(state: State, cause: Cause) -> State:
    """The state that follows."""
    try:
        return TRANSITIONS[state, cause]
    except KeyError:
        raise NoTransition(f"a node that is {state} does not take {cause}") from None


def diagram() -> str:
    """The table as a Mermaid diagram, for the documentation."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.WAITING}"]
    lines += [f"    {state} --> {then}: {cause}" for (state, cause), then in TRANSITIONS.items()]
    lines.append(f"    {State.ENDED} --> [*]")
    return "\n".join(lines)

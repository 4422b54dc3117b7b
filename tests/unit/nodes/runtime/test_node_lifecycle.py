"""A node's states follow the table of transitions, and the documentation draws the same table."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from nodes.runtime.lifecycle import (
    STOP_WITHIN_S,
    TRANSITIONS,
    Cause,
    NoTransition,
    State,
    after,
    diagram,
)

DOCS = Path(__file__).parents[4] / "docs" / "explanation" / "nodes.md"


@pytest.mark.parametrize(("state", "cause"), list(product(State, Cause)))
def test_transitions_that_are_not_in_the_table_are_refused(state: State, cause: Cause) -> None:
    if (state, cause) in TRANSITIONS:
        assert after(state, cause) is TRANSITIONS[state, cause]
    else:
        with pytest.raises(NoTransition, match=f"a node that is {state}"):
            after(state, cause)


def test_every_state_can_be_reached_and_left() -> None:
    reached = {State.WAITING}
    for _ in State:
        reached |= {then for (state, _), then in TRANSITIONS.items() if state in reached}
    assert reached == set(State)
    left = {state for (state, _), then in TRANSITIONS.items() if then is not state}
    assert left == set(State) - {State.ENDED}


def test_a_node_that_stops_never_runs_again() -> None:
    assert not any(
        then is State.RUNNING
        for (state, _), then in TRANSITIONS.items()
        if state in (State.STOPPING, State.ENDED)
    )


def test_every_state_accepts_sigterm() -> None:
    for state in State:
        assert after(state, Cause.SIGTERM) in (State.STOPPING, State.ENDED)


def test_the_documentation_draws_the_table_as_it_is() -> None:
    assert f"```mermaid\n{diagram()}\n```" in DOCS.read_text()


def test_the_stop_time_can_be_read_without_loading_a_node() -> None:
    program = (
        "import sys; from nodes.runtime.lifecycle import STOP_WITHIN_S; print(STOP_WITHIN_S);"
        "assert 'asyncio' not in sys.modules and 'websockets' not in sys.modules"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert float(output) == STOP_WITHIN_S == 6

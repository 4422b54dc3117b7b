"""Trees of Scribe when messages come late and routes change; and their control messages as bytes."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.base import Action, Subscribed
from nodes.overlay.topics.scribe.routing import NoHop
from nodes.overlay.topics.scribe.tree import Tree
from nodes.overlay.topics.topic_graph import Context
from nodes.protocol.scribe_messages import (
    Answer,
    Ask,
    Inquiry,
    Join,
    Joined,
    Leave,
    Look,
    Question,
    Root,
    ScribeMessage,
    decode_scribe,
    encode_scribe,
)
from nodes.protocol.wire import WireError

TOPIC = "slope"
PARENT, OTHER, CHILD = 7, 8, 9
FORGET_S = 15.0


class Place:
    """A node's part of the trees, with a route that the test chooses; it is its own `Routing`."""

    number = 1

    def __init__(self, hop: int | NoHop) -> None:
        self.hop = hop
        self.notified: list[tuple[int, ScribeMessage]] = []
        self.actions: list[Action] = []
        self.ticket = count(1).__next__
        self.tree = Tree(self, FORGET_S)

    def at(self, now: float = 0.0) -> Context:
        return Context(now, lambda actions, context: None, actions=self.actions)

    def next_hop(self, topic: str, context: Context) -> int | NoHop:
        return self.hop

    def notify(self, node: int, message: ScribeMessage, context: Context) -> None:
        self.notified.append((node, message))

    @property
    def confirmed(self) -> list[str]:
        return [action.topic for action in self.actions if isinstance(action, Subscribed)]

    def children(self) -> set[int]:
        branch = self.tree.get(TOPIC)
        return set() if branch is None else set(branch.children)


def test_a_late_leave_does_not_undo_a_newer_join() -> None:
    root = Place(NoHop.HERE)
    root.tree.on_join(CHILD, Join(5, TOPIC), root.at())
    root.tree.on_leave(CHILD, Leave(4, TOPIC), root.at())
    assert root.children() == {CHILD}
    root.tree.on_leave(CHILD, Leave(5, TOPIC), root.at())
    assert root.tree.get(TOPIC) is None


def test_a_child_is_confirmed_when_its_branch_reaches_the_root() -> None:
    place = Place(PARENT)
    place.tree.on_join(CHILD, Join(5, TOPIC), place.at())
    ((_, join),) = place.notified
    assert place.notified == [(PARENT, join)]
    assert isinstance(join, Join)
    place.tree.on_joined(PARENT, Joined(join.ticket + 1, TOPIC), place.at())  # of another request
    place.tree.on_joined(OTHER, Joined(join.ticket, TOPIC), place.at())
    assert len(place.notified) == 1
    place.tree.on_joined(PARENT, Joined(join.ticket, TOPIC), place.at())
    assert place.notified[1:] == [(CHILD, Joined(5, TOPIC))]


def test_a_node_in_the_tree_forwards_no_join() -> None:
    root = Place(NoHop.HERE)
    root.tree.subscribe(TOPIC, root.at())
    assert root.confirmed == [TOPIC]
    place = Place(PARENT)
    place.tree.subscribe(TOPIC, place.at())
    ((_, join),) = place.notified
    assert isinstance(join, Join)
    place.tree.on_joined(PARENT, Joined(join.ticket, TOPIC), place.at())
    assert place.confirmed == [TOPIC]
    place.tree.on_join(CHILD, Join(5, TOPIC), place.at())
    assert place.notified[1:] == [(CHILD, Joined(5, TOPIC))]


def test_the_old_parent_is_left_when_the_new_one_has_confirmed() -> None:
    place = Place(PARENT)
    place.tree.subscribe(TOPIC, place.at())
    place.tree.on_joined(PARENT, Joined(1, TOPIC), place.at())
    place.hop = OTHER
    place.tree.tick(refresh=False, context=place.at(1.0))
    assert place.notified[1:] == [(OTHER, Join(2, TOPIC))]
    place.tree.on_joined(OTHER, Joined(2, TOPIC), place.at())
    assert place.notified[2:] == [(PARENT, Leave(2, TOPIC))]
    assert place.confirmed == [TOPIC]


def test_a_child_that_does_not_refresh_is_forgotten_and_its_branch_left() -> None:
    place = Place(PARENT)
    place.tree.on_join(CHILD, Join(5, TOPIC), place.at())
    place.tree.tick(refresh=True, context=place.at(FORGET_S))
    assert place.children() == {CHILD}
    place.tree.tick(refresh=True, context=place.at(FORGET_S + 0.1))
    assert place.tree.get(TOPIC) is None
    assert place.notified[-1] == (PARENT, Leave(1, TOPIC))


u8, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 32, 64))
levels, flags, topics = st.integers(0, 63), st.integers(0, 1), st.text(max_size=20)
messages: st.SearchStrategy[ScribeMessage] = st.one_of(
    st.builds(Ask, levels, flags, flags, u32, u32, u64),
    st.builds(Answer, levels, flags, u32, u64),
    st.builds(Join, u64, topics),
    st.builds(Joined, u64, topics),
    st.builds(Leave, u64, topics),
    st.builds(Look, u32, u8, topics),
    st.builds(Root, topics),
    st.builds(Question, u32, u8, topics, st.binary(max_size=20)),
    st.builds(Inquiry, u32, topics, st.binary(max_size=20)),
)


@given(messages)
def test_control_messages_survive_the_wire(message: ScribeMessage) -> None:
    assert decode_scribe(encode_scribe(message)) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        encode_scribe(Ask(1, 0, 1, 2, 3, 4))[:-1],
        encode_scribe(Ask(1, 0, 1, 2, 3, 4)) + b"x",
        encode_scribe(Ask(64, 0, 1, 2, 3, 4)),
        encode_scribe(Answer(1, 2, 3, 4)),
        encode_scribe(Root("")) + b"\xff",
        encode_scribe(Root("")) + b"x" * 256,
        encode_scribe(Inquiry(1, "slope", b""))[:-1],
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_scribe(data)

"""Which links between brokers are closed in order: unused ones, the longest unused first, no more than needed."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.wire import CUSTODY, Kind, Message
from nodes.runtime.link_eviction import ANSWER_S, UNUSED_S, LinkActivity, links_to_evict

NOW = 1000.0
ALERT = Message(Kind.PUBLISH, priority=5, flags=CUSTODY)
ROUTINE = Message(Kind.PUBLISH)
ACK = Message(Kind.ACK)


@dataclass
class FakeLink:
    last: float = 0.0
    idle: bool = True
    receiving: bool = False
    closing_orderly: bool = False
    activity: LinkActivity = field(init=False)

    def __post_init__(self) -> None:
        self.activity = LinkActivity(self.last)


fake_links = st.lists(
    st.builds(
        FakeLink,
        last=st.floats(NOW - 10, NOW),
        idle=st.booleans(),
        receiving=st.booleans(),
        closing_orderly=st.booleans(),
    ),
    max_size=40,
)


@given(links=fake_links, most=st.integers(2, 24))
def test_only_unused_links_are_closed_the_longest_unused_first_and_only_as_many_as_needed(
    links: list[FakeLink], most: int
) -> None:
    chosen, left = links_to_evict(links, most, NOW)
    staying = [link for link in links if not link.closing_orderly]
    unused = [
        link for link in staying if link.idle and not link.receiving and NOW - link.last > UNUSED_S
    ]
    too_many = max(0, len(staying) - most)
    assert len(chosen) == min(too_many, len(unused))
    assert left == too_many - len(chosen)
    assert all(link in unused for link in chosen)
    spared = [link.last for link in unused if link not in chosen]
    assert not chosen or max(link.last for link in chosen) <= min(spared, default=NOW)


@pytest.mark.parametrize(
    ("messages", "rests_after"),
    [
        ([], 0.0),
        ([Message(Kind.HEARTBEAT)], 0.0),
        ([ROUTINE], UNUSED_S),
        ([Message(Kind.OVERLAY)], UNUSED_S),
        ([ALERT], ANSWER_S),
        ([ALERT, ACK], UNUSED_S),
        ([ALERT, ALERT, ACK], ANSWER_S),
        ([ACK, ALERT], ANSWER_S),
    ],
)
def test_a_link_is_unused_when_it_was_idle_and_every_alert_on_it_was_acknowledged(
    messages: list[Message], rests_after: float
) -> None:
    activity = LinkActivity(NOW - 100)
    for message in messages:
        activity.note(message, NOW)
    assert not messages or not rests_after or not activity.is_unused(NOW + rests_after)
    assert activity.is_unused(NOW + rests_after + 0.001)

"""What subscribers want: one text for each interest, and exactly what lies in a box and is urgent enough."""

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nodes.protocol.interests import Interest, checked, is_plain, parse
from nodes.protocol.regions import Box
from nodes.protocol.wire import (
    MAX_COORDINATE,
    MAX_DIMENSIONS,
    MAX_TOPIC_BYTES,
    Kind,
    Message,
    WireError,
)

topics = st.text(st.characters(exclude_categories=["Cs"]), max_size=25).filter(is_plain)
coordinates = st.one_of(st.integers(0, 8), st.integers(0, MAX_COORDINATE), st.just(MAX_COORDINATE))


@st.composite
def boxes(draw: st.DrawFn, dimensions: int | None = None) -> Box:
    count = dimensions or draw(st.integers(1, MAX_DIMENSIONS))
    sides = [sorted((draw(coordinates), draw(coordinates))) for _ in range(count)]
    return Box(tuple(low for low, _ in sides), tuple(high for _, high in sides))


interests = st.builds(Interest, topics, st.none() | boxes(), st.integers(1, 5))


@given(interests)
def test_an_interest_comes_back_from_its_text(interest: Interest) -> None:
    assert len(interest.text.encode()) <= MAX_TOPIC_BYTES
    assert parse(interest.text) == interest


@given(topics)
def test_the_text_of_a_whole_topic_is_the_topic(topic: str) -> None:
    assert Interest(topic).text == topic
    assert parse(topic) == Interest(topic)


@given(interests, interests)
def test_two_interests_have_two_texts(one: Interest, other: Interest) -> None:
    assert (one.text == other.text) == (one == other)


@given(st.text(st.characters(codec="ascii"), max_size=40).map("{".__add__) | st.text(max_size=40))
def test_any_text_is_the_one_of_an_interest_or_refused(text: str) -> None:
    with suppress(WireError):
        assert parse(text).text == text


@given(interests.map(lambda interest: interest.text), st.data())
def test_a_damaged_text_is_another_interest_or_refused(text: str, data: st.DataObject) -> None:
    assume(text)
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.sampled_from("{} *-0159afx٣")) + text[place + 1 :]
    with suppress(WireError):
        assert parse(damaged).text == damaged


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "without }"),
        ("{4 alerts", "without }"),
        ("{}alerts", "no interest"),
        ("{0}alerts", "level 0"),
        ("{6}alerts", "level 6"),
        ("{1}alerts", "one text only: 'alerts'"),
        ("{04}alerts", "one text only"),
        ("{4 0-FF}alerts", "one text only"),
        ("{4 0-0ff}alerts", "one text only"),
        ("{4 0-ffffffff}alerts", "one text only"),
        ("{4  0-f}alerts", "no interest"),
        ("{4 0}alerts", "no interest"),
        ("{4 f-0}alerts", "holds no point"),
        ("{4 0-100000000}alerts", "more than 32 bits"),
        ("{4 -1-f}alerts", "no interest"),
        ("{4" + " *" * 9 + "}alerts", "9 sides"),
        ("{4}{4}alerts", "no topic begins with"),
        ("x" * 256, "at most 255"),
        ("{4}" + "x" * 253, "at most 255"),
        ("{4}\ud800", "UTF-8"),
    ],
)
def test_a_text_that_is_no_interest_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(WireError, match=why):
        parse(text)


def test_the_texts_are_as_agreed() -> None:
    box = Box((0xA0, 0, 7), (0xFF, MAX_COORDINATE, 7))
    assert Interest("alerts", box).text == "{1 a0-ff * 7-7}alerts"
    assert Interest("alerts", box, 4).text == "{4 a0-ff * 7-7}alerts"
    assert Interest("alerts", None, 4).text == "{4}alerts"


def test_an_interest_that_fits_in_no_message_is_refused() -> None:
    with pytest.raises(WireError, match="at most 255"):
        checked(Interest("x" * 255, None, 2))


@given(
    st.builds(Interest, st.sampled_from("ab"), st.none() | boxes(2), st.integers(1, 5)),
    st.sampled_from("ab"),
    st.integers(1, 5),
    st.lists(coordinates, max_size=3),
)
def test_an_interest_wants_its_topic_its_levels_and_its_box_alone(
    interest: Interest, topic: str, priority: int, place: list[int]
) -> None:
    box = interest.box
    inside = box is None or (
        len(place) == 2
        and box.low[0] <= place[0] <= box.high[0]
        and box.low[1] <= place[1] <= box.high[1]
    )
    wanted = topic == interest.topic and priority >= interest.min_priority and inside
    message = Message(Kind.PUBLISH, priority=priority, topic=topic, place=tuple(place))
    assert interest.wants(message) == wanted

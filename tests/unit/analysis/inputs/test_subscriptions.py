"""The receivers of a publication by the subscriptions in the manifest."""

import re

from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.subscriptions import INTEREST_PREFIX, subscriptions_of
from nodes.protocol.interests import Interest, is_plain
from nodes.protocol.regions import Box


def test_each_receiver_is_named_once_if_one_of_its_interests_fits() -> None:
    subscriptions = subscriptions_of(
        {"office": ["alerts"], "siren": ["{4}alerts", "{1 0-5}alerts", "rain"], "sensor": []}
    )
    assert subscriptions.receivers("alerts", 5, [3]) == ["office", "siren"]
    assert subscriptions.receivers("alerts", 3, [6]) == ["office"]
    assert subscriptions.receivers("alerts", 3, None) == ["office"]
    assert subscriptions.receivers("rain", 1, None) == ["siren"]
    assert subscriptions.receivers("snow", 5, [3]) == []


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20).filter(is_plain),
    st.none() | st.just(Box((1, 0), (7, 2**32 - 1))),
    st.integers(1, 5),
)
def test_the_topic_of_a_text_is_found_without_reading_all_of_it(
    topic: str, box: Box | None, level: int
) -> None:
    assert re.sub(INTEREST_PREFIX, "", Interest(topic, box, level).text) == topic

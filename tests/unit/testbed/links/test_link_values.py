"""A link's values as people write and read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.links.values import format_values, read_values


def test_values_are_read_with_their_units_and_missing_ones_are_left_out():
    assert read_values(
        {"rate": "64kbit/s", "delay": "200ms", "jitter": None, "loss": "1%", "queue": "16kB"}
    ) == {"rate_bps": 64_000.0, "delay_s": 0.2, "loss": 0.01, "queue_bytes": 16_000}


def test_none_takes_a_limit_away():
    assert read_values({"rate": "none", "queue": "none"}) == {"rate_bps": None, "queue_bytes": None}


@pytest.mark.parametrize(
    ("option", "text", "message", "hint"),
    [
        ("rate", "64", "--rate: a rate needs a unit", "64 of what?"),
        ("rate", "64kbps", "--rate: 'kbps' is not a unit of a rate", "bits or bytes"),
        ("rate", "0kbit/s", "--rate: a rate must be greater than zero", "`testbed link cut`"),
        ("delay", "fast", "--delay: 'fast' is not a duration", "500ms"),
        ("delay", "-5ms", "--delay: '-5ms' is not a duration", "500ms"),
        ("delay", "none", "--delay: 'none' is not a duration", "500ms"),
        ("jitter", "5m", "--jitter: 'm' is not a unit", "minutes are written 5min"),
        ("loss", "101%", "--loss: a share is at most 100%", "0.5%"),
        ("loss", "0.01", "--loss: a share needs a unit", "write 1% if that is meant"),
        ("queue", "1.5B", "--queue: '1.5B' is not a whole number of bytes", "300B"),
    ],
)
def test_a_value_that_is_none_is_refused_in_a_sentence_that_names_its_option(
    option, text, message, hint
):
    with pytest.raises(InputError) as refused:
        read_values({option: text})
    assert refused.value.message.startswith(message)
    assert hint in refused.value.hint
    assert refused.value.exit_code == 2


@given(
    st.floats(1, 1e12),
    st.floats(1e-9, 1e6).map(lambda x: round(x, 9)),  # finer ones have more digits than are read
    st.floats(1e-9, 1.0).map(lambda x: round(x, 9)),
    st.integers(0, 10**9),
)
def test_formatted_values_read_back_as_the_same_values(rate, delay, loss, queue):
    shape = {"rate_bps": rate, "delay_s": delay, "loss": loss, "queue_bytes": queue}
    assert read_values(format_values(shape)) == shape


def test_values_without_effect_are_shown_as_a_dash():
    assert format_values({"rate_bps": None, "delay_s": 0.0, "loss": 0.0, "queue_bytes": None}) == {
        "rate": "-",
        "delay": "-",
        "loss": "-",
        "queue": "-",
    }

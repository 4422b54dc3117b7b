"""A wrong parameter is named, with what it takes, whichever side reads it."""

import pytest

from nodes.delivery import METHODS
from nodes.parameters import ParameterError

WRONG = [
    ("pq-pc", "limit_bytes", 0, "limit_bytes is 0; it takes a whole number, 1 or more"),
    ("pq-pc", "urgent_from", 1, "urgent_from is 1; it takes a whole number, 2 to 5"),
    ("pq-pc", "urgent_from", 6, "urgent_from is 6; it takes a whole number, 2 to 5"),
    ("pq-pc", "urgent_from", None, "urgent_from is None; it takes a whole number, 2 to 5"),
    ("pq-pc", "ack", "tcp", "ack is 'tcp'; it takes kernel or udp"),
    ("pq-pc", "ack", ["udp"], "it takes kernel or udp"),
    ("pq-pc", "ack_timeout_s", 0, "ack_timeout_s is 0; it takes seconds, more than 0"),
    ("pq-pc", "ack_timeout_s", "1s", "it takes seconds"),
    ("pq-pc", "dv", 1443, "pq-pc has no parameter 'dv'"),
    ("dmpq-pc", "dv", 0, "dv is 0; it takes auto or a whole number of bytes, 1 or more"),
    ("dmpq-pc", "dv", "mtu", "it takes auto or a whole number of bytes"),
    ("dmpq-pc", "dv", True, "it takes auto or a whole number of bytes"),
    ("dmpq-pc", "label", "rsv", "label is 'rsv'; it takes byte or opcode"),
    ("preemptive", "piece_s", -1, "piece_s is -1; it takes seconds, more than 0 and at most 60"),
    ("preemptive", "piece_s", float("nan"), "it takes seconds"),
    ("preemptive", "min_piece", 0, "min_piece is 0; it takes a whole number, 1 to 65535"),
    ("preemptive", "share_every", -1, "share_every is -1; it takes a whole number, 0 or more"),
    ("preemptive", "share_every", 1, "share_every is 1, which leaves nothing to the most urgent"),
    ("preemptive", "share_every", 2.5, "share_every is 2.5; it takes a whole number, 0 or more"),
    ("preemptive", "ack", "udp", "preemptive has no parameter 'ack'"),
]


@pytest.mark.parametrize(("method", "name", "value", "sentence"), WRONG)
def test_a_wrong_parameter_is_refused_with_a_sentence(
    method: str, name: str, value: object, sentence: str
) -> None:
    known = METHODS[method]
    for side in (known.scheduler, known.assembler, known.needs):
        with pytest.raises(ParameterError) as caught:
            side({name: value})
        assert caught.value.name == name
        assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("pq-pc", {"urgent_from": 2, "ack": "udp", "ack_timeout_s": 0.5, "limit_bytes": 9}),
        ("dmpq-pc", {"dv": "auto", "label": "opcode", "urgent_from": 5, "ack": "kernel"}),
        ("preemptive", {"piece_s": 0.15, "min_piece": 100, "share_every": 0, "dv": 1443}),
    ],
)
def test_both_sides_take_all_parameters_of_a_method(
    method: str, parameters: dict[str, object]
) -> None:
    known = METHODS[method]
    for side in (known.scheduler, known.assembler, known.needs):
        assert side(parameters) is not None

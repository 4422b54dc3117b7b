"""Reliability settings, from the parameters of an overlay method."""

from typing import Any

import pytest

from nodes.overlay.reliability.settings import PARAMETERS, ReliabilitySettings, reliability_settings
from nodes.parameters import ParameterError


def test_an_overlay_of_many_brokers_takes_custody_from_level_3_on() -> None:
    usual = reliability_settings("sg-tbps", {})
    assert usual == ReliabilitySettings(
        custody_from=3, retain_s=600, heartbeat_s=5, heartbeat_budget=60, max_links=24
    )
    assert [level for level in range(1, 6) if usual.custody(level)] == [3, 4, 5]


def test_a_star_promises_nothing_unless_asked_to() -> None:
    usual = reliability_settings("star", {})
    assert (usual.custody_from, usual.heartbeat_s, usual.advertise) == (None, None, False)
    assert not any(usual.custody(level) for level in range(1, 6))
    asked = reliability_settings("star", {"custody_from": 5, "heartbeat_s": 2})
    assert (asked.custody_from, asked.heartbeat_s) == (5, 2)


def test_every_parameter_can_be_chosen_and_those_of_the_method_are_left_alone() -> None:
    chosen = {
        "custody_from": 1,
        "retain_s": 60,
        "heartbeat_s": 0.5,
        "heartbeat_budget": 7,
        "max_links": 3,
    }
    assert set(chosen) == set(PARAMETERS)
    assert reliability_settings(
        "sg-tbps", {**chosen, "multicast": "bidirectional"}
    ) == ReliabilitySettings(1, 60, 0.5, 7, 3)
    assert not reliability_settings("sg-tbps", {"custody_from": "never"}).custody(5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("custody_from", 0),
        ("custody_from", 6),
        ("custody_from", True),
        ("custody_from", "always"),
        ("custody_from", 3.0),
        ("custody_from", None),
        ("retain_s", 0),
        ("retain_s", 1e9),
        ("heartbeat_s", -1),
        ("heartbeat_s", "5"),
        ("heartbeat_budget", 0),
        ("heartbeat_budget", 1.5),
        ("max_links", 1),
    ],
)
def test_a_wrong_value_is_named_with_what_is_possible(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"sg-tbps's {name} is .*; it takes") as caught:
        reliability_settings("sg-tbps", {name: value})
    assert caught.value.name == name

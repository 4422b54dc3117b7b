"""The benchmark of links: its comparisons, and when a result exceeds its limits."""

import math
from typing import Any

import pytest

from benchmarks.links import LONE, PEER, delay_off, lone_off, rate_off, reported, suited
from testbed.links.calibration.measurement import Effort
from testbed.topology.model import Shape
from testbed.topology.profiles import PROFILES


def result(
    rate_bps: float | None = 100_000.0,
    delay_s: float | None = 0.1,
    lone_s: float | None = None,
    profile: str = "mvno-128k",
) -> dict[str, Any]:
    return {
        "profile": profile,
        "direction": "up",
        "asked": {"rate_bps": 100_000.0, "delay_s": 0.1},
        "achieved": {"rate_bps": rate_bps, "delay_s": delay_s},
        "lone_1kB": None if lone_s is None else {"asked_s": 0.1, "achieved_s": lone_s},
    }


def test_too_fast_is_as_wrong_as_too_slow() -> None:
    assert rate_off(result(rate_bps=104_000)) == pytest.approx(0.04)
    assert rate_off(result(rate_bps=96_000)) == pytest.approx(0.04)
    assert delay_off(result(delay_s=0.104)) == pytest.approx(1.0)
    assert delay_off(result(delay_s=0.096)) == pytest.approx(1.0)


def test_values_that_could_not_be_measured_exceed_every_limit() -> None:
    assert rate_off(result(rate_bps=None)) == math.inf
    assert delay_off(result(delay_s=None)) == math.inf
    assert lone_off(result(profile=LONE.name)) == math.inf


def test_the_lone_packet_counts_on_its_own_link_only() -> None:
    assert lone_off(result(lone_s=0.0001)) == 0
    assert lone_off(result(lone_s=0.0001, profile=LONE.name)) > 20


def test_the_worst_link_counts_and_the_peer_has_no_limits() -> None:
    lone = result(lone_s=0.1, profile=LONE.name)
    found = {"relay": [result(), result(rate_bps=95_000), lone], PEER: [result(rate_bps=50_000)]}
    report = reported(found, 30.0)
    assert report.ratios == {
        "relay_rate_off": 0.05,
        "relay_delay_off": 0.0,
        "relay_lone_1kB_off": 0.0,
    }
    assert report.above == ["relay_rate_off"]
    assert report.details[f"{PEER}: worst rate"] == 0.5


def test_the_credit_of_a_token_bucket_is_no_fault_of_the_rate() -> None:
    assert "tbf_lone_1kB_off" not in reported({"tbf": [result()]}, 30.0).ratios


def test_a_token_bucket_is_asked_for_rates_only() -> None:
    (throttled,) = suited("tbf", [PROFILES["mvno-200k-throttled"]])
    assert throttled.up == Shape(rate_bps=200_000, queue_bytes=25_000)
    assert suited("relay", [PROFILES["wifi"]]) == [PROFILES["wifi"]]


def test_jitter_takes_more_packets() -> None:
    precise = Effort(sigmas=3.5)
    assert precise.lone_of(PROFILES["lan"].up).count == 51
    jittery = precise.lone_of(PROFILES["nb-iot"].up)
    assert jittery.count == 1225
    assert jittery.lanes == 8

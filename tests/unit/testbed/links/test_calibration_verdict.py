"""The verdict on a link: the values within tolerance, the others, and the sentences about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.calibration.verdict import Calibrated, Evidence, Method, Numbers, judge
from testbed.topology.model import Shape

LINK = Shape(rate_bps=128_000, delay_s=0.06)
MANY = Evidence(
    lone_sent=51,
    lone_received=51,
    train_packets=40,
    train_s=0.8,
    loss_sent=1000,
    loss_received=1000,
)


def verdict(
    shape: Shape, achieved: Numbers, evidence: Evidence = MANY, method: Method = Method.QUICK
) -> Calibrated:
    return judge("mvno-128k", "up", method, shape, achieved, evidence)


@given(st.floats(-0.0031, 0.0031), st.floats(0.9001, 1.0999))
def test_small_differences_are_fine(delay_off: float, rate_ratio: float) -> None:
    achieved = Numbers(128_000 * rate_ratio, 0.06 + delay_off)
    assert verdict(LINK, achieved).ok


@given(st.floats(0.0033, 1), st.sampled_from([-1, 1]))
def test_a_wrong_delay_is_reported(off: float, sign: int) -> None:
    (reason,) = verdict(LINK, Numbers(128_000, 0.06 + sign * off)).reasons
    assert reason.startswith("a delay of 60ms was configured, ")


@given(st.one_of(st.floats(0.01, 0.899), st.floats(1.101, 100)))
def test_a_wrong_rate_is_reported(ratio: float) -> None:
    (reason,) = verdict(LINK, Numbers(128_000 * ratio, 0.06)).reasons
    assert reason.startswith("a rate of 128kbit/s was configured, ")


def test_sentences_have_units_and_evidence() -> None:
    found = verdict(LINK, Numbers(64_123.4, 0.0851234))
    assert found.reasons == (
        "a delay of 60ms was configured, 85.12ms was measured (median of 51 packets)",
        "a rate of 128kbit/s was configured, 64.12kbit/s was measured (-49.9 %)",
    )


@given(st.floats(1.031, 1.09))
def test_seconds_of_a_stream_are_judged_more_strictly_than_a_train(ratio: float) -> None:
    achieved = Numbers(128_000 * ratio, 0.06)
    stream = Evidence(
        lone_sent=51, lone_received=51, train_packets=1000, train_s=5.0, by_train=False
    )
    assert verdict(LINK, achieved).ok
    assert not verdict(LINK, achieved, stream, Method.FULL).ok


def test_jitter_excuses_what_it_can_explain_and_no_more() -> None:
    jittery = Shape(rate_bps=128_000, delay_s=0.06, jitter_s=0.03)
    few = Evidence(lone_sent=15, lone_received=15, train_packets=40, train_s=0.8)
    assert verdict(jittery, Numbers(128_000, 0.075), few).ok
    assert not verdict(jittery, Numbers(128_000, 0.075), MANY_LONE).ok
    assert not verdict(jittery, Numbers(128_000, 0.12), few).ok


MANY_LONE = Evidence(lone_sent=1001, lone_received=1001, train_packets=40, train_s=0.8)


def test_a_loss_beyond_chance_is_reported_with_its_counts() -> None:
    lossy = Shape(rate_bps=128_000, delay_s=0.06, loss=0.005)
    lost = Evidence(lone_sent=51, lone_received=51, loss_sent=1000, loss_received=970)
    (reason,) = verdict(lossy, Numbers(None, 0.06, 0.03), lost).reasons
    assert reason.endswith("a loss of 0.5 % was configured, 30 of 1000 packets were lost (3.00 %)")
    fine = Evidence(lone_sent=51, lone_received=51, loss_sent=1000, loss_received=993)
    assert verdict(lossy, Numbers(None, 0.06, 0.007), fine).ok


def test_unmeasured_values_are_not_judged() -> None:
    assert verdict(LINK, Numbers(), Evidence()).ok
    assert verdict(Shape(), Numbers(None, 0.0), Evidence(lone_sent=15, lone_received=15)).ok


def test_a_link_without_arrivals_fails() -> None:
    silent = Evidence(lone_sent=15, train_packets=40, train_s=0.8)
    first, second = verdict(LINK, Numbers(), silent).reasons
    assert first.endswith("none of 15 lone packets arrived")
    assert second.endswith("too little of 40 packets arrived to measure the rate")


@pytest.mark.parametrize(("achieved_s", "ok"), [(0.1003, True), (0.0001, False), (0.12, False)])
def test_a_lone_kilobyte_takes_its_time_on_the_link(achieved_s: float, ok: bool) -> None:
    evidence = Evidence(kilobyte_asked_s=0.1, kilobyte_achieved_s=achieved_s, kilobytes_received=5)
    assert verdict(Shape(rate_bps=80_000), Numbers(), evidence, Method.FULL).ok is ok


def test_the_manifest_gets_plain_values() -> None:
    found = verdict(LINK, Numbers(127_000.0, 0.0603, None)).to_json()
    assert found == {
        "profile": "mvno-128k",
        "direction": "up",
        "method": "quick",
        "asked": {"rate_bps": 128_000, "delay_s": 0.06, "loss": 0.0},
        "achieved": {"rate_bps": 127_000.0, "delay_s": 0.0603, "loss": None},
        "lone_1kB": None,
        "ok": True,
        "reasons": [],
    }

"""The relay's counters of its lateness."""

from testbed.links.relay.switch import Counters, Tally


def test_a_relay_without_packets_was_never_late() -> None:
    report = Counters().report()
    assert report["forwarded"] == 0
    assert report["late_max_s"] == report["late_p99_s"] == 0.0


def test_shares_of_late_packets_are_upper_bounds_within_a_factor_of_two() -> None:
    counters = Counters()
    for _ in range(98):
        counters.delivered(30_000)
    counters.delivered(5_000_000)
    counters.delivered(40_000_000)
    assert 30_000 <= counters.late_ns(0.5) <= 64_000
    assert 5_000_000 <= counters.late_ns(0.99) <= 10_000_000
    assert counters.report()["late_max_s"] == 0.04


def test_no_share_is_later_than_the_latest_packet() -> None:
    counters = Counters()
    counters.delivered(1_500_000)
    assert counters.late_ns(0.99) == 1_500_000


def test_a_lateness_beyond_all_buckets_is_kept() -> None:
    counters = Counters()
    counters.delivered(10**16)
    assert counters.late_ns(1.0) == 10**16


def test_lateness_can_start_anew_while_packets_go_on_being_counted() -> None:
    counters = Counters()
    for _ in range(10):
        counters.delivered(40_000_000)
    counters.restart_lateness()
    assert counters.report()["late_max_s"] == counters.report()["late_p99_s"] == 0.0
    counters.delivered(30_000)
    report = counters.report()
    assert report["forwarded"] == 11
    assert report["late_max_s"] == 0.00003
    assert report["late_p99_s"] == 0.00003


def test_every_reason_for_a_drop_is_reported() -> None:
    assert Tally().report() == {
        "forwarded": 0,
        "dropped_queue": 0,
        "dropped_loss": 0,
        "dropped_cut": 0,
    }

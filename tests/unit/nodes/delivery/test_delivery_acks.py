"""The thesis' way to know that the link is free: one byte by UDP for each chunk."""

import pytest

from nodes.delivery import METHODS
from nodes.delivery.base import Needs, Scheduler


def sender(messages: int) -> Scheduler:
    scheduler = METHODS["pq-pc"].scheduler({"ack": "udp", "ack_timeout_s": 2.0})
    scheduler.on_link_up(1444, 0.0)
    for number in range(messages):
        scheduler.offer(bytes([number % 256]), 1, 0.0)
    return scheduler


def hand_over(scheduler: Scheduler, now: float, unsent: int = 5) -> None:
    assert scheduler.next_chunk(now) is not None
    scheduler.on_progress(unsent, now)


def test_the_next_goes_when_the_last_is_answered_and_not_before() -> None:
    scheduler = sender(2)
    hand_over(scheduler, 0.0)
    assert scheduler.next_chunk(10.0) is None
    scheduler.on_ack(0, 10.0)
    assert scheduler.next_chunk(10.0) is not None


def test_an_answer_may_come_before_we_know_that_the_chunk_left() -> None:
    scheduler = sender(2)
    scheduler.next_chunk(0.0)
    scheduler.on_ack(0, 0.1)
    scheduler.on_progress(0, 0.2)
    assert scheduler.next_chunk(0.2) is not None


def test_a_lost_answer_costs_the_timeout_after_the_kernel_is_empty() -> None:
    scheduler = sender(2)
    hand_over(scheduler, 0.0)
    assert scheduler.next_deadline() == pytest.approx(0.5)
    scheduler.on_progress(5, 4.0)
    assert scheduler.next_chunk(4.0) is None, "the kernel still has it"
    scheduler.on_progress(0, 5.0)
    assert scheduler.next_deadline() == pytest.approx(7.0)
    assert scheduler.next_chunk(6.9) is None
    assert scheduler.next_chunk(7.0) is not None


def test_the_late_answer_of_a_chunk_given_up_does_not_count_for_the_next() -> None:
    scheduler = sender(3)
    hand_over(scheduler, 0.0, unsent=0)
    hand_over(scheduler, 2.0)
    scheduler.on_ack(0, 2.1)
    assert scheduler.next_chunk(2.1) is None
    scheduler.on_ack(1, 2.2)
    assert scheduler.next_chunk(2.2) is not None


def test_numbers_begin_again_after_256_and_with_each_connection() -> None:
    scheduler = sender(300)
    for number in range(258):
        hand_over(scheduler, 0.0)
        assert scheduler.next_chunk(0.0) is None
        scheduler.on_ack(number % 256, 0.0)
    hand_over(scheduler, 0.0)
    scheduler.on_link_lost(0.0)
    scheduler.on_link_up(1444, 0.0)
    hand_over(scheduler, 0.0)
    scheduler.on_ack(258 % 256, 0.0)
    assert scheduler.next_chunk(0.0) is None
    scheduler.on_ack(0, 0.0)
    assert scheduler.next_chunk(0.0) is not None


@pytest.mark.parametrize("method", ["pq-pc", "dmpq-pc"])
def test_the_needs_of_a_method_follow_from_its_parameters(method: str) -> None:
    needs = METHODS[method].needs
    assert needs({}) == Needs(prompt_acks=True, link_model=True)
    assert needs({"ack": "udp"}) == Needs(udp_acks=True, link_model=True)


def test_labels_in_bits_and_our_own_method_say_what_they_need() -> None:
    assert METHODS["dmpq-pc"].needs({"label": "opcode"}) == Needs(
        bits=True, prompt_acks=True, link_model=True
    )
    assert METHODS["preemptive"].needs({}) == Needs(prompt_acks=True, link_model=True)
    assert METHODS["fifo"].needs({}) == Needs()

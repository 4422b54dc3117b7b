"""Virtual time: callbacks run in the order of their times, always the same way."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.simulated.loop import Loop, Timer

moments = st.lists(st.integers(0, 50), max_size=60)


@given(moments)
def test_callbacks_run_in_the_order_of_their_times_and_of_their_scheduling(
    planned: list[int],
) -> None:
    loop = Loop()
    seen: list[tuple[int, int]] = []
    for number, moment in enumerate(planned):
        loop.at(moment, lambda number: seen.append((loop.now, number)), number)
    loop.run(until=100)
    assert seen == sorted((moment, number) for number, moment in enumerate(planned))
    assert (loop.now, loop.idle, loop.happened) == (100, True, len(planned))


@given(moments, st.integers(0, 60))
def test_only_due_callbacks_run_and_the_others_run_later(planned: list[int], until: int) -> None:
    loop = Loop()
    seen: list[int] = []
    for moment in planned:
        loop.at(moment, seen.append, moment)
    loop.run(until)
    assert sorted(seen) == sorted(moment for moment in planned if moment <= until)
    loop.run(100)
    assert sorted(seen) == sorted(planned)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=20))
def test_callbacks_scheduled_by_callbacks_never_run_in_the_past(
    plans: list[tuple[int, int]],
) -> None:
    loop = Loop()
    seen: list[int] = []

    def again(times: int) -> None:
        seen.append(loop.now)
        if times:
            loop.at(loop.now - 5, again, times - 1)

    for moment, times in plans:
        loop.at(moment, again, times)
    loop.run(100)
    assert seen == sorted(seen)
    assert len(seen) == sum(1 + times for _, times in plans)


def test_a_loop_can_be_stopped_at_the_time_of_its_last_callback() -> None:
    loop = Loop()
    seen: list[int] = []
    for moment in (3, 7, 9):
        loop.at(moment, seen.append, moment)
    assert loop.run(100, stop=lambda: len(seen) == 2)
    assert (loop.now, seen, loop.idle) == (7, [3, 7], False)


@given(st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 60)), max_size=25))
def test_a_timer_fires_once_at_the_time_it_was_last_set_to(
    settings: list[tuple[int, int | None]],
) -> None:
    loop = Loop()
    fired: list[int] = []
    timer = Timer(loop, lambda: fired.append(loop.now))
    expected: list[int] = []
    due: int | None = None
    for moment, wanted in sorted(settings, key=lambda one: one[0]):
        if (
            due is not None and due < moment
        ):  # a timer that is due at this very moment is set before it fires
            expected.append(due)
            due = None
        loop.run(moment - 1) if moment else None
        loop.now = moment
        timer.set(wanted)
        due = None if wanted is None else max(wanted, moment)
    loop.run(200)
    assert fired == expected + ([due] if due is not None else [])


class Echo:
    """Answers each number with the next lower one, to its sender; can ask to be called later."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.deadline: float | None = None
        self.called: list[float] = []
        self.missed: list[tuple[int, float]] = []

    def on_message(self, sender: int, message: int, now: float) -> list[Any]:
        return [To(sender, message - 1)] if message else [Noted(now)]

    def on_peer_lost(self, number: int, now: float) -> list[Any]:
        self.missed.append((number, now))
        return [Noted(now)]

    def next_deadline(self) -> float | None:
        return self.deadline

    def on_deadline(self, now: float) -> list[Any]:
        if self.deadline is None or now < self.deadline:
            return []
        self.deadline = None
        self.called.append(now)
        return [Noted(now)]

    def wake_at(self, when: float) -> list[Any]:
        self.deadline = when
        return []


class To:
    def __init__(self, number: int, message: int) -> None:
        self.number, self.message = number, message


class Noted:
    def __init__(self, at: float) -> None:
        self.at = at


def network_of_echoes(
    delay: Any = 1000, **how: Any
) -> tuple[Any, list[tuple[int, float]], list[int]]:
    from testbed.backends.simulated.network import Network

    noted: list[tuple[int, float]] = []
    made: list[int] = []

    def make(number: int) -> Echo:
        made.append(number)
        return Echo(number)

    network = Network(
        Loop(),
        make,
        lambda action: action.number if isinstance(action, To) else None,
        delay,
        lambda number, action, now: noted.append((number, action.at)),
        **how,
    )
    return network, noted, made


def test_messages_take_their_time_and_nodes_are_made_when_first_reached() -> None:
    network, noted, made = network_of_echoes()
    network.call(1, lambda node, now: [To(70_000, 3)])
    network.loop.run(10_000)
    assert made == [1, 70_000]
    assert network.sent == 4
    assert noted == [(1, 4000 / 1e9)]


def test_each_pair_may_have_a_delay_of_its_own() -> None:
    network, noted, _ = network_of_echoes(lambda sender, to: 10 * sender + to)
    network.call(1, lambda node, now: [To(2, 1)])
    network.loop.run(10_000)
    assert noted == [(1, (12 + 21) / 1e9)]


def test_a_core_is_called_at_its_deadline() -> None:
    network, noted, _ = network_of_echoes()
    when = 0.1 + 0.2  # no whole number of nanoseconds
    network.call(5, lambda node, now: node.wake_at(when))
    network.loop.run(10**9)
    (called,) = network.node(5).called
    assert when <= called < when + 1e-6
    assert [number for number, _ in noted] == [5]


def test_messages_to_a_dead_node_are_lost_until_the_node_is_revived() -> None:
    network, noted, made = network_of_echoes()
    network.call(1, lambda node, now: [To(2, 0)])
    network.kill(2)
    network.loop.run(5000)
    assert (network.lost, noted) == (1, [])
    network.revive(2)
    network.call(1, lambda node, now: [To(2, 0)])
    network.loop.run(10_000)
    assert (network.lost, [number for number, _ in noted], made) == (1, [2], [1, 2])


def test_senders_to_a_dead_node_are_notified_if_configured() -> None:
    network, noted, _ = network_of_echoes(lost_after_ns=3000)
    network.kill(2)
    network.call(1, lambda node, now: [To(2, 0)])
    network.loop.run(10_000)
    assert network.node(1).missed == [(2, 4000 / 1e9)]
    assert noted == [(1, 4000 / 1e9)]
    network.call(1, lambda node, now: [To(2, 0)])
    network.revive(2)  # before the message arrives
    network.loop.run(20_000)
    assert len(network.node(1).missed) == 1

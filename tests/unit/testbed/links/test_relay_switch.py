"""The relay's switch, with sockets in place of taps: what a cut does to packets under way, and to no other ones."""

import socket
from collections.abc import Iterator

import pytest

from testbed.links.changes import DirectionState
from testbed.links.relay.switch import Switch
from testbed.topology.model import Shape

FAR_AWAY = Shape(delay_s=1000.0)  # nothing arrives while a test lasts
FRAME = bytes(100)


class Ends:
    """Both ends of one link, as the kernel has them."""

    def __init__(self, switch: Switch, name: str) -> None:
        self._pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        (self.node, near), (self.core, far) = self._pairs
        for tap in (near, far):
            tap.setblocking(False)
        switch.add(name, near.fileno(), far.fileno(), 1500)

    def close(self) -> None:
        for pair in self._pairs:
            for one in pair:
                one.close()


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def links(switch: Switch) -> Iterator[dict[str, Ends]]:
    made = {name: Ends(switch, name) for name in ("a", "b", "c")}
    switch.shape(dict.fromkeys(made, (DirectionState(FAR_AWAY), DirectionState(FAR_AWAY))), seed=1)
    yield made
    for ends in made.values():
        ends.close()


def send(switch: Switch, links: dict[str, Ends]) -> None:
    """Two frames up and one down on each link, all of them under way."""
    for ends in links.values():
        ends.node.send(FRAME)
        ends.node.send(FRAME)
        ends.core.send(FRAME)
    switch.turn()


def cut_counts(switch: Switch) -> dict[str, tuple[int, int]]:
    found = switch.tallies()
    return {
        n: (both["up"]["dropped_cut"], both["down"]["dropped_cut"]) for n, both in found.items()
    }


def test_a_cut_loses_frames_under_way_in_the_cut_directions(
    switch: Switch, links: dict[str, Ends]
) -> None:
    send(switch, links)
    whole, cut = DirectionState(FAR_AWAY), DirectionState(FAR_AWAY, cut=True)
    switch.shape({"a": (cut, whole), "b": (cut, cut)}, seed=None)
    assert cut_counts(switch) == {"a": (2, 0), "b": (2, 1), "c": (0, 0)}
    switch.shape({"a": (cut, whole), "b": (cut, cut)}, seed=None)
    assert cut_counts(switch) == {"a": (2, 0), "b": (2, 1), "c": (0, 0)}


def test_frames_sent_into_a_cut_are_lost_and_later_frames_pass(
    switch: Switch, links: dict[str, Ends]
) -> None:
    cut = (DirectionState(FAR_AWAY, cut=True), DirectionState(FAR_AWAY, cut=True))
    switch.shape({"a": cut}, seed=None)
    send(switch, links)
    assert cut_counts(switch)["a"] == (2, 1)
    switch.shape({"a": (DirectionState(Shape()), DirectionState(Shape()))}, seed=None)
    links["a"].node.send(FRAME)
    switch.turn()
    assert links["a"].core.recv(200) == FRAME


def test_links_are_shaped_together_or_not_at_all(switch: Switch, links: dict[str, Ends]) -> None:
    send(switch, links)
    cut = (DirectionState(FAR_AWAY, cut=True), DirectionState(FAR_AWAY, cut=True))
    with pytest.raises(KeyError):
        switch.shape({"a": cut, "nowhere": cut}, seed=None)
    assert cut_counts(switch)["a"] == (0, 0)

"""Background traffic in virtual time: datagrams at a steady rate, which cross the lines and are nobody's."""

from collections.abc import Callable

from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.packets import DATAGRAM_BYTES, Flow, Kind, Packet


class Load:
    """Datagrams from one node to another until it is ended."""

    def __init__(self, loop: Loop, flow: Flow, rate_bps: float, size: int) -> None:
        self._loop = loop
        self._flow = flow
        self._size = size
        self._gap_ns = (size + DATAGRAM_BYTES) * 8 / rate_bps * SECOND
        self._began = loop.now
        self._sent = 0
        self._ended = False
        self._send(None)

    def end(self) -> None:
        """No more of them."""
        self._ended = True

    def _send(self, _: None) -> None:
        if self._ended:
            return
        self._flow.send(Packet(self._flow, Kind.LOAD, length=self._size))
        self._sent += 1
        self._loop.at(self._began + round(self._sent * self._gap_ns), self._send, None)


MakeFlow = Callable[[str, str], Flow]


class Loads:
    """All that go on."""

    def __init__(self, loop: Loop, make_flow: MakeFlow) -> None:
        self._loop = loop
        self._make_flow = make_flow
        self._on: dict[int, list[Load]] = {}

    def begin(
        self, number: int, nodes: tuple[str, ...], to: str, rate_bps: float, size: int
    ) -> None:
        """From each of these nodes."""
        self._on[number] = [
            Load(self._loop, self._make_flow(name, to), rate_bps, size) for name in nodes
        ]

    def end(self, number: int) -> None:
        """That one is over."""
        for load in self._on.pop(number, []):
            load.end()

"""A WebSocket extension (RFC 6455, 9): a number from 0 to 7 travels in the three reserved bits of a message's frame.

The connecting node offers it if its link's delivery method has labels there; a broker accepts it from every node.
Without it a frame with a reserved bit set breaks the rules, and the library ends the connection.
"""

from collections import deque
from collections.abc import Sequence

from websockets.exceptions import NegotiationError
from websockets.extensions import ClientExtensionFactory, Extension, ServerExtensionFactory
from websockets.frames import BINARY, TEXT, Frame
from websockets.protocol import Protocol
from websockets.typing import ExtensionName, ExtensionParameter

NAME = ExtensionName("x-testbed-label")


class LabelExtension(Extension):
    """The extension of one connection: `outgoing` is the next message's label, `received` has those that came."""

    name = NAME

    def __init__(self) -> None:
        self.outgoing = 0
        self.received: deque[int] = deque()

    def encode(self, frame: Frame) -> Frame:
        if frame.opcode is not BINARY:
            return frame
        rsv1, rsv2, rsv3 = (bool(self.outgoing & bit) for bit in (4, 2, 1))
        return Frame(frame.opcode, frame.data, frame.fin, rsv1, rsv2, rsv3)

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        if frame.opcode is not BINARY and frame.opcode is not TEXT:
            return frame  # bits in a continuation or control frame are an error, as without the extension
        self.received.append(frame.rsv1 * 4 + frame.rsv2 * 2 + frame.rsv3)
        return Frame(frame.opcode, frame.data, frame.fin)


class Offer(ClientExtensionFactory):
    """The connecting node's side of the negotiation."""

    name = NAME

    def get_request_params(self) -> Sequence[ExtensionParameter]:
        return []

    def process_response_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> Extension:
        return _once(params, accepted_extensions)


class Acceptance(ServerExtensionFactory):
    """The broker's side of the negotiation."""

    name = NAME

    def process_request_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> tuple[list[ExtensionParameter], Extension]:
        return [], _once(params, accepted_extensions)


def _once(params: Sequence[ExtensionParameter], accepted: Sequence[Extension]) -> LabelExtension:
    if params or any(other.name == NAME for other in accepted):
        raise NegotiationError(f"{NAME} is agreed on once, without parameters")
    return LabelExtension()


def agreed(protocol: Protocol) -> LabelExtension | None:
    """The connection's extension, if both sides have agreed on it."""
    return next((one for one in protocol.extensions if isinstance(one, LabelExtension)), None)

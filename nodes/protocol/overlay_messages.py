"""Messages of the Skip Graph on the wire: a publication has its multicast as routing, all others are OVERLAY."""

from dataclasses import replace

from nodes.protocol.skipgraph_codec import decode, encode, with_publication
from nodes.protocol.skipgraph_messages import GraphMessage, Multicast
from nodes.protocol.wire import Kind, Message, WireError


def read(message: Message) -> GraphMessage:
    """The graph's message in a wire message; WireError if there is none."""
    if message.kind is Kind.OVERLAY:
        return decode(message.payload)
    if message.kind is Kind.PUBLISH and message.routing:
        return with_publication(message)
    raise WireError(f"{message.kind.name} without routing between nodes of an overlay")


def written(message: GraphMessage, number: int) -> Message:
    """A graph message as a wire message from the node of this number."""
    if isinstance(message, Multicast) and isinstance(message.body, Message):
        return replace(message.body.forwarded(), routing=encode(message))
    return Message(Kind.OVERLAY, origin=number, payload=encode(message))

"""The pair's protocol to a broker of ours: WebSocket frames and messages, encoded in advance.

Frames are masked with a key of zeros: the broker has the same work with it, and the pair has none.
"""

import base64
import os
import socket
import struct

from benchmarks.support.brokers.pair import PATIENCE_S
from nodes.delivery import METHODS
from nodes.delivery.base import Chunk
from nodes.overlay.reliability.custody import acknowledgement, has_custody
from nodes.protocol.wire import CUSTODY, Kind, Message, decode, encode, message_id
from nodes.runtime.handshake import Caller, Identity, new_nonce
from testbed.errors import TestbedError

BINARY = 0x82  # the only frame of its message (RFC 6455, 5.2)
MASKED = 0x80
NO_MASK = bytes(4)
TOPIC = "t"
PUBLISHER, SUBSCRIBER = 101, 102  # numbers that no broker here has
CHUNK_BYTES = 1444  # bytes of a chunk in one packet


def frame(data: bytes) -> bytes:
    """A frame with one message to the broker."""
    size = len(data)
    if size <= 125:
        head = struct.pack("!BB", BINARY, MASKED | size)
    elif size <= 0xFFFF:
        head = struct.pack("!BBH", BINARY, MASKED | 126, size)
    else:
        head = struct.pack("!BBQ", BINARY, MASKED | 127, size)
    return head + NO_MASK + data


class Frames:
    """Splits the bytes of a broker into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def whole(self, data: bytes) -> list[bytes]:
        """The messages that are complete now."""
        data = self._rest + data
        found, at = [], 0
        while len(data) - at >= 2:
            size, begin = data[at + 1], at + 2
            if size >= 126:
                length = 2 if size == 126 else 8
                size = int.from_bytes(data[begin : begin + length])
                begin += length
            if begin + size > len(data):
                break
            found.append(data[begin : begin + size])
            at = begin + size
        self._rest = data[at:]
        return found


class Client:
    """A connection to the broker of this card, after HELLO."""

    def __init__(self, name: str, number: int, address: tuple[str, int], broker: Identity) -> None:
        self.sock = socket.create_connection(address, PATIENCE_S)
        self._frames = Frames()
        self._unread: list[bytes] = []
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(
            f"GET / HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        with self.sock.makefile("rb", buffering=0) as answer:
            while answer.readline() not in (b"\r\n", b""):
                pass
        caller = Caller(Identity(name, number, broker.lab, broker.secret), broker.name, new_nonce())
        self.sock.sendall(frame(caller.first()))
        self.sock.sendall(frame(caller.answer(self.next())))

    def next(self) -> bytes:
        """The next chunk."""
        while not self._unread:
            if not (data := self.sock.recv(4096)):
                raise TestbedError("the broker has closed the connection")
            self._unread = self._frames.whole(data)
        return self._unread.pop(0)

    def received(self, data: bytes) -> list[bytes]:
        """The chunks that are complete with this."""
        return self._frames.whole(data)


class OurExchange:
    """Publisher and subscriber, with one delivery method and publications of one level."""

    def __init__(
        self,
        address: tuple[str, int],
        broker: Identity,
        delivery: str,
        level: int,
        custody: bool,
        size: int,
    ) -> None:
        self._method = METHODS[delivery]
        self._assembler = self._method.assembler({})
        self._level, self._flags = level, CUSTODY if custody else 0
        self._payload = bytes(size)
        self._subscriber = Client("subscriber", SUBSCRIBER, address, broker)
        self._publisher = Client("publisher", PUBLISHER, address, broker)
        self.subscriber, self.publisher = self._subscriber.sock, self._publisher.sock
        self._ask(self._subscriber, Kind.SUBSCRIBE, Kind.SUBSCRIBED)
        self._ask(self._publisher, Kind.ADVERTISE, Kind.ADVERTISED)
        data = encode(self._message(0))
        self._label = self._chunk(data, level, control=False).removesuffix(data)

    def publication(self, number: int) -> bytes:
        """The publication of this number, as the publisher sends it."""
        return frame(self._label + encode(self._message(number)))

    def received(self, data: bytes) -> int:
        """Count publications; acknowledge each that has custody."""
        count, answers = 0, []
        for chunk in self._subscriber.received(data):
            for whole in self._assembler.on_chunk(Chunk(chunk)):
                message = decode(whole)
                count += message.kind is Kind.PUBLISH
                if has_custody(message):
                    answers.append(self._framed(acknowledgement(SUBSCRIBER, message)))
        if answers:
            self.subscriber.sendall(b"".join(answers))
        return count

    def close(self) -> None:
        """Close both connections."""
        self.publisher.close()
        self.subscriber.close()

    def _message(self, number: int) -> Message:
        return Message(
            Kind.PUBLISH,
            self._level,
            flags=self._flags,
            origin=PUBLISHER,
            message_id=message_id(PUBLISHER, number),
            topic=TOPIC,
            payload=self._payload,
        )

    def _ask(self, client: Client, question: Kind, answer: Kind) -> None:
        """Send a request, and wait until the broker confirms it."""
        client.sock.sendall(self._framed(Message(question, topic=TOPIC)))
        assembler = self._method.assembler({})
        while not any(decode(w).kind is answer for w in assembler.on_chunk(Chunk(client.next()))):
            pass

    def _framed(self, message: Message) -> bytes:
        return frame(self._chunk(encode(message), message.priority, message.control))

    def _chunk(self, data: bytes, priority: int, control: bool) -> bytes:
        """The chunk of a short message that is alone, as the method sends it."""
        scheduler = self._method.scheduler({})
        scheduler.on_link_up(CHUNK_BYTES, 0.0)
        scheduler.offer(data, priority, 0.0, control=control)
        chunk = scheduler.next_chunk(0.0)
        assert chunk is not None
        return chunk.data

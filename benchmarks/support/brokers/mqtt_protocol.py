"""The pair's protocol to mosquitto: MQTT 3.1.1, with as few bytes as the standard needs, encoded in advance."""

import socket
import struct

from benchmarks.support.brokers.pair import PATIENCE_S
from testbed.errors import TestbedError

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK = 0x10, 0x20, 0x30, 0x40, 0x82, 0x90
CLEAN_SESSION = 2
TOPIC = b"t"


def packet(kind: int, body: bytes) -> bytes:
    """A control packet, with the length in seven bits a byte (MQTT 3.1.1, 2.2.3)."""
    left, length = len(body), bytearray()
    while True:
        left, low = divmod(left, 128)
        length.append(low | (128 if left else 0))
        if not left:
            return bytes([kind, *length]) + body


class Packets:
    """Splits the bytes of a broker into packets."""

    def __init__(self) -> None:
        self._rest = b""

    def whole(self, data: bytes) -> list[tuple[int, bytes]]:
        """Kind and body of the packets that are complete now."""
        data = self._rest + data
        found, at = [], 0
        while (head := _head(data, at)) is not None and head[1] <= len(data):
            begin, end = head
            found.append((data[at], data[begin:end]))
            at = end
        self._rest = data[at:]
        return found


def _head(data: bytes, at: int) -> tuple[int, int] | None:
    """Begin and end of the body of the packet that begins here; None if that is not known yet."""
    length = shift = 0
    for place in range(at + 1, min(at + 5, len(data))):
        length |= (data[place] & 127) << shift
        if data[place] < 128:
            return place + 1, place + 1 + length
        shift += 7
    return None


class MqttExchange:
    """Publisher and subscriber, with one quality of service."""

    def __init__(self, address: tuple[str, int], qos: int, size: int) -> None:
        self._qos, self._payload = qos, bytes(size)
        self._packets = Packets()
        self.subscriber, self.publisher = (_connected(address, name) for name in (b"s", b"p"))
        wanted = struct.pack("!HH", 1, len(TOPIC)) + TOPIC + bytes([qos])
        self.subscriber.sendall(packet(SUBSCRIBE, wanted))
        _await(self.subscriber, SUBACK)

    def publication(self, number: int) -> bytes:
        """The publication of this number, as the publisher sends it."""
        identity = struct.pack("!H", number % 0xFFFF + 1) if self._qos else b""
        topic = struct.pack("!H", len(TOPIC)) + TOPIC
        return packet(PUBLISH | self._qos << 1, topic + identity + self._payload)

    def received(self, data: bytes) -> int:
        """Count publications; with QoS 1 acknowledge each."""
        count, answers = 0, []
        for kind, body in self._packets.whole(data):
            if kind & 0xF0 == PUBLISH:
                count += 1
                if self._qos:
                    begin = 2 + len(TOPIC)
                    answers.append(packet(PUBACK, body[begin : begin + 2]))
        if answers:
            self.subscriber.sendall(b"".join(answers))
        return count

    def close(self) -> None:
        """Close both connections."""
        self.publisher.close()
        self.subscriber.close()


def _connected(address: tuple[str, int], name: bytes) -> socket.socket:
    sock = socket.create_connection(address, PATIENCE_S)
    hello = struct.pack("!H4sBBHH", 4, b"MQTT", 4, CLEAN_SESSION, 0, len(name)) + name
    sock.sendall(packet(CONNECT, hello))
    _await(sock, CONNACK)
    return sock


def _await(sock: socket.socket, kind: int) -> None:
    packets = Packets()
    while data := sock.recv(4096):
        if any(found == kind for found, _ in packets.whole(data)):
            return
    raise TestbedError("mosquitto has closed the connection")

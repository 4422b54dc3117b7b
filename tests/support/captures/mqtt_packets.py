"""MQTT control packets, written from the standard (3.1.1 and 5) without any code of our reader."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MqttMessage:
    """A publication. `alias`: the number that stands for its topic, sent with it (version 5)."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int | None = None
    properties: bytes = b""
    alias: int = 0
    silent: bool = False  # the alias alone, without the topic


def varying(number: int) -> bytes:
    """A variable byte integer: seven bits a byte, the lowest first."""
    out = b""
    while True:
        number, digit = divmod(number, 128)
        out += bytes([digit | (0x80 if number else 0)])
        if not number:
            return out


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("!H", len(raw)) + raw


def control(first: int, body: bytes = b"") -> bytes:
    return bytes([first]) + varying(len(body)) + body


def connect(version: int, client: str = "sensor") -> bytes:
    name = "MQIsdp" if version == 3 else "MQTT"
    body = text(name) + bytes([version, 2]) + struct.pack("!H", 60)
    return control(0x10, body + (b"\x00" if version == 5 else b"") + text(client))


def connack(version: int) -> bytes:
    return control(0x20, b"\x00\x00" + (b"\x03\x21\x00\x14" if version == 5 else b""))


def subscribe(version: int, topic: str) -> bytes:
    return control(0x82, b"\x00\x07" + (b"\x00" if version == 5 else b"") + text(topic) + b"\x01")


def suback(version: int) -> bytes:
    return control(0x90, b"\x00\x07" + (b"\x00" if version == 5 else b"") + b"\x01")


def puback(packet_id: int) -> bytes:
    return control(0x40, struct.pack("!H", packet_id))


PING, PONG, BYE = control(0xC0), control(0xD0), control(0xE0)


def user_property(name: str, value: str) -> bytes:
    return b"\x26" + text(name) + text(value)


def properties_of(message: MqttMessage) -> bytes:
    alias = b"\x23" + struct.pack("!H", message.alias) if message.alias else b""
    return message.properties + alias


def publish(version: int, message: MqttMessage) -> bytes:
    body = text("" if message.silent else message.topic)
    if message.qos:
        body += struct.pack("!H", message.packet_id or 0)
    if version == 5:
        properties = properties_of(message)
        body += varying(len(properties)) + properties
    first = 0x30 | (8 if message.dup else 0) | message.qos << 1 | int(message.retain)
    return control(first, body + message.payload)


def conversation(version: int, sent: Iterable[MqttMessage]) -> bytes:
    """Everything that a client sends."""
    return connect(version) + b"".join(publish(version, message) for message in sent) + PING + BYE

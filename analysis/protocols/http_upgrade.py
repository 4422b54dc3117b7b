"""The subprotocol and the compression that both ends of a WebSocket agreed on, from the head of the HTTP response.

Plain HTTP begins with the same bytes.
"""

from typing import NamedTuple

HANDSHAKES = (b"GET ", b"HTTP/1.")
END = b"\r\n\r\n"
LONGEST = 1 << 16  # longer heads do not occur
DEFLATE = "permessage-deflate"


class Upgrade(NamedTuple):
    """The negotiated values; empty where nothing was agreed."""

    is_websocket: bool = False
    protocol: str = ""
    extensions: tuple[str, ...] = ()
    is_answer: bool = False

    @property
    def is_mqtt(self) -> bool:
        return self.protocol.startswith("mqtt")  # for MQTT 3.1 it is mqttv3.1

    @property
    def is_compressed(self) -> bool:
        """Whether messages may be compressed, and so unreadable (RFC 7692)."""
        return DEFLATE in self.extensions


NO_UPGRADE = Upgrade()


def read_upgrade(data: bytes) -> Upgrade:
    """The HTTP head at the beginning of a stream; NO_UPGRADE if there is none, or if its end is missing."""
    end = data.find(END, 0, LONGEST)
    if not data.startswith(HANDSHAKES) or end < 0:
        return NO_UPGRADE
    fields: dict[str, list[str]] = {}
    first, *lines = data[:end].decode("latin-1").split("\r\n")
    for line in lines:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), []).extend(value.lower().split(","))
    protocols = [name.strip() for name in fields.get("sec-websocket-protocol", [])]
    extensions = fields.get("sec-websocket-extensions", [])
    requested = "websocket" in [name.strip() for name in fields.get("upgrade", [])]
    return Upgrade(
        requested and (first.startswith("GET ") or first.split()[1:2] == ["101"]),
        protocols[0] if protocols else "",
        tuple(extension.partition(";")[0].strip() for extension in extensions),
        not first.startswith("GET "),
    )

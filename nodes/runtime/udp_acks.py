"""Acknowledgements by UDP: one byte for each received chunk, its number modulo 256 (Lee 2016).

An acknowledgement travels between the same two addresses and port numbers as the TCP connection, so neither side has to
announce an address. One from anywhere else, or of another length, is ignored. An attacker who forges the peer's
address can make the sender hand over its next chunk too early, and no more.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

Address = tuple[str, int]

_AT_ONCE = 64  # acknowledgements read in a row, before other tasks run


class AckSocket:
    """A UDP socket for the acknowledgements of all links that end at its port; OSError if the address is in use."""

    def __init__(self, local: Address) -> None:
        self._links: dict[Address, LinkAcks] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind(local)
        except OSError:
            self._socket.close()
            raise
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def with_peer(self, peer: Address, *, alone: bool = False) -> "LinkAcks":
        """The acknowledgements to and from this address; replaces an older link. `alone`: the socket's only link."""
        self._links[peer] = LinkAcks(self, peer, alone=alone)
        return self._links[peer]

    def send(self, number: int, peer: Address) -> None:
        """Acknowledge the chunk of this number. A datagram that the kernel does not accept now is lost."""
        with suppress(OSError):
            self._socket.sendto(bytes((number & 0xFF,)), peer)

    def forget(self, link: "LinkAcks") -> None:
        """The link has ended."""
        if self._links.get(link.peer) is link:
            del self._links[link.peer]

    def close(self) -> None:
        """Close the socket."""
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()

    def _read(self) -> None:
        with suppress(OSError):  # above all: there are no more
            for _ in range(_AT_ONCE):
                data, sender = self._socket.recvfrom(2)
                link = self._links.get(sender)
                if link is not None and link.received is not None and len(data) == 1:
                    link.received(data[0])


class LinkAcks:
    """The acknowledgements of one link, in both directions."""

    def __init__(self, socket: AckSocket, peer: Address, *, alone: bool) -> None:
        self.peer = peer
        self.received: Callable[[int], None] | None = (
            None  # called with the number of each chunk that the peer has
        )
        self._socket = socket
        self._alone = alone

    def send(self, number: int) -> None:
        """This side has the chunk of this number."""
        self._socket.send(number, self.peer)

    def close(self) -> None:
        """The link has ended; close the socket, too, if it was for this link alone."""
        self._socket.forget(self)
        if self._alone:
            self._socket.close()

"""Ports of the loopback that a test's own servers can bind, and that no other process gets meanwhile."""

import socket
from contextlib import ExitStack

HOST = "127.0.0.1"


class ReservedPorts:
    """Reserves ports until it is closed.

    A socket is bound to each port, and never listens. The kernel gives the port to nobody who asks for any free one.
    A server that names it can bind it: both set SO_REUSEADDR (as asyncio and `socket.create_server` do), and Linux
    then objects to a second listening socket only. Until a server listens, connections are refused.
    """

    def __init__(self) -> None:
        self._held = ExitStack()

    def reserve(self) -> int:
        """One more port."""
        holder = self._held.enter_context(socket.socket())
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((HOST, 0))
        port: int = holder.getsockname()[1]
        return port

    def close(self) -> None:
        """Give the ports back."""
        self._held.close()

    def __enter__(self) -> "ReservedPorts":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

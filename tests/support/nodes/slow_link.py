"""A slow link in front of a port: it passes this many bytes a second in each direction."""

import socket
import threading
import time
from types import TracebackType

PIECE = 4096


class SlowLink:
    """Listen on `port` and forward each connection to `target`, slowly."""

    def __init__(self, target: int, bytes_per_s: int) -> None:
        self._target = target
        self._pause_s = PIECE / bytes_per_s
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)  # inherited
        self.port: int = self._server.getsockname()[1]
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "SlowLink":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in (self._server, *self._sockets):
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket()
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
            try:
                far.connect(("127.0.0.1", self._target))
            except OSError:  # the target has ended: the caller sees a closed connection
                near.close()
                far.close()
                continue
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(PIECE):
                sink.sendall(data)
                time.sleep(self._pause_s * len(data) / PIECE)
        except OSError:
            pass
        for connection in (source, sink):
            connection.close()

"""Server-sent events: one HTTP answer without end (text/event-stream) on one TCP connection, in order of time.

`python -m benchmarks.support.delivery.sse publish|receive HOST FOLDER`
"""

import http.client
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from benchmarks.support.delivery.peer_program import Received, play, ready

PORT = 8000
LOOK_S = 0.1
FIELD = b"data: "


def publish(host: str, folder: Path) -> None:
    """Run the server, which makes the messages itself."""
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    class Events(BaseHTTPRequestHandler):
        """Responds with an endless stream of events."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            ready(folder, "publisher")
            while True:
                self.wfile.write(FIELD + waiting.get() + b"\n\n")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer((host, PORT), Events)
    threading.Thread(target=play, args=(folder, lambda data, _: waiting.put(data))).start()
    server.serve_forever()


def receive(host: str, folder: Path) -> None:
    """Run the client: one event is one line with data and one without."""
    received = Received(folder)
    answer = _asked(host)
    ready(folder, "receiver")
    while line := answer.readline():
        if line.startswith(FIELD):
            received.note(line[len(FIELD) :])


def _asked(host: str) -> http.client.HTTPResponse:
    """The beginning of the response, as soon as there is a server."""
    while True:
        connection = http.client.HTTPConnection(host, PORT)
        try:
            connection.request("GET", "/", headers={"Accept": "text/event-stream"})
            return connection.getresponse()
        except OSError:
            time.sleep(LOOK_S)


if __name__ == "__main__":
    {"publish": publish, "receive": receive}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))

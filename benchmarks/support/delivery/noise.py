"""Other traffic on the link: `python -m benchmarks.support.delivery.noise send|take HOST BYTES_PER_S`.

UDP packets of 500 bytes at random times; the receiver discards them.
"""

import random
import socket
import sys
import time

PORT = 9
SIZE, AROUND = 500, 42  # Ethernet, IPv4 and UDP around it


def send(host: str, rate: float) -> None:
    """Send for ever, at this rate on the link."""
    chances = random.Random(1)
    due = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        while True:
            due += chances.expovariate(rate / (SIZE + AROUND))
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                line.sendto(bytes(SIZE), (host, PORT))
            except OSError:
                continue  # the link is not up yet


def take(host: str, _: float) -> None:
    """Receive and discard for ever."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("", PORT))
        while True:
            line.recv(SIZE)


if __name__ == "__main__":
    {"send": send, "take": take}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))

"""The process that draws charts for `analysis.report.drawing`. It imports little, so that it starts quickly.

`python -m analysis.report.drawer [DESCRIPTOR]`. It answers on its standard output, or everybody who connects to the
listening socket DESCRIPTOR. It ends when its standard input does.

Each message is its length (4 bytes) and its text. An answer begins with `=`, or with `!` if an error message follows.
"""

import socket
import sys
import threading
from contextlib import suppress
from typing import IO

LENGTH_BYTES = 4
DRAWN, FAILED = "=", "!"


def write(pipe: IO[bytes], text: str) -> None:
    content = text.encode()
    pipe.write(len(content).to_bytes(LENGTH_BYTES) + content)
    pipe.flush()


def read(pipe: IO[bytes]) -> str | None:
    """The next message; None if the pipe has ended."""
    length = pipe.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    content = pipe.read(int.from_bytes(length))
    return content.decode() if len(content) == int.from_bytes(length) else None


def draw(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the questions end."""
    import vl_convert

    while (question := read(questions)) is not None:
        try:
            answer = DRAWN + vl_convert.vegalite_to_svg(question)
        except ValueError as error:
            answer = f"{FAILED}{error}"
        write(answers, answer)


def _accept(listening: socket.socket) -> None:
    """Answer each connection in a thread of its own."""
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_draw_for, args=(connection,), daemon=True).start()


def _draw_for(connection: socket.socket) -> None:
    questions, answers = connection.makefile("rb"), connection.makefile("wb")
    with suppress(OSError), connection, questions, answers:  # the other process may be killed
        draw(questions, answers)


def main() -> None:
    """Load the library that draws, and answer until standard input ends."""
    import vl_convert

    vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})  # loads all
    if len(sys.argv) > 1:
        listening = socket.socket(fileno=int(sys.argv[1]))
        threading.Thread(target=_accept, args=(listening,), daemon=True).start()
        sys.stdin.buffer.read()
    else:
        draw(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()

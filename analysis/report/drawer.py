"""The process that draws charts for `analysis.report.drawing`. It imports little, so that it starts quickly.

Each message on its pipes is its length (4 bytes) and its text. An answer begins with `=`, or with `!` if an error
message follows.
"""

import sys
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


def main() -> None:
    """Draw what standard input asks for, until it ends."""
    import vl_convert

    vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})  # loads all
    while (question := read(sys.stdin.buffer)) is not None:
        try:
            answer = DRAWN + vl_convert.vegalite_to_svg(question)
        except ValueError as error:
            answer = f"{FAILED}{error}"
        write(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()

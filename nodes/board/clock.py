"""`python3 nodes.pyz board clock`: what time is it here? Asked over SSH, to know how far the board's clock is off."""

import time
from typing import BinaryIO


def answer(questions: BinaryIO, answers: BinaryIO) -> None:
    """For each line the time in nanoseconds since 1970, until there are no more."""
    while questions.readline():
        answers.write(b"%d\n" % time.time_ns())
        answers.flush()

"""`python -m tests.fuzz [--seconds N] [--first CASE] [--only CASE]`: damaged captures into all readers and decoders.

A case that breaks something is told with its number, by which it can be had again (`--only`); exit code 1 if there was
any. What must hold is written down in tests/support/captures/fuzzing.py.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.captures.fuzzing import case, check

TELL_EVERY_S = 60.0


def main() -> int:
    """Try cases until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="CASE", help="where to begin")
    parser.add_argument("--only", type=int, default=None, metavar="CASE", help="just this one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.only is not None:
            one = case(asked.only)
            say(f"case {asked.only}: {one.name}, {len(one.data)} bytes")
            check(one, Path(folder))
            return 0
        return fuzz(asked.first, asked.seconds, Path(folder))


def fuzz(number: int, seconds: float, folder: Path) -> int:
    """One case after the other; 1 if one was wrong."""
    began = told = time.monotonic()
    first, broken, by_name = number, 0, Counter[str]()
    slowest = (0.0, number)
    while (now := time.monotonic()) < began + seconds:
        one = case(number)
        try:
            check(one, folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the next case is tried
            broken += 1
            say(
                f"case {number} ({one.name}, {len(one.data)} bytes): {type(error).__name__}: {error}"
            )
        slowest = max(slowest, (time.monotonic() - now, number))
        by_name[one.name] += 1
        number += 1
        if now > told + TELL_EVERY_S:
            told = now
            say(f"{number - first} cases, {broken} wrong, {now - began:.0f} s")
    say(f"{number - first} cases from {first} on in {seconds:.0f} s, {broken} wrong")
    say(f"the slowest was {slowest[1]}: {slowest[0]:.2f} s")
    say(", ".join(f"{name}: {count}" for name, count in sorted(by_name.items())))
    return 1 if broken else 0


def say(text: str) -> None:
    """A line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

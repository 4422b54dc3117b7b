"""What guests write, kept as lines of our own log format, also across containers that were replaced."""

import datetime
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from testbed.backends.containers import Box
from testbed.backends.engine import LOOK_TIMEOUT_S, engine, engine_talk
from testbed.places import RunPlace

_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z ")


@engine_talk()
def save_output(guest: Box, run: RunPlace) -> None:
    """What the container has written so far; what another one of its node wrote before stays."""
    output = engine(LOOK_TIMEOUT_S).api.logs(guest.id, timestamps=True).decode(errors="replace")
    path = run.log(guest.node)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes().decode(errors="replace") if path.exists() else ""
    path.write_bytes(continued(before, list(output_lines(guest.node, output))).encode())


@engine_talk()
def last_line(guest: Box) -> str:
    """The last line that the container has written."""
    output = engine(LOOK_TIMEOUT_S).api.logs(guest.id, tail=1).decode(errors="replace")
    return output.strip()


def continued(before: str, lines: Sequence[dict[str, Any]]) -> str:
    """The log so far with these lines, of which it may have some already: what is older than they are stays."""
    if not lines:
        return before
    since = lines[0]["t"]
    older = [line for line in before.split("\n") if _time(line) < since]
    return "".join(f"{line}\n" for line in [*older, *map(json.dumps, lines)])


def _time(line: str) -> float:
    """When a line of the log was written; never, if it is torn."""
    try:
        return int(json.loads(line)["t"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def output_lines(node: str, output: str) -> Iterator[dict[str, Any]]:
    """What the engine kept of a guest's output, stamped, as lines of our own log format."""
    for line in output.split("\n"):
        stamp = _STAMP.match(line)
        if stamp is None:
            continue
        moment = datetime.datetime.fromisoformat(f"{stamp[1]}+00:00")
        nanoseconds = int(f"{stamp[2] or '':0<9}"[:9])
        yield {
            "t": int(moment.timestamp()) * 10**9 + nanoseconds,
            "node": node,
            "event": "output",
            "text": line[stamp.end() :].removesuffix("\r"),
        }

"""Build a large Skip Graph and reach the subscribers of one topic, in a process that does only this."""

import resource
import sys
import time

from testbed.converged import PATTERNS, converge, population
from testbed.converged.multicast import Strategy, distances

PATTERN = "a"  # a topic of 1,000, nearly all of them subscribers


def main() -> None:
    """Print seconds and bytes."""
    nodes = int(sys.argv[1])
    before = time.perf_counter()
    participants = population(*PATTERNS[PATTERN], nodes, seed=1)
    links = converge(participants.owners, participants.vectors)
    known = distances(participants, links, slice(0, 1), {Strategy.FLOOD})
    if known.to_subscribers(Strategy.FLOOD).max() >= participants.size:
        raise SystemExit("not all were reached")
    took = time.perf_counter() - before
    print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()

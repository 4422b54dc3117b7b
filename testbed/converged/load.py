"""How fairly methods spread their load over the nodes (Banno 2013, experiment 2)."""

from typing import Any

Row = dict[str, Any]


def measure_load(
    seed: int,
    trial: int = 0,
    topics: int = 100,
    subscribers: int = 1_000,
    publications: int = 1_000,
) -> tuple[list[Row], list[Row]]:
    """One trial: `topics` topics, each of one publisher and `subscribers` subscribers of its own; groups and totals.

    Publishers publish at intervals that follow a power law, from 10 ms (few) to 1,000 ms (many), until there were
    `publications` in all. The first list has a row for each method and each group of 1,000 nodes, those who forwarded
    most first: `method` (sg-tbps, scribe), `trial`, `node_rank_group`, and, as means over the group, `sent` (own
    publications), `received` (of its own topic), `forwarded`. The second has a row for each method: `method`, `trial`,
    `correlation` (over nodes, between received and forwarded), `without_forwards` (nodes that forwarded nothing),
    `nodes`.
    """
    raise NotImplementedError

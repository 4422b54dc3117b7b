"""Routing tables that adapt: ATM-TBPS and PATM-TBPS (Kita 2025, experiment 2)."""

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def measure_tables(
    subscribers: int,
    nodes: int,
    seed: int,
    trial: int = 0,
    table_size: int = 60,
    topics_per_node: float = 5.0,
    priorities: Sequence[int] = (1, 5),
) -> list[Row]:
    """One trial: `nodes` nodes, each in `topics_per_node` topics on average, each topic of one publisher.

    One row for each method and priority: `subscribers`, `nodes`, `trial`, `method` (atm-tbps, patm-tbps, psg-tbps,
    sg-tbps; atm-tbps and sg-tbps know no priority: 1), `priority`, `table_size`, `path`, `forwards` (messages of a
    publication, duplicates too), `one_hop` (share of the deliveries that took one hop), `delay_ms` (as the thesis
    estimates it).
    """
    raise NotImplementedError

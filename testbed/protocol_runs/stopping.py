"""Banno 2013, the experiment on stopping: messages over time while subscribers come and go."""

from collections.abc import Sequence
from typing import Any

from nodes.overlay.tbps.scribe import Scribe
from nodes.overlay.tbps.sg import SgTbps
from testbed.protocol_runs.plan import Stopping
from testbed.protocol_runs.topic_run import TopicRun

METHODS = (SgTbps.method, Scribe.method)
Rows = list[dict[str, Any]]


def measure_stopping(
    publishers: int,
    nodes: int,
    seed: int,
    trial: int = 0,
    methods: Sequence[str] = METHODS,
    multicast: str = "split",
    **more: int,
) -> tuple[Rows, Rows]:
    """Messages by kind and time, and totals, each method by its own protocol.

    `multicast` is that of SG-TBPS; `more` are other values of `plan.Stopping`.
    """
    plan = Stopping(publishers, nodes, seed, trial, **more)
    rows: Rows = []
    totals: Rows = []
    for method in methods:
        record = TopicRun(method, plan, multicast).run()
        rows += record.rows(method)
        totals.append(record.totals(method))
    return rows, totals

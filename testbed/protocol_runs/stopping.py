"""Banno 2013, the experiment on stopping: messages over time while subscribers come and go."""

from collections.abc import Sequence
from typing import Any

from nodes.overlay.tbps.sg import SgTbps
from testbed.protocol_runs.plan import Stopping
from testbed.protocol_runs.scribe_trees import ScribeModel
from testbed.protocol_runs.topic_run import TopicRun

SCRIBE = "scribe"
METHODS = (SgTbps.method, SCRIBE)
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
    """Messages by kind and time, and totals; SG-TBPS by its protocol, Scribe by a model of its tree.

    `more` are other values of `plan.Stopping`. Stopped publishers keep a publication for one interval, in case
    somebody is just coming (`sg.HOLD_S` is longer: what they send then was made when nobody was there).
    """
    plan = Stopping(publishers, nodes, seed, trial, **more)
    rows: Rows = []
    totals: Rows = []
    for method in methods:
        if method == SCRIBE:
            record = ScribeModel(plan).run()
        else:
            parameters = {"multicast": multicast, "hold_s": plan.interval_ms / 1000}
            record = TopicRun(method, plan, parameters).run()
        rows += record.rows(method)
        totals.append(record.totals(method))
    return rows, totals

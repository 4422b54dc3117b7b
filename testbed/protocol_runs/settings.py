"""How the nodes of each method begin the experiment: who stands in the graph already, and who looks after it.

SG-TBPS: a topic's nodes come by messages, in a graph in which all others stand. Nodes that stand take no part in the
topic. They answer and pass on what reaches them, but they look after nothing by themselves: else each would wake its
neighbours, and the whole overlay would run, only to find that all is as it was. The topic's nodes look after their
neighbours all the time, however long nothing changes.

Scribe: all nodes stand, the topic's too, since their keys are their numbers and no topic changes them. So each takes
itself for a root at once if it is one, and the graph needs no care. What a topic makes necessary is done by everybody,
at Scribe's own pace: nodes on the way of a join become part of the tree and renew it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodes.overlay.skipgraph.node import MOST_IDLE_TICKS, PERIOD_S
from nodes.overlay.tbps.scribe import Scribe
from testbed.converged import Population
from testbed.protocol_runs.plan import Stopping
from testbed.protocol_runs.standing import StandingGraph, all_nodes, all_topics_but

NEVER_S = 1e9  # between two ticks of a node that only stands
NO_CARE_S = MOST_IDLE_TICKS * PERIOD_S  # the longest idle period whose ticks are those of all


@dataclass(frozen=True, slots=True)
class Setting:
    """The graph as it is before the topic comes, and the parameters of the nodes in it."""

    method: str
    graph: StandingGraph
    of_standing: Mapping[str, Any]
    of_coming: Mapping[str, Any] = field(default_factory=dict)


def setting(method: str, people: Population, topic: int, plan: Stopping, multicast: str) -> Setting:
    """Stopped publishers keep a publication for one interval, in case somebody is just coming (`sg.HOLD_S` is longer:
    what they send then was made when nobody was there).
    """
    if method == Scribe.method:
        return Setting(method, all_nodes(people), of_standing={"idle_period_s": NO_CARE_S})
    chosen = {"multicast": multicast, "hold_s": plan.interval_ms / 1000}
    return Setting(
        method,
        all_topics_but(topic, people),
        of_standing={**chosen, "period_s": NEVER_S},
        of_coming={**chosen, "idle_period_s": PERIOD_S},
    )

"""Describe an overlay and its publication, for drawings, people and programs."""

from typing import Any

from testbed.graphs.simulate import DrawnPeer, SimulatedOverlay


def role(peer: DrawnPeer) -> str:
    """The role of a node in the topic; neither: it is in the overlay only, as in Scribe."""
    match peer.publishes, peer.subscribes:
        case True, True:
            return "both"
        case True, False:
            return "publisher"
        case False, True:
            return "subscriber"
    return "neither"


def short(peer: DrawnPeer) -> str:
    """p1, s4, b5, n6: role and number."""
    return f"{role(peer)[0]}{peer.number}"


def title(simulated: SimulatedOverlay) -> str:
    """In one line."""
    scenario = simulated.scenario
    asked, topic = scenario.publication, ""
    if scenario.names:
        topic = f", {asked.topic} from {scenario.names[asked.publisher]}"
    return (
        f"{scenario.method}{topic}, priority {asked.priority}: {_counted(len(simulated.hops))}, "
        f"{len(simulated.reached)} of {len(scenario.subscribers)} {_receivers(simulated)} reached"
    )


def outcome(simulated: SimulatedOverlay) -> str:
    """In one sentence, with the hops."""
    scenario, hops = simulated.scenario, simulated.reached.values()
    return (
        f"priority {scenario.publication.priority}: {_counted(len(simulated.hops))}, "
        f"{len(hops)} of {len(scenario.subscribers)} {_receivers(simulated)} reached "
        f"after {sum(hops) / max(len(hops), 1):.2f} hops on average"
    )


def _counted(messages: int) -> str:
    return f"{messages} message{'' if messages == 1 else 's'}"


def _receivers(simulated: SimulatedOverlay) -> str:
    """What subscribes: brokers do so for their clients."""
    return "brokers with subscribers" if simulated.scenario.names else "subscribers"


def document(simulated: SimulatedOverlay) -> dict[str, Any]:
    """For programs."""
    scenario = simulated.scenario
    asked = scenario.publication
    return {
        "overlay": scenario.method,
        "topic": asked.topic,
        "publisher": asked.publisher,
        "priority": asked.priority,
        "nodes": [
            {
                "number": peer.number,
                "name": scenario.names.get(peer.number),
                "role": role(peer),
                "vector": f"{peer.vector:016x}",
                "right": list(peer.right),
                "hops": simulated.reached.get(peer.number),
                **_area(simulated, peer.number),
            }
            for peer in simulated.peers
        ],
        "messages": [
            {
                "hop": hop.number,
                "src": hop.src,
                "dst": hop.dst,
                **({"toward": hop.toward} if hop.toward else {}),
            }
            for hop in simulated.hops
        ],
    }


def _area(simulated: SimulatedOverlay, number: int) -> dict[str, Any]:
    """Of a map's broker: its share, and which of the publication's points it owns."""
    if (area := simulated.areas.get(number)) is None:
        return {}
    return {"area": {"share": area.share, "matches": list(area.matches)}}

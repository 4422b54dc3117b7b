"""An overlay and its publication in words, for drawings, people and programs."""

from typing import Any

from testbed.graphs.simulate import DrawnPeer, Formed


def part(peer: DrawnPeer) -> str:
    """What a node is in the topic; neither: it stands in the overlay only, as in Scribe."""
    match peer.publishes, peer.subscribes:
        case True, True:
            return "both"
        case True, False:
            return "publisher"
        case False, True:
            return "subscriber"
    return "neither"


def short(peer: DrawnPeer) -> str:
    """p1, s4, b5, n6: part and number."""
    return f"{part(peer)[0]}{peer.number}"


def title(formed: Formed) -> str:
    """In one line."""
    company = formed.company
    asked, topic = company.publication, ""
    if company.names:
        topic = f", {asked.topic} from {company.names[asked.publisher]}"
    return (
        f"{company.method}{topic}, priority {asked.priority}: {_counted(len(formed.hops))}, "
        f"{len(formed.reached)} of {len(company.subscribers)} {_who(formed)} reached"
    )


def outcome(formed: Formed) -> str:
    """In one sentence, with the hops."""
    company, hops = formed.company, formed.reached.values()
    return (
        f"priority {company.publication.priority}: {_counted(len(formed.hops))}, "
        f"{len(hops)} of {len(company.subscribers)} {_who(formed)} reached "
        f"after {sum(hops) / max(len(hops), 1):.2f} hops on average"
    )


def _counted(messages: int) -> str:
    return f"{messages} message{'' if messages == 1 else 's'}"


def _who(formed: Formed) -> str:
    """Brokers subscribe for their guests."""
    return "brokers with subscribers" if formed.company.names else "subscribers"


def document(formed: Formed) -> dict[str, Any]:
    """For programs."""
    company = formed.company
    asked = company.publication
    return {
        "overlay": company.method,
        "topic": asked.topic,
        "publisher": asked.publisher,
        "priority": asked.priority,
        "nodes": [
            {
                "number": peer.number,
                "name": company.names.get(peer.number),
                "role": part(peer),
                "vector": f"{peer.vector:016x}",
                "right": list(peer.right),
                "hops": formed.reached.get(peer.number),
                **_area(formed, peer.number),
            }
            for peer in formed.peers
        ],
        "messages": [
            {
                "hop": hop.number,
                "src": hop.src,
                "dst": hop.dst,
                **({"toward": hop.toward} if hop.toward else {}),
            }
            for hop in formed.hops
        ],
    }


def _area(formed: Formed, number: int) -> dict[str, Any]:
    """Of a map's broker: its share, and which of the publication's points it owns."""
    if (area := formed.areas.get(number)) is None:
        return {}
    return {"area": {"share": area.share, "matches": list(area.matches)}}

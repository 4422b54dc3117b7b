"""A made-up run of five brokers in which a publication between brokers meets every case that the analysis knows.

  slope - a - b - c - east        e is linked to b and c, and takes part in no topic; d is linked to b.
              |                   c dies at 3.0 s; east moves to d at 6.0 s, slope to b at 7.5 s.
             west

time   topic  course of the publication
1.5 s  alert  over a, b, c to east, and to west
2.0 s  rain   over e, which only relays
3.0 s  alert  c dies: west gets it at once, east only after its move; then a second copy comes and is suppressed
7.0 s  alert  over a, b, d
8.0 s  alert  slope has moved: over b, d
8.5 s  alert  b does not forward it
9.0 s  alert  d does not forward it; west's application gets it twice
"""

from dataclasses import replace

from mesh_runs import MeshRun
from nodes.protocol import skipgraph_codec
from nodes.protocol.skipgraph_messages import Tell
from nodes.protocol.topic_messages import TopicControl, encode_control
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message
from synthetic_runs import MS

DEAD = ("c",)
LAST_OF_C_MS = 2_990


def known_mesh() -> MeshRun:
    """The run, not yet written."""
    mesh = MeshRun(
        brokers=("a", "b", "c", "d", "e"),
        sensors=("slope",),
        towns={"east": ("alert", "rain"), "west": ("alert",)},
    )
    for number, (client, server) in enumerate(
        # A client masks its frames. Between brokers, the client is the broker that dialled.
        (
            ("slope", "a"),
            ("a", "b"),
            ("c", "b"),
            ("east", "c"),
            ("west", "b"),
            ("d", "b"),
            ("e", "b"),
            ("c", "e"),
        )
    ):
        mesh.link(client, server, 50 * number)
    _control(mesh)
    first = mesh.publish("slope", 1_500, flags=CUSTODY)
    mesh.deliver(first, "slope", "a", "b", "c", "east", routing=b"part 1")
    mesh.deliver(first, "b", "west")
    for who, whom in (("east", "c"), ("c", "b"), ("west", "b"), ("b", "a"), ("a", "slope")):
        taken = Message(Kind.TAKEN, message_id=first.message_id, payload=b"\0\0\0\0")
        mesh.say(who, whom, taken, 1_700)
    rain = mesh.publish("slope", 2_000, topic="rain", priority=1, size=3_000)
    mesh.deliver(rain, "slope", "a", "b", "e", "c", "east")
    mesh.say("c", "b", Message(Kind.BEAT), LAST_OF_C_MS)
    _death(mesh)
    fourth = mesh.publish("slope", 7_000, flags=CUSTODY)
    mesh.deliver(fourth, "slope", "a", "b", "d", "east")
    mesh.deliver(fourth, "b", "west")
    mesh.link("slope", "b", 7_500)
    fifth = mesh.publish("slope", 8_000, flags=CUSTODY)
    mesh.deliver(fifth, "slope", "b", "d", "east")
    mesh.deliver(fifth, "b", "west")
    mesh.pass_on(mesh.publish("slope", 8_500), "slope", "b")
    last = mesh.publish("slope", 9_000)
    mesh.pass_on(last, "slope", "b", "d")
    mesh.hand(last, "west", mesh.deliver(last, "b", "west") + MS)
    return mesh


def _control(mesh: MeshRun) -> None:
    mesh.say("slope", "a", Message(Kind.ADVERTISE, topic="alert"), 1_100)
    mesh.say("a", "slope", Message(Kind.ADVERTISED, topic="alert"), 1_150)
    for word in (TopicControl.STOP, TopicControl.GO, TopicControl.GO):
        told = skipgraph_codec.encode(Tell(encode_control(word, "alert")))
        mesh.say("b", "a", Message(Kind.OVERLAY, payload=told), 1_200)
    mesh.say("a", "b", Message(Kind.BEAT, payload=b"?"), 1_300)
    mesh.say("b", "a", Message(Kind.BEAT), 1_320)
    mesh.log("a", 1_210, "withheld", id="0000000600000009", topic="alert")


def _death(mesh: MeshRun) -> None:
    """c dies just before a publication; its client attaches to another broker, and gets what it missed."""
    third = mesh.publish("slope", 3_000, flags=CUSTODY)
    mesh.pass_on(third, "slope", "a", "b")
    mesh.deliver(third, "b", "west")
    mesh.log("b", 3_500, "disconnect", peer="c", reason="silent", queued=1)
    mesh.log("b", 3_600, "lost-peer", peer="c")
    mesh.link("east", "d", 6_000)
    mesh.say("east", "d", Message(Kind.MISSED, topic="alert", payload=b"\0" * 16), 6_070)
    mesh.pass_on(third, "b", "d", at_ms=6_100, routing=b"part 2")
    mesh.deliver(third, "d", "east")
    again = replace(third, flags=CUSTODY | REPEATED)
    mesh.hand(again, "east", mesh.pass_on(again, "d", "east", at_ms=6_300), "duplicate")

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

from nodes.protocol import skipgraph_codec
from nodes.protocol.skipgraph_messages import Notify
from nodes.protocol.topic_messages import TopicControl, encode_control
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message
from support.runs.broker_runs import BrokerRun
from support.runs.star_runs import MS

DEAD = ("c",)
LAST_OF_C_MS = 2_990


def known_broker_run() -> BrokerRun:
    """The run, not yet written."""
    run = BrokerRun(
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
        run.link(client, server, 50 * number)
    _control(run)
    first = run.publish("slope", 1_500, flags=CUSTODY)
    run.deliver(first, "slope", "a", "b", "c", "east", routing=b"part 1")
    run.deliver(first, "b", "west")
    for src, dst in (("east", "c"), ("c", "b"), ("west", "b"), ("b", "a"), ("a", "slope")):
        acknowledgement = Message(Kind.ACK, message_id=first.message_id, payload=b"\0\0\0\0")
        run.send(src, dst, acknowledgement, 1_700)
    rain = run.publish("slope", 2_000, topic="rain", priority=1, size=3_000)
    run.deliver(rain, "slope", "a", "b", "e", "c", "east")
    run.send("c", "b", Message(Kind.HEARTBEAT), LAST_OF_C_MS)
    _death(run)
    fourth = run.publish("slope", 7_000, flags=CUSTODY)
    run.deliver(fourth, "slope", "a", "b", "d", "east")
    run.deliver(fourth, "b", "west")
    run.link("slope", "b", 7_500)
    fifth = run.publish("slope", 8_000, flags=CUSTODY)
    run.deliver(fifth, "slope", "b", "d", "east")
    run.deliver(fifth, "b", "west")
    run.pass_on(run.publish("slope", 8_500), "slope", "b")
    last = run.publish("slope", 9_000)
    run.pass_on(last, "slope", "b", "d")
    run.hand(last, "west", run.deliver(last, "b", "west") + MS)
    return run


def _control(run: BrokerRun) -> None:
    run.send("slope", "a", Message(Kind.ADVERTISE, topic="alert"), 1_100)
    run.send("a", "slope", Message(Kind.ADVERTISED, topic="alert"), 1_150)
    for verb in (TopicControl.STOP, TopicControl.GO, TopicControl.GO):
        payload = skipgraph_codec.encode(Notify(encode_control(verb, "alert")))
        run.send("b", "a", Message(Kind.OVERLAY, payload=payload), 1_200)
    run.send("a", "b", Message(Kind.HEARTBEAT, payload=b"?"), 1_300)
    run.send("b", "a", Message(Kind.HEARTBEAT), 1_320)
    run.log("a", 1_210, "withheld", id="0000000600000009", topic="alert")


def _death(run: BrokerRun) -> None:
    """c dies just before a publication; its client attaches to another broker, and gets what it missed."""
    third = run.publish("slope", 3_000, flags=CUSTODY)
    run.pass_on(third, "slope", "a", "b")
    run.deliver(third, "b", "west")
    run.log("b", 3_500, "disconnect", peer="c", reason="silent", queued=1)
    run.log("b", 3_600, "lost-peer", peer="c")
    run.link("east", "d", 6_000)
    run.send("east", "d", Message(Kind.MISSED, topic="alert", payload=b"\0" * 16), 6_070)
    run.pass_on(third, "b", "d", at_ms=6_100, routing=b"part 2")
    run.deliver(third, "d", "east")
    again = replace(third, flags=CUSTODY | REPEATED)
    run.hand(again, "east", run.pass_on(again, "d", "east", at_ms=6_300), "duplicate")

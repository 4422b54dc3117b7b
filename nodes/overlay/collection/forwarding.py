"""Forwarding of readings to the collector, from broker to broker (Kawakami 2016).

The rule of the collection (`rules`) determines the next broker. Readings for the same next broker leave as one message
(`aggregation`). The collector delivers a reading and forwards it to other subscribers, by a multicast from its own key.
Where no next broker is known (a broker has left, neighbours are dead), the multicast of SG-TBPS serves instead: it
finds the subscribers.

An alert does not wait for readings: a publication with custody, or of level 4 or 5, travels alone, at once, and as in
SG-TBPS.
"""

from collections.abc import Container
from dataclasses import replace

from nodes.overlay.collection.aggregation import Bundles, Stream, stream_of, streams_of
from nodes.overlay.collection.rules import Settings, Way
from nodes.overlay.topics.base import Send
from nodes.overlay.topics.forwarding import Forwarding, RangeMulticast
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.collection_messages import (
    Answer,
    ReadingControl,
    Toward,
    encode_control,
    routing_section,
)
from nodes.protocol.skipgraph_messages import Contact, Multicast
from nodes.protocol.skipgraph_messages import Way as Spreading
from nodes.protocol.topic_messages import TopicControl
from nodes.protocol.wire import CUSTODY, Kind, Message

ALONE_FROM = 4  # levels that never wait
MOST_HOPS = 200  # more: the route is a cycle, or nearly so


def travels_alone(publication: Message) -> bool:
    """Whether the publication is an alert, and does not wait for readings."""
    return bool(publication.flags & CUSTODY) or publication.priority >= ALONE_FROM


class Departures:
    """The outgoing messages of a broker: a reading may wait for others to the same next broker."""

    def __init__(self, number: int, settings: Settings, membership: Membership) -> None:
        self._membership = membership
        self._aggregate = settings.aggregate
        self.bundles = Bundles(number, settings.wait_s, self._expecting)

    def send(self, node: int, message: Message, context: Context) -> None:
        """Send a message, at once or with the next bundle."""
        if not self._aggregate or message.kind is not Kind.PUBLISH or travels_alone(message):
            context.do(Send(node, message))
            return
        for each in self.bundles.add(node, message, context.now):
            context.do(Send(node, each))

    def send_ready(self, at: float, context: Context) -> None:
        """Send the bundles for which no more readings are expected at this time."""
        for node, message in self.bundles.leaving(at):
            context.do(Send(node, message))

    def send_everything(self, context: Context) -> None:
        for node, message in self.bundles.everything():
            context.do(Send(node, message))

    def _expecting(
        self, topic: str, there: Container[int], since: float, until: float, now: float
    ) -> bool:
        stream = stream_of(self._membership, topic)
        return stream is not None and stream.schedule.expects(there, since, until, now)


class ReadingForwarding(Forwarding):
    """Forwards readings by the rule of the collection, and alerts as SG-TBPS does."""

    def __init__(
        self,
        settings: Settings,
        graph: TopicGraph,
        membership: Membership,
        stop_go: StopGo,
        departures: Departures,
        spreading: Spreading,
    ) -> None:
        self._way = settings.way
        self._rule = settings.rule
        self._graph = graph
        self._membership = membership
        self._stop_go = stop_go
        self._departures = departures
        self._multicast = RangeMulticast(graph, spreading)

    def send(self, message: Message, context: Context) -> None:
        stream = stream_of(self._membership, message.topic)
        if travels_alone(message):
            self._multicast.send(message, context)
        elif self._way is Way.PULL and stream is not None and Role.SUBSCRIBER not in stream.keys:
            stream.pending.append(message)  # until the collector asks
        else:
            self.go_on(message, Toward(self._graph.number), context)

    def send_again(self, multicast: Multicast, message: Message, context: Context) -> None:
        self._multicast.send_again(multicast, message, context)

    def find_way_again(self, message: Message, context: Context) -> None:
        """The node to which this reading was sent, with its routing section, is dead: send it by another route."""
        section = routing_section(message)
        origin = section.origin if isinstance(section, Toward) else self._graph.number
        unsent = replace(message, routing=b"", hops=message.hops - 1)
        self.go_on(unsent, Toward(origin), context)

    def on_peer_lost(self, number: int, context: Context) -> None:
        for stream in streams_of(self._membership):
            if stream.collector == number:
                stream.collector = None

    # Readings

    def on_reading(
        self, sender: int, reading: Message, section: Toward | Answer, context: Context
    ) -> None:
        """A reading has come from another broker."""
        origin = section.origin if isinstance(section, Toward) else sender
        if self._way is Way.SERVER:
            self._announce_collector(sender, origin, reading.topic, context)
        self.go_on(reading, Toward(origin), context)

    def go_on(self, reading: Message, section: Toward, context: Context) -> None:
        """Forward a reading by one step from here."""
        stream = stream_of(self._membership, reading.topic)
        if stream is None or not stream.keys or reading.hops > MOST_HOPS:
            self._multicast.send(reading, context)
            return
        stream.schedule.record(reading.origin, reading.published_ns, context.now)
        if Role.SUBSCRIBER in stream.keys:
            self._multicast.send(reading, context)
            return
        stop = self._next_stop(stream, section)
        if stop is not None:
            self.pass_on(stop, reading, section, context)
        elif self._stop_go.has_subscribers(stream) is not False:
            self._multicast.send(reading, context)
        elif section.origin == self._graph.number:
            self._stop_go.look(stream, context)
        else:
            self._stop_go.notify(section.origin, TopicControl.STOP, reading.topic, context)

    def pass_on(
        self, node: int, reading: Message, section: Toward | Answer, context: Context
    ) -> None:
        """Send a reading to this broker."""
        message = replace(reading.forwarded(), routing=section.written())
        self._departures.send(node, message, context)

    def _next_stop(self, stream: Stream, section: Toward) -> int | None:
        """The node to which a reading goes from here; None: no link leads on."""
        collector = stream.collector
        if collector is not None and section.origin == self._graph.number:
            return collector
        peer = self._graph.node.peer(stream.keys[Role.PUBLISHER])
        if peer is None or not peer.in_ring:
            return None
        links = {one.key: one for one in peer.neighbours() if self._is_stop(one, stream.name)}
        beyond = edge(stream.name, Role.SUBSCRIBER)
        goal = min((key for key in links if key >= beyond), default=beyond)
        stop = self._rule.next_stop(peer.key, goal, links)
        return None if stop is None else links[stop].node

    def _is_stop(self, contact: Contact, topic: str) -> bool:
        own = contact.node == self._graph.number
        takes_part = any(stands_in(contact.key, topic, role) for role in Role)
        return takes_part and not own and not self._graph.suspects(contact.node)

    # Directly to the collector

    def _announce_collector(self, sender: int, origin: int, topic: str, context: Context) -> None:
        """Correct the origin broker, if its reading came by other brokers, or came directly to the wrong one."""
        stream = stream_of(self._membership, topic)
        collects = stream is not None and Role.SUBSCRIBER in stream.keys
        if origin != self._graph.number and collects != (sender == origin):
            control = ReadingControl.HERE if collects else ReadingControl.NOT_HERE
            self._graph.notify(origin, encode_control(control, topic), context)

    def on_collector(self, sender: int, control: ReadingControl, topic: str) -> None:
        """Another broker reports whether it collects the topic."""
        stream = stream_of(self._membership, topic)
        if stream is None:
            return
        if control is ReadingControl.HERE:
            stream.collector = sender
        elif control is ReadingControl.NOT_HERE and stream.collector == sender:
            stream.collector = None

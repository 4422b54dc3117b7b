"""Readings of many sensors to one collector, over a Skip Graph in the order of their periods (Kawakami 2016).

A broker's key among the publishers of a topic contains the period of its clients, which it learns from what they
publish (`aggregation`). Subscribers' keys follow behind the publishers', and the first subscriber is the collector.
Brokers send readings as they arrive (`forwarding`), or when the collector requests them (`pulling`). All else is as in
SG-TBPS.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from nodes.overlay.collection.aggregation import Stream, stream_of
from nodes.overlay.collection.forwarding import Departures, ReadingForwarding, travels_alone
from nodes.overlay.collection.pulling import Pulling, is_collect
from nodes.overlay.collection.rules import PARAMETERS, settings
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics import method
from nodes.overlay.topics.base import Action, Place
from nodes.overlay.topics.forwarding import way_of
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.participants import Participants
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.parameters import check_known
from nodes.protocol.collection_messages import (
    Answer,
    Toward,
    decode_control,
    is_reading_control,
    routing_section,
)
from nodes.protocol.joined import split
from nodes.protocol.overlay_messages import read, written
from nodes.protocol.skipgraph_messages import Multicast
from nodes.protocol.wire import Kind, Message, WireError


class Collection(method.SkipGraphMethod):
    """A node of a collection."""

    method = "collection"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        check_known(self.method, parameters, (*method.PARAMETERS, *PARAMETERS))
        chosen = settings(self.method, parameters)
        graph = TopicGraph(self.method, place, parameters, random)
        membership = Membership(graph, lambda name: Stream(name, order=chosen.order))
        stop_go = StopGo(self.method, parameters, graph, membership, self._forward)
        self.departures = Departures(place.number, chosen, membership)
        self._readings = ReadingForwarding(
            chosen, graph, membership, stop_go, self.departures, way_of(parameters)
        )
        self._pulling = Pulling(chosen, graph, membership, self._readings)
        super().__init__(graph, membership, self._readings, stop_go, Participants())
        self._readings_at = 0.0  # the last call in which readings may have arrived

    # Requests of the layer above

    def publish(self, message: Message, now: float) -> list[Action]:
        self._readings_at = now
        context = self._context(now)
        stream = stream_of(self.membership, message.topic)
        if stream is not None and stream.advertised and not travels_alone(message):
            stream.own.record(message.origin, message.published_ns, now)
            if stream.learn_period(now):
                self._settle(stream, context)
        return [*context.actions, *super().publish(message, now)]

    def leave(self, now: float) -> list[Action]:
        self._readings_at = now
        context = self._context(now)
        self._pulling.leave(context)
        self._done(context)
        self.departures.send_everything(context)
        return [*context.actions, *super().leave(now)]

    @property
    def left(self) -> bool:
        return super().left and not self.departures.bundles

    def serve_again(self, message: Message, now: float) -> list[Action]:
        if not isinstance(routing_section(message), Toward | Answer):
            return super().serve_again(message, now)
        context = self._context(now)
        self._readings.find_way_again(message, context)
        return self._done(context)

    # Events

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        self._readings_at = now
        context = self._context(now, sender)
        with context.refusing(sender):
            publications = split(message) if message.kind is Kind.JOINED else [message]
            for publication in publications:
                self._on_part(sender, publication, context)
        return self._done(context)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        self._readings_at = now
        self._pulling.on_peer_lost(number)
        actions = super().on_peer_lost(number, now)
        for publication in self.departures.bundles.give_back(number):
            actions += self.serve_again(publication, now)
        return actions

    def next_deadline(self) -> float | None:
        moments = (
            super().next_deadline(),
            self.departures.bundles.next_deadline(),
            self._pulling.next_deadline(),
        )
        return min([at for at in moments if at is not None], default=None)

    def on_deadline(self, now: float) -> list[Action]:
        self._readings_at = now
        context = self._context(now)
        self._pulling.on_deadline(context)
        return [*context.actions, *super().on_deadline(now)]

    # One call

    def _done(self, context: Context) -> list[Action]:
        """Send the bundles that wait for nothing more, as of the last call in which readings may have arrived.

        A subscription or an advertisement in between makes no sensor late.
        """
        self._pulling.answer_complete(self._readings_at, context)
        self.departures.send_ready(self._readings_at, context)
        return super()._done(context)

    def _forward(self, message: Message, context: Context) -> None:
        self._readings.send(message, context)

    def _on_keys(self, topic: Topic, context: Context) -> None:
        super()._on_keys(topic, context)
        self._pulling.on_keys(topic, context)

    def _on_part(self, sender: int, message: Message, context: Context) -> None:
        """Handle a message, or one publication of a bundle."""
        section = routing_section(message)
        if section is None:
            context.perform(self.graph.on_message(sender, read(message), context.now))
        elif travels_alone(message):
            raise WireError(f"a publication of level {message.priority} on a reading's way")
        else:
            reading = replace(message, routing=b"")
            if not self._pulling.on_answer(sender, reading, section, context):
                self._readings.on_reading(sender, reading, section, context)

    def _on_action(self, action: graph.Action, context: Context) -> None:
        match action:
            case graph.Delivered(_, Multicast(body=bytes() as body) as question) if is_collect(
                body
            ):
                self._pulling.on_question(question, body, context)
            case graph.Send(node, message):
                if isinstance(message, Multicast) and is_collect(message.body):
                    self._pulling.on_passed_on(message, node, context)
                self.departures.send(node, written(message, self.number), context)
            case graph.Notified(sender, body) if is_reading_control(body):
                control, what = decode_control(body)
                if isinstance(what, Answer):
                    self._pulling.on_nothing(sender, what)
                else:
                    self._readings.on_collector(sender, control, what)
            case _:
                super()._on_action(action, context)

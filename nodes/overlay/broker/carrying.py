"""Publications at a broker: handed to its guests, remembered, and answered for."""

from collections import OrderedDict
from math import inf

from nodes.overlay.base import Note, Peer, Refuse, Send
from nodes.overlay.broker.attending import Attending
from nodes.overlay.broker.catching_up import CatchingUp
from nodes.overlay.broker.duties import Duties, Duty, copy_of
from nodes.overlay.broker.memory import Memory
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.custody import has_custody, taken
from nodes.overlay.reliability.dedup import Seen
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.interests import parse
from nodes.protocol.wire import Message, WireError

MAX_SOURCES = 4096  # publications whose guest is remembered


class Carrying(Attending):
    """A broker's guests, and the publications that come from them and to them."""

    def __init__(
        self, number: int, node: TopicNode, by_area: bool, linger_s: float, retain_s: float
    ) -> None:
        super().__init__(number, node, by_area, linger_s)
        self._duties = Duties(number, retain_s)
        self._memory = Memory(retain_s)
        self._catching_up = CatchingUp(self._memory)
        self._seen = Seen()
        self._sources: OrderedDict[int, Peer] = OrderedDict()  # message id -> guest
        self._waiting: dict[str, list[tuple[Message, Duty]]] = {}  # for the advertisement
        self._cause: Duty | None = None  # because of which the topic method acts

    def _because(self, duty: Duty | None, actions: list[topics.Action]) -> None:
        """Do what the topic method wants, as a part of this duty."""
        before, self._cause = self._cause, duty
        self._perform(actions)
        self._cause = before

    # From guests and other brokers

    def _on_publication(self, guest: Peer, message: Message) -> None:
        """A guest publishes."""
        self._advertise(guest, message.topic)
        self._sources[message.message_id] = guest
        while len(self._sources) > MAX_SOURCES:
            self._sources.popitem(last=False)
        if not has_custody(message):
            self._perform(self._node.publish(message, self._now))
        elif not self._is_known(guest, message):
            duty = self._open(guest, message, own=True)
            if message.topic in self._goes:
                self._because(duty, self._node.publish(message, self._now))
            elif duty is not None:
                self._duties.hold(duty, inf)
                self._waiting.setdefault(message.topic, []).append((message, duty))

    def _advertised(self, topic: str) -> None:
        super()._advertised(topic)
        for message, duty in self._waiting.pop(topic, []):
            self._duties.release(duty)
            self._because(duty, self._node.publish(message, self._now))

    def _publish_again(self, since: float) -> None:
        """What own guests have published since then."""
        for message in self._memory.published_since(since, self._now):
            if message.topic in self._goes:
                source = self._sources.get(message.message_id)
                duty = self._duties.of_guest(message.message_id, source)
                duty = duty or self._duties.open(None, message, self._now)
                self._because(duty, self._node.publish(message, self._now))

    def _on_part(self, peer: Peer, number: int, message: Message) -> None:
        """Another broker passes a publication on, with a part of its way."""
        duty = None
        if has_custody(message):
            if self._is_known(peer, message):
                return
            duty = self._open(peer, message)
        actions = self._node.on_message(number, message, self._now)
        if duty is not None and any(isinstance(action, topics.Refuse) for action in actions):
            self._duties.drop(duty)
            duty = None
        self._because(duty, actions)

    def _on_repeated(self, peer: Peer, message: Message) -> None:
        """It was published before: for the memory, and for those guests here who may have missed it."""
        if not has_custody(message):
            raise WireError("a repeated publication without custody")
        if self._is_known(peer, message):
            return
        duty = self._open(peer, message)
        if self._seen.add(message.message_id):
            receivers = self._subscriptions.wanting(message)
        else:
            receivers = self._catching_up.lacking(message, self._now)
        self._hand_out(message.forwarded(), [each for each in receivers if each != peer], duty)

    def _is_known(self, peer: Peer, message: Message) -> bool:
        """Whether this copy came before; if its duty is done, it is answered at once."""
        copy = copy_of(peer, message)
        if self._duties.is_closed(copy):
            self._out.append(Send(peer, taken(self._number, message)))
            return True
        return self._duties.is_open(copy)

    def _open(self, peer: Peer, message: Message, own: bool = False) -> Duty | None:
        self._memory.remember(message, self._now, own)
        duty = self._duties.open(peer, message, self._now)
        if duty is None:
            self._out.append(Note("no-room", {"id": f"{message.message_id:016x}", "peer": peer}))
        return duty

    # To guests and other brokers

    def _deliver(self, message: Message) -> None:
        """The overlay has brought a publication."""
        # Only a publication with custody may have come before, as a repetition.
        if has_custody(message) and not self._seen.add(message.message_id):
            return
        source = self._sources.get(message.message_id)
        guests = [each for each in self._subscriptions.wanting(message) if each != source]
        self._hand_out(message.forwarded(), guests, self._cause)

    def _hand_out(self, message: Message, guests: list[Peer], duty: Duty | None) -> None:
        for guest in guests:
            self._out.append(Send(guest, message))
            self._catching_up.sent(guest, message)
            self._pass(guest, message, duty)

    def _pass(self, peer: Peer, message: Message, duty: Duty | None) -> None:
        """A copy goes out; if nothing that came in just now is the cause, it is of a publication that waited."""
        if not has_custody(message):
            return
        if duty is None and self._duties.awaits(copy_of(peer, message)):
            return  # sent again: no second duty waits for the same answer, or it might wait for itself
        if duty is None and (duty := self._duties.of(message.message_id)) is not None:
            self._duties.release(duty)
        duty = duty or self._duties.open(None, message, self._now)
        if duty is not None:
            self._duties.passed(duty, peer, message, self._now)

    def _withheld(self, message: Message, until: float) -> None:
        """Nobody subscribes; until then it may be sent yet, if somebody comes."""
        details = {"id": f"{message.message_id:016x}", "topic": message.topic}
        self._out.append(Note("withheld", details))
        if self._cause is not None:
            self._duties.hold(self._cause, until)

    # What was missed

    def _on_missed(self, guest: Peer, message: Message) -> None:
        text, words = message.topic, message.payload
        if not self._subscriptions.has(guest, text):
            raise WireError("MISSED without a subscription")
        interest = parse(text)
        channel = self._subscriptions.channel(interest)
        self._catching_up.begin(guest, interest, channel, words, self._now)
        self._serve_from_memory(channel)
        self._ask_again()

    def _serve_from_memory(self, channel: str) -> None:
        """Those who are catching up."""
        for guest in self._catching_up.guests(channel, self._now):
            for missing in self._catching_up.missing(guest, channel, self._now):
                self._out.append(Send(guest, missing))
                self._catching_up.sent(guest, missing)

    def _ask_again(self) -> None:
        """The publishers' brokers, for channels whose time has come.

        Until the own subscription stands, something could be missed again: then they are asked when it does. What
        was passed on here before that was not delivered, but is remembered.
        """
        for channel in self._catching_up.due(self._now):
            self._serve_from_memory(channel)
            if channel in self._stands:
                subscriptions = len(self._subscriptions.of_channel(channel))
                words = self._catching_up.words(channel, subscriptions, self._now)
                self._catching_up.asked(channel, self._now)
                self._perform(self._node.ask(channel, words, self._now))

    def _ask_for_all(self, first: float) -> None:
        """For all that guests subscribe to, from this moment on."""
        for channel in self._subscriptions.channels():
            self._catching_up.ask(channel, first)

    def _subscribed(self, channel: str) -> None:
        super()._subscribed(channel)
        if self._catching_up.guests(channel, self._now):
            self._catching_up.ask(channel, self._now)

    def _restored(self, channel: str, first: float) -> None:
        """The subscription had lost its place: what was missed meanwhile is asked for, from this moment on."""
        if self._subscriptions.has_channel(channel):
            self._catching_up.ask(channel, first)

    def _answer(self, peer: Peer, asked: topics.Asked) -> None:
        """Another broker wants what it has missed."""
        try:
            there, interest = digest.decode(asked.words), parse(asked.topic)
        except WireError as error:
            self._out.append(Refuse(peer, str(error)))
            return
        for missing in self._memory.missing(interest, there, self._now):
            self._out.append(Send(peer, missing))
            self._pass(peer, missing, self._duties.open(None, missing, self._now))

    # Guests that go

    def _unsubscribe(self, guest: Peer, text: str) -> None:
        super()._unsubscribe(guest, text)
        channel = self._subscriptions.channel(parse(text))
        if not self._subscriptions.has_channel(channel):
            self._catching_up.stop(channel)

    def _guest_gone(self, guest: Peer) -> None:
        super()._guest_gone(guest)
        self._catching_up.forget(guest)
        self._duties.take_from(guest)

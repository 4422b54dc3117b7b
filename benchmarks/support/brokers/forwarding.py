"""What it costs a broker to pass on small messages, and what that adds to their delay."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.support.brokers.lone import CARD, Lone, mosquitto, our_broker
from benchmarks.support.brokers.mqtt_speech import MqttSpeech
from benchmarks.support.brokers.our_speech import OurSpeech
from benchmarks.support.brokers.pair import Pair, Speech, Stuck
from benchmarks.support.delivery.processor import processor_s
from testbed.errors import TestbedError

PAYLOAD_BYTES = 100
WARM_UP_S = 0.5
ROUTINE, URGENT = 1, 5


@dataclass(frozen=True, slots=True)
class Way:
    """A broker with its settings, and how to talk with it."""

    name: str
    start: Callable[[Path], AbstractContextManager[Lone]]
    talk: Callable[[Lone], AbstractContextManager[Speech]]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What was measured."""

    name: str
    per_processor_s: float  # messages for each second of the broker's processor time
    per_s: float  # messages a second, by the clock
    delay_s: float  # of a single message, the median, from the publisher's write to the subscriber's read


def ours(name: str, method: str, delivery: str, level: int, custody: bool) -> Way:
    """A broker of ours."""

    @contextmanager
    def talk(lone: Lone) -> Iterator[Speech]:
        speech = OurSpeech(lone.address, CARD, delivery, level, custody, PAYLOAD_BYTES)
        try:
            yield speech
        finally:
            speech.close()

    return Way(name, lambda folder: our_broker(folder, method, delivery), talk)


def theirs(name: str, qos: int) -> Way:
    """Mosquitto."""

    @contextmanager
    def talk(lone: Lone) -> Iterator[Speech]:
        speech = MqttSpeech(lone.address, qos, PAYLOAD_BYTES)
        try:
            yield speech
        finally:
            speech.close()

    return Way(name, mosquitto, talk)


def forwarded(way: Way, folder: Path, seconds: float, singles: int) -> Forwarded:
    """As fast as it goes for so many seconds; then so many single messages."""
    with way.start(folder / way.name) as lone, way.talk(lone) as speech:
        pair = Pair(speech)
        try:
            pair.blast(WARM_UP_S)
            before = processor_s(lone.pid)
            count, took_s = pair.blast(seconds)
            spent_s = processor_s(lone.pid) - before
            delays = pair.delays(singles)
        except Stuck as stuck:
            raise TestbedError(f"{way.name}: {stuck}") from stuck
    return Forwarded(way.name, count / spent_s, count / took_s, median(delays))

"""Questions of a collector at one node: it answers the first sender of a question, once all answers are there."""

from nodes.overlay.collection.pulling import Rounds
from nodes.protocol.collection_messages import Answer, routing_section
from nodes.protocol.wire import Kind, Message
from support.overlays.collection_network import CollectionNetwork

QUESTION = Answer(collector=0, question=7)


def reading(number: int) -> Message:
    return Message(Kind.PUBLISH, 1, message_id=number, topic="water")


def test_a_question_is_answered_when_all_its_receivers_have_answered() -> None:
    rounds = Rounds(wait_s=2.0)
    rounds.record(QUESTION, 5, now=1.0)
    rounds.asked(QUESTION, [reading(1)])
    rounds.passed_on(QUESTION, 6)
    assert rounds.complete(1.5) == []
    assert rounds.answered(QUESTION, 6, [reading(2)]) is None
    ((question, one),) = rounds.complete(1.5)
    assert (question, one.asker, one.readings) == (QUESTION, 5, [reading(1), reading(2)])


def test_a_node_that_does_not_answer_in_time_is_skipped_and_its_late_answer_forwarded() -> None:
    rounds = Rounds(wait_s=2.0)
    rounds.record(QUESTION, 5, now=1.0)
    rounds.asked(QUESTION, [])
    rounds.passed_on(QUESTION, 6)
    assert rounds.next_deadline() == 3.0
    assert len(rounds.complete(3.0)) == 1
    assert rounds.answered(QUESTION, 6, [reading(2)]) == 5


def test_a_node_that_only_forwards_a_question_answers_its_first_sender_only() -> None:
    rounds = Rounds(wait_s=2.0)
    rounds.record(QUESTION, 5, now=1.0)
    rounds.passed_on(QUESTION, 6)
    rounds.record(QUESTION, 6, now=1.2)  # that node sends the part for this node back
    rounds.asked(QUESTION, [reading(1)])
    rounds.answered(QUESTION, 6, [])
    ((_, one),) = rounds.complete(1.3)
    assert one.asker == 5


def test_no_answer_goes_in_circles_while_brokers_begin_and_change_keys() -> None:
    network = CollectionNetwork(0, {"way": "pull", "aggregate": False, "wait_s": 0.3}, slowest=0.8)
    for number in range(8):
        network.start(number)
    network.collect(0)
    network.run(20)
    published = []
    for number in range(1, 8):
        network.begin(number)
        published += network.play(dict.fromkeys(range(1, number + 1), 0.5 + number / 10), 6)
    network.run(10)
    assert all(network.receivers(identity) == {0} for identity in published)
    assert set(network.delivered.values()) == {1}
    sent = [message for _, _, each in network.readings_sent() for message in each]
    assert max(message.hops for message in sent if routing_section(message)) <= 8


def test_readings_kept_for_a_question_are_sent_when_the_broker_begins_to_collect_itself() -> None:
    network = CollectionNetwork(1, {"way": "pull", "wait_s": 2.0}, slowest=0.02)
    for number in range(3):
        network.start(number)
    network.collect(0)
    network.run(20)
    network.begin(1)
    network.run(2.5)  # the collector asked half a second ago
    network.collect(1)
    identity = network.publish(1)
    network.run(10)
    assert 0 in network.receivers(identity)
    assert set(network.delivered.values()) == {1}

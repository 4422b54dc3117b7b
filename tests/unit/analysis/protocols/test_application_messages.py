"""Application messages in captures of any origin, each once, on whichever hop and link it was captured."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors import AnalysisError
from analysis.protocols.application_messages import application_messages, mqtt_publications
from support.captures import mqtt_packets as writing
from support.captures.mqtt_packets import MqttMessage
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host

SAMPLE = Path(__file__).parents[4] / "captures" / "sample"
SENSOR = Host("sensor", 2, "10.0.0.2")
BROKER = Host("broker", 1, "10.0.0.1")
SIREN = Host("siren", 3, "10.0.0.3")
ALERT = MqttMessage("alerts/slope", b"it moves", qos=1, packet_id=7)


def conversation(captures: Captures, broker: Host, sensor: Host, siren: Host) -> None:
    """The sensor publishes one message twice and another one once; the broker forwards all three."""
    inward = Connection(captures, sensor, broker, ports=(40000, 1883))
    outward = Connection(captures, siren, broker, ports=(40001, 1883))
    for connection, client in ((inward, sensor), (outward, siren)):
        connection.open(START_NS, b"", b"")
        connection.send(client, writing.connect(4), START_NS + MS)
        connection.send(broker, writing.connack(4), START_NS + 2 * MS)
    publications = [ALERT, MqttMessage("readings", b"17"), ALERT]
    for place, message in enumerate(publications):
        at_ns = START_NS + (100 + 50 * place) * MS
        inward.send(sensor, writing.publish(4, message), at_ns)
        outward.send(broker, writing.publish(4, message), at_ns + 20 * MS)


def test_publications_forwarded_by_an_mqtt_broker_count_once_with_their_publishers_time(tmp_path):
    captures = Captures()
    conversation(captures, BROKER, SENSOR, SIREN)
    for link in ("broker", "sensor", "siren"):
        (tmp_path / f"{link}.pcap").write_bytes(captures.pcap(link))
    found = application_messages([str(tmp_path)], {})
    reported = [(one.topic, one.size, one.qos, one.origin) for one in found.messages]
    alert, reading = ("alerts/slope", 8, 1, "10.0.0.2"), ("readings", 2, 0, "10.0.0.2")
    assert reported == [alert, reading, alert]
    times = [one.at_ns for one in found.messages]
    assert [(at - times[0]) // MS for at in times] == [0, 50, 100]
    assert (found.files, found.incomplete) == (3, 0)


def test_a_broker_and_its_clients_on_one_address_are_distinguished(tmp_path):
    """All three have the loopback address of one machine."""
    here = [Host(name, 1, "127.0.0.1") for name in ("broker", "sensor", "siren")]
    captures = Captures()
    conversation(captures, *here)
    (tmp_path / "lo.pcap").write_bytes(captures.pcap("sensor"))
    (tmp_path / "lo2.pcap").write_bytes(captures.pcap("siren"))
    found = application_messages([str(tmp_path)], {})
    assert [one.origin for one in found.messages] == ["127.0.0.1:40000"] * 3


def test_of_a_subscribers_link_alone_the_broker_is_the_publisher(tmp_path):
    captures = Captures()
    conversation(captures, BROKER, SENSOR, SIREN)
    (tmp_path / "siren.pcap").write_bytes(captures.pcap("siren"))
    found = application_messages([str(tmp_path)], {})
    assert [one.topic for one in found.messages] == ["alerts/slope", "readings", "alerts/slope"]
    assert {one.origin for one in found.messages} == {"10.0.0.1:1883"}


def test_our_messages_are_those_of_the_log_with_their_levels_and_times():
    found = application_messages([str(SAMPLE / "pcap")], {2: "sensor"})
    assert len(found.messages) == 5
    assert {(one.topic, one.priority, one.size) for one in found.messages} == {("alerts", 5, 200)}
    gaps = [b.at_ns - a.at_ns for a, b in zip(found.messages, found.messages[1:], strict=False)]
    assert all(abs(gap - 500 * MS) < 50 * MS for gap in gaps)


def test_an_unknown_origin_has_its_number():
    found = application_messages([str(SAMPLE / "pcap")], {})
    (origin,) = {one.origin for one in found.messages}
    assert origin.startswith("#")


def test_folders_without_captures_are_refused(tmp_path):
    with pytest.raises(AnalysisError, match="no capture at"):
        application_messages([str(tmp_path)], {})


@pytest.mark.parametrize("shared", [False, True])
def test_a_publisher_that_connects_again_loses_nothing_that_it_repeats(shared):
    """This holds whether or not the publisher shares the address of the broker."""
    broker, host = "10.0.0.1:1883", "10.0.0.1" if shared else "10.0.0.2"
    about = {"dup": False, "complete": True, "qos": 0, "payload_bytes": 5, "file": "one"}
    about |= {"topic": "alerts", "digest": "same", "kind": "PUBLISH"}
    rows = []
    for place, port in enumerate((40000, 40000, 40007, 40009)):
        inward = {**about, "src": f"{host}:{port}", "dst": broker, "first_ns": place * 10}
        outward = {**about, "src": broker, "dst": "10.0.0.3:9", "first_ns": place * 10 + 1}
        rows += [{**inward, "kind": "CONNECT"}, inward, outward]
    reported, _ = mqtt_publications(rows)
    assert [one.at_ns for one in reported] == [0, 10, 20, 30]
    assert {one.origin for one in reported} == {f"{host}:40000" if shared else host}


senders = st.sampled_from(["a:1", "b:1", "c:1"])
publication = st.tuples(senders, st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]))


@settings(max_examples=200)
@given(st.lists(publication, max_size=12), st.integers(1, 3), st.booleans())
def test_any_number_of_receivers_and_files_changes_nothing(sent, receivers, twice) -> None:
    """Each publisher has payloads of its own; the broker's copies and further captures add no message."""
    rows = []
    for place, (sender, topic, payload) in enumerate(sent):
        about = {"kind": "PUBLISH", "dup": False, "complete": True, "qos": 0, "payload_bytes": 5}
        about |= {"topic": topic, "digest": f"{sender}{payload}", "first_ns": place * 10}
        for file in ("one", "two")[: 2 if twice else 1]:
            rows.append({**about, "file": file, "src": sender, "dst": "broker:1883"})
        rows += [
            {
                **about,
                "file": "one",
                "src": "broker:1883",
                "dst": f"siren{n}:9",
                "first_ns": place * 10 + 1,
            }
            for n in range(receivers)
        ]
    reported, unread = mqtt_publications(rows)
    wanted = sorted((place * 10, sender[0], topic) for place, (sender, topic, _) in enumerate(sent))
    assert sorted((one.at_ns, one.origin, one.topic) for one in reported) == wanted
    assert unread == 0

"""A client of mosquitto in the valley, QoS 1.

`python -m benchmarks.support.brokers.mqtt_client publish|receive NAME one|two HOST FOLDER [TOPIC ...]`
"""

import json
import sys
import time
from pathlib import Path

import paho.mqtt.client as mqtt

from benchmarks.support.brokers.scene import ALERTS, PHOTOGRAPHS
from benchmarks.support.delivery.mqtt import PORT
from benchmarks.support.delivery.peer_program import number_of, play

LOOK_S = 0.1
KEEPALIVE_S = 600
QOS = 1


def client(host: str) -> mqtt.Client:
    """A connection, made as soon as mosquitto listens."""
    made = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    while True:
        try:
            made.connect(host, PORT, keepalive=KEEPALIVE_S)
            return made
        except OSError:
            time.sleep(LOOK_S)


def publish(name: str, two: bool, host: str, folder: Path) -> None:
    """Send each message when it is due."""
    routine = client(host)
    urgent = client(host) if two else routine
    for each in {routine, urgent}:
        each.loop_start()
        while not each.is_connected():
            time.sleep(LOOK_S)
    (folder / "ready").touch()

    def send(data: bytes, is_urgent: bool) -> None:
        if is_urgent:
            urgent.publish(f"{ALERTS}/{name}", data, qos=QOS)
        else:
            routine.publish(f"{PHOTOGRAPHS}/{name}", data, qos=QOS)

    play(folder, send)
    while True:
        time.sleep(1)


def receive(two: bool, host: str, folder: Path, topics: list[str]) -> None:
    """Record each message: its publisher, its number, and its arrival time."""
    noted = (folder / "received.jsonl").open("a", buffering=1)

    def note(_client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        at_ns = time.time_ns()
        slope = message.topic.rpartition("/")[2]
        noted.write(json.dumps([slope, number_of(message.payload), at_ns]) + "\n")

    waiting = set(topics)
    for each in [[topic] for topic in topics] if two else [topics]:
        made = client(host)
        made.on_message = note
        made.on_subscribe = lambda *_, those=each: waiting.difference_update(those)
        made.subscribe([(f"{topic}/+", QOS) for topic in each])
        made.loop_start()
    while waiting:
        time.sleep(LOOK_S)
    (folder / "ready").touch()
    while True:
        time.sleep(1)


def main(what: str, name: str, connections: str, host: str, folder: str, *topics: str) -> None:
    """Run the client as a process."""
    two = connections == "two"
    if what == "publish":
        publish(name, two, host, Path(folder))
    else:
        receive(two, host, Path(folder), list(topics))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""MQTT through mosquitto: `python -m benchmarks.support.delivery.mqtt publish|receive HOST FOLDER`. QoS 0."""

import sys
import time
from pathlib import Path

import paho.mqtt.client as mqtt

from benchmarks.support.delivery.peer_program import Received, play, ready

PORT = 1883
LOOK_S = 0.1
URGENT, ROUTINE = "alerts/urgent", "alerts/routine"
CONFIGURATION = f"listener {PORT}\nallow_anonymous true\nlog_dest stderr\nlog_type error\n"


def connected(host: str) -> mqtt.Client:
    """A connection, made as soon as mosquitto listens."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    while True:
        try:
            client.connect(host, PORT, keepalive=600)
            return client
        except OSError:
            time.sleep(LOOK_S)


def publish(host: str, folder: Path) -> None:
    """Send each message when it is due."""
    client = connected(host)
    client.loop_start()
    ready(folder, "publisher")
    play(folder, lambda data, urgent: _send(client, data, urgent))
    while True:
        time.sleep(1)


def _send(client: mqtt.Client, data: bytes, urgent: bool) -> None:
    client.publish(URGENT if urgent else ROUTINE, data, qos=0)


def receive(host: str, folder: Path) -> None:
    """Record arrivals."""
    received = Received(folder)
    client = connected(host)
    client.on_message = lambda _client, _data, message: received.note(message.payload)
    client.on_subscribe = lambda *_: ready(folder, "receiver")
    client.subscribe([(URGENT, 0), (ROUTINE, 0)])
    client.loop_forever()


if __name__ == "__main__":
    {"publish": publish, "receive": receive}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))

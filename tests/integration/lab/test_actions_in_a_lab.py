"""Actions of a scenario on real links: partition, background load, commands, and events that wait for a condition."""

import json
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet
from scapy.utils import rdpcap

FILE = """
name: actions
seed: 4
groups:
  gauges: {kind: sensor, count: 2, link: mvno-128k}
nodes:
  hub: {kind: broker}
  siren: {kind: subscriber, topics: [alerts], link: mvno-128k}
  office: {kind: subscriber, topics: [alerts], link: mvno-128k}
scenario:
  duration: 9s
  settle: 30s
  events:
    - {at: 500ms, publish: {from: "gauges[*]", topic: alerts, priority: 5, size: 200B, period: 600ms, count: 12}}
    - {at: 2s, for: 2s, partition: {sides: [[hub, siren], [office]]}}
    - {at: 5s, for: 3s, load: {nodes: office, to: siren, rate: 32kbit/s}}
    - {at: 3s, exec: {nodes: siren, command: "cat /proc/net/fib_trie; exit 3"}}
    - {when: {received: {nodes: siren, level: 5, count: 3}}, for: 1s, link: {nodes: siren, delay: 200ms}}
    - {when: {received: {nodes: siren, topic: never}, within: 5s}, crash: {nodes: hub}}
"""


def packets(folder: Path, link: str, start_ns: int) -> list[tuple[float, Packet]]:
    """Packets with their times in the scenario."""
    found = rdpcap(str(folder / "pcap" / f"{link}.pcap"))
    return [(float(p.time) - start_ns / 1e9, p) for p in found if IP in p]


@pytest.mark.netns
@pytest.mark.parametrize(
    "backend", ["netns", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.root])]
)
def test_every_action_takes_effect_on_the_links_and_is_recorded(
    backend: str, testbed_json: Any, places: Path, watch: Any
) -> None:
    file = places / "actions.yaml"
    file.write_text(FILE)
    folder = Path(testbed_json("up", file, "--backend", backend)["run_folder"])
    played = testbed_json("play", "actions")
    testbed_json("down", "actions")
    assert watch.leftovers() == []
    assert played["received"] == played["expected"] == 48
    manifest = json.loads((folder / "run.json").read_text())
    start_ns = manifest["play"]["start_ns"]
    address = {node["name"]: node["address"] for node in manifest["topology"]["nodes"]}

    recorded = [each["action"] for each in manifest["actions"] if each["action"] != "mark"]
    assert sorted(recorded) == sorted(
        ["link", "restore", "partition", "heal", "load", "unload", "exec"]
    )
    assert all(each["t_ns"] >= each["due_ns"] for each in manifest["actions"])
    marks = [each["details"] for each in manifest["actions"] if each["action"] == "mark"]
    assert sorted(mark.get("trigger", "") for mark in marks) == ["", "fired", "missed"]
    (ended,) = [mark for mark in marks if "exit_code" in mark]
    assert ended["exit_code"] == 3
    assert address["siren"] in (folder / ended["output"]).read_text()

    done_s = {each["action"]: (each["t_ns"] - start_ns) / 1e9 for each in manifest["actions"]}
    at_office = packets(folder, "office", start_ns)
    from_hub = [at for at, packet in at_office if packet[IP].src == address["hub"]]
    assert not [at for at in from_hub if done_s["partition"] + 0.5 < at < 4]
    assert [at for at in from_hub if at > 4]
    at_siren = packets(folder, "siren", start_ns)
    datagrams = [(at, len(p)) for at, p in at_siren if UDP in p and p[UDP].dport == 9]
    asked = 32_000 * (done_s["unload"] - done_s["load"])  # 3 s, unless the machine was late
    assert asked * 0.8 < 8 * sum(size for _, size in datagrams) < asked * 1.2
    assert not [p for _, p in at_siren if p[IP].proto == 1]  # no reply that a port is closed
    (ended,) = [each["details"] for each in manifest["actions"] if each["action"] == "unload"]
    assert ended["sent"] >= len(datagrams)
    assert ended["unsent"] >= 0

"""`scripts/inventory` finds a message's files by time, and cycles as import-linter does."""

from scripts.inventory_parts.journeys import Call, Process, delay_journey, message_journey, passages
from scripts.inventory_parts.static import sibling_cycles

ID, NEXT = "0000000200000001", "0000000200000002"
RECORDS = {
    "sensor": [
        {"t": 100, "event": "publish", "id": ID},
        {"t": 500, "event": "publish", "id": NEXT},
    ],
    "siren": [{"t": 300, "event": "receive", "id": ID}, {"t": 700, "event": "receive", "id": NEXT}],
}


def test_a_message_passes_from_its_first_record_to_the_first_one_of_another_node() -> None:
    assert [
        (way.origin, way.published, way.receiver, way.received) for way in passages(RECORDS)
    ] == [
        ("sensor", 100, "siren", 300),
        ("sensor", 500, "siren", 700),
    ]


def test_a_message_s_files_run_for_every_message_between_its_callback_and_the_log_s_write() -> None:
    sensor = [Call(85, 80, "timer.py"), Call(95, 90, "publish.py"), Call(490, 489, "publish.py")]
    broker = [Call(200, 0, "forward.py"), Call(250, 0, "heartbeat.py"), Call(600, 0, "forward.py")]
    siren = [Call(290, 0, "log.py"), Call(305, 0, "!write"), Call(306, 0, "after.py")]
    siren += [Call(690, 0, "log.py"), Call(705, 0, "!write")]
    processes = [
        Process(1, "keeper", [Call(200, 0, "keeper.py")]),
        Process(2, "node:siren", siren),
        Process(3, "node:broker", broker),
        Process(4, "node:sensor", sensor),
    ]
    assert message_journey(processes, RECORDS).processes == {
        "node:sensor": ["publish.py"],
        "node:broker": ["forward.py"],
        "node:siren": ["log.py"],
    }


def test_a_delay_begins_when_a_capture_is_opened_and_ends_with_its_table() -> None:
    driver = [Call(1, 0, "cli.py"), Call(2, 0, "!open /run/pcap/a.pcap"), Call(3, 0, "pipeline.py")]
    worker = [Call(4, 0, "scan.py"), Call(9, 0, "report.py")]
    journey = delay_journey([Process(1, "command", driver), Process(2, "worker", worker)], end=5)
    assert journey.files == ["pipeline.py", "scan.py"]


def test_a_package_and_its_own_subpackage_are_no_siblings() -> None:
    packages = {"a", "a.b", "a.b.c", "a.d"}
    nested = {"a.b.x": ["a.b.c.y"], "a.b.c.y": ["a.b.z"], "a.b.z": []}
    assert sibling_cycles(nested, packages) == []
    siblings = {"a.b.x": ["a.d.y"], "a.d.y": ["a.b.c.z"], "a.b.c.z": []}
    assert sibling_cycles(siblings, packages) == [["a.b", "a.d"]]

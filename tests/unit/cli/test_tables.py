"""Tables that people read."""

from rich.console import Console

from testbed.cli.file_commands import plan_table
from testbed.cli.summary import seconds, summary_tables
from testbed.plan import Step, StepKind

SUMMARY = {
    "run": "valley-1",
    "backend": "netns",
    "emulator": "relay",
    "messages": {
        "published": 10,
        "expected_deliveries": 20,
        "delivered": 19,
        "lost": 1,
        "duplicates": 0,
    },
    "delay_s": {
        "5": {"n": 9, "p50": 0.1234, "p95": 0.5, "p99": 1.0, "max": 2.5},
        "1": {"n": 10, "p50": 0.2, "p95": 0.2, "p99": 0.2, "max": 0.2},
    },
    "hops": {"5": {"mean": 2.0, "max": 2}, "1": {"mean": 2.0, "max": 2}},
    "overhead": {
        "payload_bytes": 1000,
        "wire_bytes": 2500,
        "packets": 30,
        "retransmitted_packets": 0,
    },
    "fidelity": {"ok": False, "reasons": ["The capture lost 3 packets."]},
}


def shown(*renderables) -> str:
    console = Console(width=140, record=True, quiet=False)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable)
    return capture.get()


def test_the_most_urgent_level_comes_first():
    text = shown(*summary_tables(SUMMARY))
    assert text.index("5 emergency") < text.index("1 routine")
    assert "123.4 ms" in text
    assert "2.50 s" in text
    assert "19 of 20 deliveries made, 1 lost" in text
    assert "2.50 x the payload" in text
    assert "The capture lost 3 packets." in text


def test_the_worst_served_receiver_of_the_most_urgent_level_comes_first():
    told = {"expected": 9, "delivered": 9, "lost": 0, "p50": 0.1, "p95": 0.2, "max": 0.3}
    nothing = {"expected": 9, "delivered": 0, "lost": 9, "p50": None, "p95": None, "max": None}
    many = {f"town-{i}": {"5": told} for i in range(12)}
    by_receiver = {"siren": {"5": told, "1": told}, "office": {"5": nothing}, "lab": {"1": told}}
    text = shown(*summary_tables({**SUMMARY, "by_receiver": {**by_receiver, **many}}))
    assert "who heard of level 5 when" in text
    assert text.index("office") < text.index("siren")
    assert "0 of 9" in text
    assert "lab" not in text
    assert "4 more in the report" in text


def test_delays_read_naturally():
    assert (seconds(0.0321), seconds(12.3)) == ("32.1 ms", "12.30 s")


def test_a_plan_of_hundreds_fits_a_screen():
    steps = tuple(Step(StepKind.CREATE, f"sensors-{i}", "does not exist") for i in range(300))
    text = shown(plan_table(steps))
    assert "300" in text
    assert "… 292 more" in text
    assert len(text.splitlines()) < 10

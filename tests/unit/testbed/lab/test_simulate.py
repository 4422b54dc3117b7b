"""A simulated run leaves a folder like any other, and says that it was simulated."""

import json
from pathlib import Path

import pytest

from analysis.inputs.run_folder import read_run
from analysis.metrics.fidelity import Evidence, verdict
from testbed.backends.registry import known_backend
from testbed.backends.simulated.lab import SimulatedLab
from testbed.errors import InputError, MissingCapability, NodeFailure
from testbed.lab.simulate import Bar, simulate
from testbed.lab.start.provenance import tcp_of_simulation
from testbed.places import captures_root
from testbed.progress import (
    Event,
    Incomplete,
    Note,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
    ignore,
)
from testbed.records import read_manifest
from testbed.topology import load

TOPOLOGIES = Path(__file__).parents[4] / "topologies"
MINIMAL = TOPOLOGIES / "minimal.yaml"


@pytest.fixture(autouse=True)
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_CAPTURES", str(tmp_path / "c"))
    return tmp_path / "c"


def test_the_folder_has_what_every_run_has_and_a_trace_instead_of_captures() -> None:
    run = simulate(load(MINIMAL), MINIMAL, ignore)
    assert sorted(path.name for path in run.folder.iterdir()) == [
        *("logs", "planned.jsonl", "published.jsonl", "run.json", "topology.yaml", "trace"),
    ]
    assert sorted(path.name for path in run.trace.iterdir()) == [
        "link_utilization.parquet",
        "links.parquet",
        "messages.parquet",
    ]
    manifest = read_manifest(run)
    assert manifest["backend"]["name"] == manifest["emulator"]["name"] == "simulated"
    assert manifest["status"] == "down"
    assert manifest["play"]["settled"]
    assert manifest["play"]["end_ns"] - manifest["play"]["start_ns"] >= 3e9
    assert manifest["details"]["service_s"] == 0.001
    assert manifest["capture"]["siren"]["packets"] > 10
    publications = [json.loads(line) for line in run.planned.read_text().splitlines()]
    assert [publication["at_ns"] for publication in publications] == [
        (n + 1) * 500_000_000 for n in range(5)
    ]
    assert "receive" in run.log("siren").read_text()


def test_a_slow_processor_delays_what_it_handles() -> None:
    def first_received(service_s: float) -> int:
        run = simulate(load(MINIMAL), MINIMAL, ignore, service_s)
        received = map(json.loads, run.log("siren").read_text().splitlines())
        return next(line["t"] - line["published_ns"] for line in received if "hops" in line)

    slower = first_received(0.1) - first_received(0)
    assert (
        abs(slower - 200_000_000) < 100_000_000
    )  # sensor and broker; the jitter is another one then


def test_a_simulated_run_is_trusted_despite_machine_and_captures() -> None:
    run = read_run(simulate(load(MINIMAL), MINIMAL, ignore).folder)
    evidence = Evidence(0.0, (), {}, 0, 0, 0, lost_deliveries=0)
    assert run.simulated
    assert verdict(run, evidence) == {"ok": True, "reasons": [], "machine": None}
    doubtful = Evidence(0.0, (), {}, 0, 0, unseen_receptions=2, lost_deliveries=0)
    assert not verdict(run, doubtful)["ok"]


def test_a_topology_that_cannot_be_simulated_is_refused_and_leaves_no_folder(
    captures: Path,
) -> None:
    file = TOPOLOGIES / "mosquitto.yaml"
    with pytest.raises(MissingCapability, match="cannot be simulated"):
        simulate(load(file), file, ignore)
    assert not captures.exists()


def test_a_run_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "deaf.yaml"
    file.write_text(
        MINIMAL.read_text()
        .replace("name: minimal", "name: deaf\nlinks: {profiles: {deaf: {up: {loss: 100%}}}}")
        .replace("link: mvno-128k\n    topics", "link: deaf\n    topics")
    )
    with pytest.raises(NodeFailure, match="siren"):
        simulate(load(file), file, ignore)
    assert list(captures_root().iterdir()) == []


def test_a_note_names_the_settings_that_are_only_recorded() -> None:
    emitted: list[Event] = []
    file = TOPOLOGIES / "demo.yaml"
    simulate(load(file), file, emitted.append)
    assert [event.text for event in emitted if isinstance(event, Note)] == [
        "platform and class are recorded only: all simulated nodes are equally fast"
    ]


def test_messages_that_do_not_come_in_time_are_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "late.yaml"
    file.write_text(MINIMAL.read_text().replace("size: 200B", "size: 60kB"))
    emitted: list[Event] = []
    run = simulate(load(file), file, emitted.append)
    (text,) = (event.text for event in emitted if isinstance(event, Warned))
    assert "deliveries were still missing 5 s after the scenario's end" in text
    assert not read_manifest(run)["play"]["settled"]


def test_what_a_cut_link_keeps_back_is_lost_and_no_longer_settle_is_advised(tmp_path: Path) -> None:
    file = tmp_path / "cut.yaml"
    events = "  events:\n    - {at: 0s, cut: {nodes: siren}}\n"
    file.write_text(MINIMAL.read_text().replace("  events:\n", events, 1))
    emitted: list[Event] = []
    run = simulate(load(file), file, emitted.append)
    (text,) = (event.text for event in emitted if isinstance(event, Warned))
    assert "are lost: the report says where" in text
    assert "settle" not in text
    assert read_manifest(run)["play"]["under_way"] == 0


def test_a_trigger_that_never_fires_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "quiet.yaml"
    when = "    - {when: {received: {count: 99}}, mark: all has come}\n"
    file.write_text(MINIMAL.read_text() + when)
    emitted: list[Event] = []
    simulate(load(file), file, emitted.append)
    (warned,) = (event for event in emitted if isinstance(event, Warned | Incomplete))
    assert isinstance(warned, Warned)
    assert warned.text.startswith("did not fire: ")


def test_an_action_that_fails_makes_the_run_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise NodeFailure("siren does not answer", "", ["siren"])

    monkeypatch.setattr(SimulatedLab, "apply", fail)
    file = tmp_path / "cut.yaml"
    file.write_text(MINIMAL.read_text() + "    - {at: 1s, cut: {nodes: siren}}\n")
    emitted: list[Event] = []
    simulate(load(file), file, emitted.append)
    assert Incomplete("cut of siren: siren does not answer") in emitted


def test_a_bar_is_shown_after_two_seconds() -> None:
    emitted: list[Event] = []
    now = 100.0
    bar = Bar(10, emitted.append, clock=lambda: now)
    now += 1.9
    bar.on_virtual_seconds(3.0)
    assert emitted == []
    now += 0.2
    bar.on_virtual_seconds(4.0)
    bar.on_virtual_seconds(6.5)
    bar.end()
    assert emitted == [
        StageStarted("simulating", 10),
        StageAdvanced("simulating", 4, "virtual seconds"),
        StageAdvanced("simulating", 2, "virtual seconds"),
        StageEnded("simulating"),
    ]


def test_a_lab_cannot_be_up_in_virtual_time() -> None:
    with pytest.raises(InputError, match="cannot be up") as refused:
        known_backend("simulated")
    assert "testbed simulate FILE" in refused.value.hint


def test_the_manifest_names_the_congestion_control_that_the_file_asks_for() -> None:
    run = simulate(load(MINIMAL, overrides=["tcp=reno"]), MINIMAL, ignore)
    manifest = read_manifest(run)
    assert manifest["tcp"] == {"name": "reno", "reason": "as the file says"}
    assert manifest["topology"]["tcp"] == "reno"


@pytest.mark.parametrize(
    ("own", "name", "reason"),
    [
        ("bbr", "bbr", "the default of this machine's kernel"),
        ("westwood", "cubic", "the default of this machine's kernel, westwood, is not simulated"),
    ],
)
def test_a_file_that_names_none_is_simulated_as_this_machine_would_do_it(
    own: str, name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tcp_congestion_control").write_text(f"{own}\n")
    choice = tcp_of_simulation(load(MINIMAL), tmp_path)
    assert (choice.name, choice.reason) == (name, reason)
    monkeypatch.setattr("testbed.lab.simulate.tcp_of_simulation", lambda topology: choice)
    manifest = read_manifest(simulate(load(MINIMAL), MINIMAL, ignore))
    # Also in the topology: from the manifest alone, the run can be repeated on another machine.
    assert (manifest["tcp"]["name"], manifest["topology"]["tcp"]) == (name, name)


def test_a_machine_without_that_setting_simulates_cubic(tmp_path: Path) -> None:
    assert tcp_of_simulation(load(MINIMAL), tmp_path / "none").name == "cubic"


def test_the_choice_changes_what_is_simulated() -> None:
    demo = TOPOLOGIES / "demo.yaml"

    def traces(tcp: str) -> bytes:
        run = simulate(load(demo, overrides=[f"tcp={tcp}"]), demo, ignore)
        return (run.trace / "messages.parquet").read_bytes()

    cubic, reno, bbr = (traces(tcp) for tcp in ("cubic", "reno", "bbr"))
    assert len({cubic, reno, bbr}) == 3
    assert traces("cubic") == cubic

"""Arguments of the link commands: which lab and which links they select, and how links and changes are shown."""

import json
from dataclasses import replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.cli.commands.link import sentence
from testbed.cli.tables.links import links_table
from testbed.lab.links import LinkView
from testbed.links.changes import BOTH, DirectionState, LinkState
from testbed.places import LabPlace, RunPlace
from testbed.records import LabRecord, save_lab, update_manifest
from testbed.topology.model import Node, NodeKind, Profile, Shape, Topology, to_json

CONFIGURED = LinkState(
    DirectionState(Shape(128e3, 0.06, 0.015, 0.005, 32_000)), DirectionState(Shape())
)


def make_lab(places, name: str) -> None:
    """A lab's records, without anything that answers."""
    nodes = (Node("broker", 1, NodeKind.BROKER, "lan"), Node("s-0", 2, NodeKind.SENSOR, "lan", "s"))
    run = RunPlace(places / "c" / name)
    run.folder.mkdir(parents=True)
    topology = Topology(name, 1, (Profile("lan"),), nodes)
    update_manifest(run, topology=to_json(topology), link_changes=[])
    place = LabPlace.of(name)
    place.folder.mkdir(parents=True, mode=0o700)
    save_lab(place, LabRecord(name, name, str(run.folder), "netns", "x.yaml"))


def error_of(*arguments: str) -> dict:
    """The error document of a link command."""
    done = CliRunner().invoke(app, ["link", *arguments, "--json"])
    error = json.loads(done.stdout)["error"]
    assert done.exit_code == error["exit_code"]
    return error


@pytest.fixture
def one_lab(places):
    (places / "s").mkdir(mode=0o700)
    make_lab(places, "valley")


@pytest.fixture
def two_labs(one_lab, places):
    make_lab(places, "hill")


def test_without_a_lab_the_error_has_the_next_step(places):
    assert error_of("show")["message"] == "which lab? no lab is up"
    assert error_of("show")["hint"] == "start one with `testbed up FILE`"
    assert error_of("cut", "broker")["exit_code"] == 2


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("cut", "valey", "broker"), "'valey' is neither a lab", "did you mean 'valley'?"),
        (("cut", "brokr"), "there is no node 'brokr'", "did you mean 'broker'?"),
        (("cut", "valley", "brokr"), "there is no node 'brokr'", "did you mean 'broker'?"),
        (("cut", "s"), "'s' is a group", "for all its nodes write s[*]"),
        (("restore", "s[4]"), "group 's' has no member 4", "it has only s[0]"),
        (("reset", "valley"), "which links of lab valley?", "testbed link show valley"),
        (("set", "broker"), "nothing to set", "--rate"),
        (("set", "broker", "--rate", "5"), "--rate: a rate needs a unit", "5 of what?"),
        (("set", "broker", "--profile", "lam"), "no link profile 'lam'", "did you mean 'lan'?"),
        (("show", "nobody-knows-it"), "there is no node 'nobody-knows-it'", "known here"),
    ],
)
def test_with_one_lab_an_error_has_the_next_step(one_lab, arguments, message, hint):
    error = error_of(*arguments)
    assert message in error["message"]
    assert hint in error["hint"]
    assert error["exit_code"] == 2


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("cut", "broker"), "which lab? 2 labs are up: hill, valley", "name one"),
        (("show",), "which lab? 2 labs are up: hill, valley", "name one"),
        (("cut", "hil", "broker"), "no lab named 'hil' is up", "did you mean 'hill'?"),
        (("cut", "hill", "brokr"), "there is no node 'brokr'", "did you mean 'broker'?"),
    ],
)
def test_with_two_labs_the_first_argument_must_name_one_of_them(two_labs, arguments, message, hint):
    error = error_of(*arguments)
    assert message in error["message"]
    assert hint in error["hint"]


def test_the_error_on_a_lab_that_has_died_has_the_next_step(one_lab):
    for arguments in (("show",), ("cut", "broker"), ("reset", "valley", "all")):
        error = error_of(*arguments)
        assert error["message"] == "the keeper of lab valley has ended"
        assert "testbed down valley" in error["hint"]
        assert error["exit_code"] == 1


def test_every_link_command_has_an_example_in_its_help():
    for command in ("show", "set", "cut", "restore", "reset"):
        done = CliRunner().invoke(app, ["link", command, "--help"])
        assert f"Example: testbed link {command}" in done.stdout


@pytest.mark.parametrize(
    ("action", "directions", "more", "expected"),
    [
        ("cut", ["up", "down"], {}, "cut a, b (up and down)"),
        ("restore", ["down"], {}, "restored a, b (down)"),
        (
            "set",
            ["up"],
            {"shapes": {"up": {"rate_bps": None, "delay_s": 0.1, "loss": 0.0}}},
            "set a, b (up) to rate none, delay 100ms, loss none",
        ),
    ],
)
def test_the_sentence_on_a_change_names_its_directions_in_brackets(
    action, directions, more, expected
):
    entry = {"action": action, "links": ["a", "b"], "directions": directions, **more}
    assert sentence(entry) == expected


def view(name: str, now: LinkState | None, behind: str | None = None, **counts: int) -> LinkView:
    limits = {"up": 32_000, "down": None}
    counted = {"up": counts} if counts else {}
    return LinkView(name, "mvno-128k", behind, CONFIGURED, now, counted, limits)


def shown(*views: LinkView, width: int = 160) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(links_table(views, BOTH))
    return capture.get()


def row(text: str, name: str, direction: str) -> str:
    """The one row of this link and direction, its cells one blank apart."""
    rows = [" ".join(line.split()) for line in text.splitlines()]
    (found,) = [line for line in rows if line.startswith(name + " ") and f" {direction} " in line]
    return found


def test_a_table_of_links_shows_values_and_what_is_not_as_the_file_says():
    slower = replace(CONFIGURED, up=DirectionState(replace(CONFIGURED.up.shape, rate_bps=64e3)))
    text = shown(
        view("a", CONFIGURED),
        view("b", slower),
        view("c", replace(CONFIGURED, down=replace(CONFIGURED.down, cut=True))),
        view("d", replace(slower, up=replace(slower.up, cut=True))),
        view("e", None),
    )
    shape = "128kbit/s 60ms 15ms 0.5% 32kB"
    assert row(text, "a", "up") == f"a mvno-128k up {shape} as filed"
    assert row(text, "b", "up") == f"b mvno-128k up {shape.replace('128k', '64k')} changed"
    assert row(text, "c", "up") == f"c mvno-128k up {shape} as filed"
    assert row(text, "c", "down") == "c mvno-128k down - - - - - cut"
    assert row(text, "d", "up").endswith("32kB cut, changed")
    assert row(text, "e", "up") == "e mvno-128k up no link"
    assert "behind" not in text
    assert "forwarded" not in text


def test_the_queue_is_the_one_whose_drops_are_counted():
    default = LinkState(DirectionState(Shape(64e3)), DirectionState(Shape()))
    one = replace(view("a", default, dropped_queue=3), queue_limits={"up": 24_224, "down": None})
    text = shown(one)
    assert row(text, "a", "up") == "a mvno-128k up 64kbit/s - - - 24.224kB changed 3 queue full"
    assert row(text, "a", "down") == "a mvno-128k down - - - - - as filed"


def test_routers_and_counts_have_columns_where_there_are_any():
    counts = {"forwarded": 12, "dropped_queue": 3, "dropped_loss": 0, "dropped_cut": 7}
    text = shown(
        view("a", CONFIGURED, "gw", **counts),
        view("b", CONFIGURED, forwarded=5),
        view("c", CONFIGURED),
    )
    assert row(text, "a", "up").startswith("a mvno-128k gw up")
    assert row(text, "a", "up").endswith("as filed 12 3 queue full, 7 cut")
    assert row(text, "b", "up").endswith("as filed 5 0")
    assert row(text, "c", "up").endswith("as filed")


def test_a_table_of_links_fits_the_width_of_a_pipe():
    wide = view("sensors-100", CONFIGURED, "gw-10", forwarded=123_456, dropped_queue=1_234)
    assert max(len(line.rstrip()) for line in shown(wide, width=120).splitlines()) <= 120
    assert "…" not in shown(wide, width=120)


@pytest.mark.parametrize(
    ("width", "missing"),
    [(110, []), (100, ["profile"]), (80, ["profile", "behind", "forwarded"])],
)
def test_a_narrow_terminal_gets_fewer_columns_and_no_cut_ones(width, missing):
    text = shown(
        view("sensors-100", CONFIGURED, "gw-10", forwarded=123, dropped_cut=4), width=width
    )
    assert "…" not in text
    assert row(text, "sensors-100", "up").endswith("4 cut")
    heading, caption = text.splitlines()[1], text.splitlines()[-1].strip()
    assert [name for name in ("profile", "behind", "forwarded") if name not in heading] == missing
    assert caption == (f"a wider terminal shows more: {', '.join(missing)}" if missing else "")

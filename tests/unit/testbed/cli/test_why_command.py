"""`testbed why`: a message or the slowest ones, for people and for programs, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.runs.constructed_tables import ConstructedRun, blocked_by_a_picture, identity
from testbed.cli.app import app
from testbed.cli.commands import why

ALERT, CALM = identity("gauge", 1), identity("gauge", 2)
RUN = "valley-20300101-120000-abcd"


@pytest.fixture
def run(places: Path) -> Path:
    return blocked_by_a_picture().write(places / "c" / RUN)


def invoke(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["why", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke(*arguments, "--json", code=code).stdout)
    return found


@pytest.mark.parametrize("arguments", [(ALERT,), (ALERT.upper(),), ("valley", "--message", ALERT)])
def test_a_message_is_explained_in_lines(run, arguments):
    lines = invoke(*arguments).stdout.splitlines()
    assert lines[0] == f"{ALERT} to siren: 1.09 s, the slowest of 4 deliveries of level 5"
    assert "behind 10.1 kB of 1 message of level 1 (pictures)" in lines[2]
    assert len(lines) <= 10


def test_another_receiver_of_a_message_is_named_and_can_be_chosen(run):
    done = invoke(ALERT)
    assert "--receiver selects another: office" in done.stderr
    assert invoke(ALERT, "--receiver", "office").stdout.startswith(f"{ALERT} to office: 84.0 ms")


def test_the_slowest_deliveries_have_their_cause_in_a_sentence(run):
    text = invoke(RUN).stdout
    assert text.index(ALERT) < text.index(CALM)
    assert "behind 10.1 kB of 1 message of level 1 (pictures)." in text
    assert f"hop by hop: testbed why {RUN} --message {ALERT} --receiver siren" in text
    assert ALERT not in invoke(str(run), "--receiver", "office", "--slowest", "1").stdout.split(
        "hop by hop"
    )[0].replace(ALERT, "", 1)


def test_programs_get_the_cause_and_the_journey(run):
    found = document(ALERT)
    (delivery,) = found["deliveries"]
    assert found["run"] == RUN
    assert (delivery["id"], delivery["receiver"], delivery["faster"]) == (ALERT, "siren", 3)
    cause = delivery["cause"]
    assert (cause["kind"], cause["hop"], cause["link"]) == ("other messages", 2, "siren")
    assert cause["others"][0]["topic"] == "pictures"
    assert [(hop["src"], hop["dst"]) for hop in delivery["journey"]] == [
        ("gauge", "broker"),
        ("broker", "siren"),
    ]
    whole = document(RUN, "--slowest", "2")
    assert [each["id"] for each in whole["deliveries"]] == [ALERT, CALM]
    assert whole["deliveries"][0] == delivery
    assert whole["lost"] == 0


def test_a_lost_delivery_is_named_with_the_command_that_explains_it(places):
    run = ConstructedRun()
    run.publish("gauge", 1, 1_000)
    run.act(900, "cut", "gauge")
    run.write(places / "c" / RUN)
    text = invoke(RUN).stdout
    assert "the run has no deliveries" in text
    command = f"testbed why {RUN} --message {ALERT} --receiver office"
    assert f"2 deliveries were lost; one of them: {command}" in text
    lines = invoke(*command.split()[2:]).stdout.splitlines()
    assert lines[2] == "It did not arrive: never sent; near it: link cut (gauge, from 0.9 s on)."
    (delivery,) = document(ALERT)["deliveries"]
    assert delivery["disturbances"][0]["until_ns"] is None
    assert delivery["cause"]["disturbance"] == delivery["disturbances"][0]


def test_a_run_that_was_not_analysed_is_analysed_first(run, monkeypatch):
    (run / "summary.json").unlink()
    analysed: list[str] = []
    monkeypatch.setattr(why, "analyze_run", lambda place, _: analysed.append(place.run))
    invoke(RUN)
    assert analysed == [RUN]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("nowhere",), "no run 'nowhere'", "there is"),
        ((RUN, "--message", "12"), "'12' is not a message id", "16 hexadecimal digits"),
        (("f" * 16,), f"no delivery of message {'f' * 16}", "`testbed why valley-"),
        ((ALERT, "--receiver", "sirn"), f"message {ALERT} was not for sirn", "siren, office"),
        ((ALERT, "--level", "3"), f"message {ALERT} has level 5, not 3", "leave out --level"),
        ((RUN, "--level", "3"), "the run expected no delivery of level 3", "levels of this run: 5"),
        ((RUN, "--receiver", "sirn"), "no message was for 'sirn'", "did you mean 'siren'?"),
    ],
)
def test_wrong_input_has_one_message_and_a_next_step(run, arguments, message, hint):
    error = document(*arguments, code=2)["error"]
    assert error["message"].startswith(message)
    assert hint in error["hint"]
    assert error["exit_code"] == 2
    assert message in invoke(*arguments, code=2).stderr


def test_a_folder_named_like_a_message_is_a_run(places, monkeypatch):
    blocked_by_a_picture().write(places / ALERT)
    monkeypatch.chdir(places)
    assert document(ALERT)["lost"] == 0

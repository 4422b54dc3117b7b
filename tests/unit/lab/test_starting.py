"""Nodes are started beside the scenario: what is due meanwhile is not held up, but for what concerns them."""

import threading
import time

import pytest

from fake_labs import LAB, FakePlace, up
from testbed.errors import InputError, TestbedError
from testbed.lab.hold import Hold
from testbed.lab.starting import Starting
from testbed.records import locked
from testbed.scenario import Incident
from testbed.topology.model import ActionKind

ONE = Incident(0, ActionKind.START, ("sensor",))
OTHER = Incident(0, ActionKind.START, ("siren",))


def test_who_is_being_started_is_waited_for_only_if_it_is_concerned():
    go = threading.Event()
    starting = Starting(lambda incident: ["late"] if go.wait(30) else [])
    starting.begin(ONE, 0)
    starting.begin(OTHER, 0)
    assert starting.nodes == {"sensor", "siren"}
    assert starting.finished({"broker"}) == []
    go.set()
    (first,) = starting.finished({"sensor"})[:1]
    assert (first.incident, first.warnings, first.more) == (ONE, ["late"], {})
    starting.finished(over=True)
    assert not starting.nodes


def test_they_are_started_one_after_the_other_and_not_before_their_time():
    order: list[str] = []
    starting = Starting(lambda incident: order.extend(incident.nodes) or [])
    due_ns = time.time_ns() + 30_000_000
    starting.begin(ONE, due_ns)
    starting.begin(OTHER, 0)
    done = starting.finished(over=True)
    assert order == ["sensor", "siren"]
    assert all(each.t_ns >= due_ns for each in done)


def test_what_fails_is_told_for_the_record():
    def fail(incident: Incident) -> list[str]:
        raise TestbedError("no room")

    starting = Starting(fail)
    starting.begin(ONE, 0)
    (done,) = starting.finished(over=True)
    assert done.more == {"failed": "no room"}


def test_parts_of_one_command_hold_a_lab_together_and_others_do_not(file, place: FakePlace):
    record = up(LAB, file, place)
    hold = Hold(record.name)
    with hold.shared():
        with hold.shared():
            pass
        with pytest.raises(InputError), locked(record.name):
            pass
    with locked(record.name):
        pass

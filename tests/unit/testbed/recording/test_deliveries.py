"""Missing deliveries are lost, with their reason, or may still be under way."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.labs.fake_labs import LAB, another_siren
from testbed.recording.deliveries import (
    LONGER,
    Deliveries,
    Missing,
    UnderWay,
    deliveries_of,
    may_come,
    missing_text,
)

TWO = replace(LAB, nodes=(*LAB.nodes, another_siren("town")))


def published(identity: str, t: int = 10, **more: Any) -> dict[str, Any]:
    known = {"topic": "alerts", "priority": 5, "size": 100}
    return {"event": "publish", "node": "sensor", "id": identity, "t": t, **known, **more}


def received(identity: str, node: str) -> dict[str, Any]:
    return {"event": "receive", "node": node, "id": identity, "t": 20}


def dropped(
    identity: str, node: str, peer: str, reason: str = "9 bytes do not fit"
) -> dict[str, Any]:
    return {"event": "drop", "node": node, "id": identity, "peer": peer, "reason": reason}


def up(name: str, at_ns: int) -> bool:
    return False


def reasons(*logs: dict[str, Any], is_down: Any = up) -> list[tuple[str, str | None]]:
    found = deliveries_of(TWO, logs, 0, is_down)
    assert found.expected == 2
    return [(one.receiver, one.reason) for one in found.missing]


def test_a_message_that_a_receiver_logs_is_received_once() -> None:
    logs = [received("a", "siren"), received("a", "siren"), published("a"), received("a", "town")]
    assert deliveries_of(TWO, logs, 0, up) == Deliveries(2, ())


def test_publications_before_the_scenario_do_not_count() -> None:
    assert deliveries_of(TWO, [published("a", t=3), published("b", t=5)], 5, up).expected == 2


def test_the_reason_is_that_of_the_log() -> None:
    only = [published("a"), received("a", "town")]
    assert reasons(*only) == [("siren", None)]
    assert reasons(*only, dropped("a", "broker", "siren")) == [("siren", "queue full at broker")]
    gone = dropped("a", "broker", "siren", "there is no link to siren")
    assert reasons(*only, gone) == [("siren", "not forwarded by broker")]
    at_home = dropped("a", "sensor", "broker")
    assert reasons(published("a"), at_home) == [
        ("siren", "queue full at sensor"),
        ("town", "queue full at sensor"),
    ]
    assert reasons(*only, is_down=lambda name, at_ns: (name, at_ns) == ("siren", 10)) == [
        ("siren", "siren was down")
    ]


def test_another_receivers_full_queue_is_no_reason() -> None:
    logs = [published("a"), dropped("a", "broker", "town")]
    assert reasons(*logs) == [("siren", None), ("town", "queue full at broker")]


def a_missing(reason: str | None = None, receiver: str = "siren", custody: bool = False) -> Missing:
    return Missing(receiver, 100, reason, custody)


NOTHING = UnderWay()


def text(*missing: Missing, under_way: UnderWay = NOTHING, gone: str = "") -> str:
    found = Deliveries(9, missing)
    return missing_text(found, may_come(found, under_way, frozenset([gone])), 5.0)


def test_a_longer_settle_is_advised_only_if_something_is_under_way() -> None:
    assert text() == ""
    assert text(a_missing()) == "1 of 9 deliveries is lost: the report says where (1)"
    busy = "2 of 9 deliveries were still missing 5 s after the scenario's end; " + LONGER
    assert text(a_missing(), a_missing(), under_way=UnderWay(queued=1)) == busy
    assert text(a_missing(), a_missing(), under_way=UnderWay(most_bytes=100)) == busy
    heartbeat = UnderWay(most_bytes=40)
    assert LONGER not in text(a_missing(), under_way=heartbeat)


def test_what_is_lost_is_called_lost_with_its_reasons() -> None:
    full, down = a_missing("queue full at broker"), a_missing("siren was down")
    assert text(full, down, full) == (
        "3 of 9 deliveries are lost: queue full at broker (2), siren was down (1)"
    )
    assert text(full, a_missing(), under_way=UnderWay(queued=1)) == (
        "2 of 9 deliveries were still missing 5 s after the scenario's end: "
        "1 lost (queue full at broker (1)), and 1 that may be under way; " + LONGER
    )


def test_what_has_custody_may_come_as_long_as_its_receiver_is_up() -> None:
    kept = a_missing("siren was down", custody=True)
    assert LONGER in text(kept)
    assert text(kept, gone="siren") == "1 of 9 deliveries is lost: siren was down (1)"


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), unique=True),
    st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from(["siren", "town"]))),
)
def test_expected_deliveries_are_received_or_missing(
    sent: list[str], got: set[tuple[str, str]]
) -> None:
    logs = [*(published(one) for one in sent), *(received(*one) for one in sorted(got))]
    found = deliveries_of(TWO, logs, 0, up)
    assert found.expected == 2 * len(sent)
    assert found.received == sum(identity in sent for identity, _ in got)

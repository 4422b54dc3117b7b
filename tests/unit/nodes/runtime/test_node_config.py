"""node.json: a valid one is read, an invalid one is refused with one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.overlay.base import BrokerName, Station
from nodes.protocol.kinds import NodeKind
from nodes.protocol.wire import MAX_SUBSCRIPTIONS
from nodes.runtime.config import BrokerAddress, ConfigError, Endpoint, Method, load, parse

GOOD: dict[str, Any] = {
    "lab": "slope",
    "run": "r1",
    "name": "c1",
    "number": 3,
    "kind": "subscriber",
    "control": "/run/ctl",
    "log": "/run/c1.jsonl",
    "seed": 7,
    "overlay": {"method": "star", "parameters": {}},
    "delivery": {"method": "fifo", "parameters": {"limit_bytes": 5}},
    "deliveries": {"s1": {"method": "fifo", "parameters": {"limit_bytes": 6}}},
    "listen": None,
    "brokers": [{"name": "b1", "number": 1, "host": "10.77.0.1", "port": 7000}],
    "seeds": ["b1"],
    "topics": ["rain", "{4 0-ff *}alert", "rain"],
    "dimensions": 2,
    "secret": "of the slope",
    "journal": None,
}


def test_a_valid_configuration_is_read() -> None:
    config = parse(GOOD)
    assert config.kind is NodeKind.SUBSCRIBER
    assert config.brokers == (BrokerAddress("b1", 1, Endpoint("10.77.0.1", 7000)),)
    assert config.topics == ("rain", "{4 0-ff *}alert")
    assert config.delivery.parameters == {"limit_bytes": 5}
    assert config.deliveries == {"s1": Method("fifo", {"limit_bytes": 6})}
    b1 = BrokerName("b1", 1)
    assert config.station(17) == Station("c1", 3, (b1,), (b1,), incarnation=17, dimensions=2)
    assert config.secret == b"of the slope"


def test_a_congestion_control_may_be_left_out() -> None:
    assert parse(GOOD).tcp is None
    assert parse({**GOOD, "tcp": None}).tcp is None
    assert parse({**GOOD, "tcp": "reno"}).tcp == "reno"
    with pytest.raises(ConfigError, match="tcp is 7; it must be a text"):
        parse({**GOOD, "tcp": 7})


def test_random_numbers_depend_on_seed_node_and_purpose_only() -> None:
    config = parse(GOOD)
    assert config.random("a").random() == parse(GOOD).random("a").random()
    others = [
        config.random("b").random(),
        parse({**GOOD, "name": "c2"}).random("a").random(),
        parse({**GOOD, "seed": 8}).random("a").random(),
    ]
    assert config.random("a").random() not in others


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_setting_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is missing"):
        parse({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": ""}, "name is ''; it must be a text, not empty"),
        ({"number": "3"}, "number is '3'; it must be a whole number"),
        ({"number": True}, "number is True"),
        ({"number": -1}, "number is -1"),
        ({"kind": "volcano"}, "kind is 'volcano'"),
        ({"overlay": {"method": "chord", "parameters": {}}}, "overlay.method is 'chord'"),
        ({"overlay": {"method": "star"}}, "overlay.parameters is missing"),
        ({"overlay": {"method": "star", "parameters": []}}, "overlay.parameters must be a JSON"),
        ({"overlay": "star"}, "overlay must be a JSON object"),
        ({"deliveries": {"s1": {"method": "x"}}}, "deliveries.s1.method is 'x'; this node knows"),
        ({"brokers": []}, "a subscriber needs at least one entry in `brokers`"),
        ({"brokers": {}}, "brokers must be a list"),
        ({"brokers": [{"name": "b", "number": 1, "host": "h", "port": 0}]}, "brokers[0].port is 0"),
        ({"brokers": [{"name": "b", "host": "h", "port": 1}]}, "brokers[0].number is missing"),
        ({"listen": {"host": "h"}}, "listen.port is missing"),
        ({"kind": "broker"}, "a broker needs `listen`"),
        ({"control": "/" + "x" * 107}, "take a shorter one"),
        ({"topics": "rain"}, "topics must be a list of texts"),
        ({"seeds": ["b2"]}, "seeds names 'b2', which is not in `brokers`"),
        ({"topics": ["{4 ff-0}alert"]}, "topics: no interest: "),
        ({"dimensions": 9}, "dimensions is 9; it must be a whole number from 0 to 8"),
        ({"secret": ""}, "secret is ''; it must be a text, not empty"),
        ({"journal": 5}, "journal is 5; it must be a text, not empty"),
        ({"topics": [f"t{i}" for i in range(MAX_SUBSCRIPTIONS + 1)]}, "has 1025; at most 1024"),
        ({"topics": ["x" * 256]}, "topics: topic of 256 bytes"),
        ({"topics": ["\ud800"]}, "cannot be written as UTF-8"),
    ],
)
def test_an_invalid_setting_is_explained_in_a_sentence(
    wrong: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as error:
        parse({**GOOD, **wrong})
    assert sentence in str(error.value)


def test_a_file_that_is_missing_or_not_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*node.json: No such file"):
        load(str(tmp_path / "node.json"))
    file = tmp_path / "node.json"
    file.write_text("{")
    with pytest.raises(ConfigError, match=r"node.json is not JSON"):
        load(str(file))
    file.write_text("[]")
    with pytest.raises(ConfigError, match=r"node.json: the file must be a JSON object"):
        load(str(file))
    file.write_text(json.dumps(GOOD))
    assert load(str(file)) == parse(GOOD)

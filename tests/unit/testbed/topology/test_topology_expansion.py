"""The expansion of a valid file: names, numbers, addresses and links, always the same."""

import ipaddress
import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.topology import TopologyErrors, load_text
from testbed.topology.diagnostics.source_map import split_lines
from testbed.topology.model import NodeKind, from_json, to_json
from testbed.topology.profiles import PROFILES

HUB = "nodes: {hub: {kind: broker}}\n"


def test_members_of_a_group_are_counted_from_zero() -> None:
    topology = load_text(HUB + "groups: {sensors: {kind: sensor, count: 3}}\n", "x")
    assert [node.name for node in topology.nodes] == ["hub", "sensors-0", "sensors-1", "sensors-2"]
    assert [node.index for node in topology.nodes] == [0, 0, 1, 2]
    assert topology.node("sensors-2").group == "sensors"


def test_numbers_and_addresses_follow_the_file() -> None:
    groups_first = load_text("groups: {s: {kind: sensor, count: 2}}\n" + HUB, "x")
    assert [(n.name, n.number, n.address) for n in groups_first.nodes] == [
        ("s-0", 1, "10.77.0.1"),
        ("s-1", 2, "10.77.0.2"),
        ("hub", 3, "10.77.0.3"),
    ]


def test_five_thousand_nodes_fit_and_all_addresses_differ() -> None:
    topology = load_text(HUB + "groups: {s: {kind: sensor, count: 4999}}\n", "x")
    addresses = {ipaddress.ip_address(node.address) for node in topology.nodes}
    assert len(addresses) == 5000
    assert all(a in ipaddress.ip_network(topology.prefix) for a in addresses)
    with pytest.raises(TopologyErrors, match="5,001 nodes are too many"):
        load_text(HUB + "groups: {s: {kind: sensor, count: 5000}}\n", "x")


def test_the_nearest_default_counts() -> None:
    text = """
defaults: {link: wifi, class: pi-3, sensor: {link: lan, platform: linux/arm64}}
nodes: {hub: {kind: broker}, s: {kind: sensor}, t: {kind: sensor, link: 3g-384k, class: pi-4}}
"""
    nodes = {node.name: node for node in load_text(text, "x").nodes}
    assert [(n.profile, n.board, n.platform) for n in nodes.values()] == [
        ("wifi", "pi-3", None),
        ("lan", "pi-3", "linux/arm64"),
        ("3g-384k", "pi-4", "linux/arm64"),
    ]


def test_without_any_link_a_node_is_on_the_lan() -> None:
    topology = load_text(HUB, "x")
    assert topology.node("hub").profile == "lan"
    assert topology.profiles == (PROFILES["lan"],)


def test_a_files_own_profile_replaces_the_built_in_one() -> None:
    text = "links: {profiles: {lan: {up: {rate: 1kB/s}}}}\n" + HUB
    profile = load_text(text, "x").profile("lan")
    assert (profile.up.rate_bps, profile.down.rate_bps) == (8000.0, None)


def test_the_lab_is_named_by_the_caller_then_the_file_then_its_path() -> None:
    named = "name: inside\n" + HUB
    assert load_text(named, "x", name="given", fallback="stem").name == "given"
    assert load_text(named, "x", fallback="stem").name == "inside"
    assert load_text(HUB, "x", fallback="stem").name == "stem"


def test_every_profile_of_every_node_is_there() -> None:
    for name, profile in PROFILES.items():
        assert profile.name == name
        for shape in (profile.up, profile.down):
            assert shape.jitter_s <= shape.delay_s
            assert 0 <= shape.loss < 0.1
            assert shape.queue_bytes is None or shape.queue_bytes >= 10 * profile.mtu


names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)


@st.composite
def topology_files(draw: st.DrawFn) -> str:
    """Valid files, of many shapes."""
    group_names = draw(st.lists(names, max_size=4, unique=True))
    lines = [f"seed: {draw(st.integers(0, 2**63 - 1))}", "nodes:", "  the-hub: {kind: broker}"]
    lines.append("  the-office: {kind: subscriber, topics: [a, b]}")
    if group_names:
        lines.append("groups:")
    for name in group_names:
        link = draw(st.sampled_from(sorted(PROFILES)))
        lines.append(
            f"  {name!r}: {{kind: sensor, count: {draw(st.integers(1, 9))}, link: {link}}}"
        )
    lines += ["scenario:", f"  duration: {draw(st.integers(10, 99))}s", "  events:"]
    for name in group_names:
        size = draw(st.integers(0, 5000))
        chance = draw(st.floats(0.001, 1).map(lambda x: round(x, 3)))
        lines.append(
            f"  - {{at: {draw(st.integers(0, 9))}s, publish: {{from: '{name}[*]', topic: 'a/{{node}}', "
            f"size: {size}B, priority: {draw(st.integers(1, 5))}, period: 3s, probability: {chance}}}}}"
        )
    if not group_names:
        lines.append("    []")
    return "\n".join(lines) + "\n"


@given(topology_files())
@settings(max_examples=50)
def test_the_same_file_gives_the_same_topology_and_survives_json(text: str) -> None:
    first, second = load_text(text, "x"), load_text(text, "x")
    assert first == second
    assert from_json(json.loads(json.dumps(to_json(first)))) == first
    assert [node.number for node in first.nodes] == list(range(1, len(first.nodes) + 1))
    assert len({node.name for node in first.nodes}) == len(first.nodes)
    assert len(first.of_kind(NodeKind.BROKER)) == 1
    assert all(first.profile(node.profile) for node in first.nodes)


def assert_loads_or_explains(text: str) -> None:
    """The result is a topology or TopologyErrors, nothing else."""
    problems = []
    try:
        load_text(text, "x")
    except TopologyErrors as error:
        problems = error.as_json()
        shown = str(error)
    if problems:
        assert all(problem["message"] for problem in problems)
        lines = [number for number, line in enumerate(split_lines(text), 1) if line.strip()]
        assert all((problem["line"] or 1) <= max(lines, default=1) for problem in problems)
        assert all(character.isprintable() or character == "\n" for character in shown)


pieces = st.sampled_from(
    [
        "nodes", "groups", "links", "profiles", "scenario", "events", "publish", "from", "kind", "broker",
        "sensor", "count", "at", "defaults", "overlay", "method", "star", ": ", "\n", "  ", "- ", "{", "}",
        "[", "]", ", ", "5", "0.5%", "1s", "'", '"', "&a", "*a", "!!x", "---\n", "# ", "|\n", "\t", "高知",
        "null", "~", "on", "sensors[*]", "1e9", "\x85", "?", "<<",
    ]
)  # fmt: skip


@given(st.text() | st.lists(pieces, max_size=40).map("".join))
@settings(max_examples=500)
def test_any_text_is_a_topology_or_gets_topology_errors(text: str) -> None:
    assert_loads_or_explains(text)


KEYS = """name seed links defaults groups nodes overlay delivery scenario capture emulator profiles both up down mtu
rate delay jitter loss queue link platform class broker sensor subscriber kind topics count at method limit_bytes
duration settle events publish from topic priority size period for probability spread enabled snaplen x"""
keys = st.sampled_from(KEYS.split())
scalars = st.sampled_from(
    [
        "",
        "5",
        "-1",
        "1s",
        "1kB",
        "1kbit/s",
        "10%",
        "0.5",
        "true",
        "lan",
        "star",
        "x",
        "'x[*]'",
        "'{node}'",
        "1/s",
    ]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(keys, inner, max_size=4).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(keys, values, max_size=6))
@settings(max_examples=500)
def test_any_structure_is_a_topology_or_gets_topology_errors(sections: dict[str, str]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in sections.items())
    assert_loads_or_explains(text)

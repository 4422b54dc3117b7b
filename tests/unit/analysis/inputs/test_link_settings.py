"""The settings of links over time."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.link_settings import (
    ALWAYS_NS,
    NEVER_NS,
    paths_to_core,
    settings_at,
    settings_of_links,
)

FILED = {"rate_bps": 80_000.0, "delay_s": 0.05}
FAST = {"rate_bps": None, "delay_s": 0.0}


def manifest(*changes: dict[str, Any]) -> dict[str, Any]:
    return {
        "topology": {
            "profiles": [
                {"name": "narrow", "up": FILED, "down": FILED},
                {"name": "lan", "up": FAST, "down": FAST},
            ],
            "nodes": [
                {"name": "gauge", "profile": "narrow", "router": "box"},
                {"name": "box", "profile": "narrow", "router": "mast"},
                {"name": "mast", "profile": "lan"},
                {"name": "broker", "profile": "lan", "router": None},
            ],
        },
        "link_changes": list(changes),
    }


def change(t_ns: int, action: str, link: str = "gauge", **values: Any) -> dict[str, Any]:
    return {
        "t_ns": t_ns,
        "action": action,
        "links": [link],
        "directions": ["up"],
        "shapes": {"up": values},
    }


def test_a_link_is_as_in_the_file_until_it_is_changed_and_again_after_a_reset():
    settings = settings_of_links(
        manifest(
            change(30, "reset"),
            change(10, "set", rate_bps=8_000.0),
            change(15, "cut"),
            change(20, "set", delay_s=1.0),
        )
    )
    asked = [(one.from_ns, one.rate_bps, one.delay_s) for one in settings["gauge", "up"]]
    assert asked == [
        (ALWAYS_NS, 80_000.0, 0.05),
        (10, 8_000.0, 0.05),
        (20, 8_000.0, 1.0),
        (30, 80_000.0, 0.05),
    ]
    assert len(settings["gauge", "down"]) == len(settings["box", "up"]) == 1
    assert settings["broker", "up"][0].byte_s == 0.0, "no limit takes no time"


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.sampled_from(["gauge", "box", "mast"])),
        max_size=6,
        unique=True,
    ),
    st.integers(-10, 60),
)
def test_at_every_moment_a_path_is_the_nodes_own_link_and_those_of_its_routers(moments, t_ns):
    changed = manifest(*(change(t, "set", link, delay_s=float(t)) for t, link in moments))
    settings = settings_of_links(changed)
    (way,) = [
        way
        for way in paths_to_core(changed, settings)
        if (way.node, way.direction) == ("gauge", "up") and way.from_ns <= t_ns < way.until_ns
    ]
    links = ("gauge", "box", "mast")
    then = [settings_at(settings[link, "up"], t_ns) for link in links]
    assert way.routers == ("box", "mast")
    assert way.delays_s == tuple(one.delay_s for one in then)
    assert way.bytes_s == tuple(one.byte_s for one in then)
    own = (float(t) for t, link in moments if link == "gauge" and t <= t_ns)
    assert way.delays_s[0] == max(own, default=0.05)
    assert settings["gauge", "up"][-1].until_ns == NEVER_NS

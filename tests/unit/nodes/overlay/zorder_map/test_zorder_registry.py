"""What a broker of the map knows of others' interests: the newest version counts, in whatever order updates arrive."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.zorder_map.keys import CurveSpace, Keys
from nodes.overlay.zorder_map.registry import Registry
from nodes.protocol.interests import Interest, parse
from nodes.protocol.regions import Spans
from nodes.protocol.wire import Kind, Message
from nodes.protocol.zorder_map_messages import Entry, Toward
from support.overlays.map_network import ALL_CELLS, box_of, place_of, point_of

KEEP_S = 100.0
cells = st.sampled_from(ALL_CELLS)
interests = st.builds(
    lambda low, high, boxed, level: Interest("slope", box_of(low, high) if boxed else None, level),
    cells,
    cells,
    st.booleans(),
    st.sampled_from([1, 4]),
)
entries = st.builds(
    lambda broker, version, wanted, interest: Entry(broker, version, wanted, interest.text),
    st.integers(1, 4),
    st.integers(1, 6),
    st.booleans(),
    interests,
)


def registry() -> Registry:
    return Registry(CurveSpace(Keys(2), 8), KEEP_S)


def newest(updates: list[Entry]) -> dict[tuple[int, str], Entry]:
    """The last update of the highest version, for each interest."""
    found: dict[tuple[int, str], Entry] = {}
    for entry in updates:
        name = entry.broker, entry.text
        if name not in found or entry.version >= found[name].version:
            found[name] = entry
    return found


@given(st.lists(entries, max_size=25), cells | st.none(), st.integers(1, 5))
def test_a_publication_is_for_the_brokers_whose_newest_update_wants_it(
    updates: list[Entry], cell: tuple[int, int] | None, level: int
) -> None:
    known = registry()
    for entry in updates:
        known.note(entry, 0.0)
    place = () if cell is None else place_of(cell)
    message = Message(Kind.PUBLISH, level, topic="slope", place=place)
    for toward in [Toward.HOME, *([Toward.PLACE] if place else [])]:
        boxed = toward is Toward.PLACE
        assert known.matching(message, toward) == sorted(
            {
                entry.broker
                for entry in newest(updates).values()
                if entry.wanted
                and (parse(entry.text).box is not None) == boxed
                and parse(entry.text).wants(message)
            }
        )
    assert len(known) == sum(entry.wanted for entry in newest(updates).values())


@given(st.lists(entries, max_size=15), cells)
def test_interests_that_concern_a_point_are_handed_over_with_it(
    updates: list[Entry], cell: tuple[int, int]
) -> None:
    known, heir = registry(), registry()
    known.merge(updates, 0.0)
    point = point_of(cell)
    heir.merge(known.meeting(Spans([(point, point)])), 0.0)
    message = Message(Kind.PUBLISH, 5, topic="slope", place=place_of(cell))
    assert heir.matching(message, Toward.PLACE) == known.matching(message, Toward.PLACE)


def test_interests_that_are_not_refreshed_or_of_an_earlier_incarnation_are_forgotten() -> None:
    known = registry()
    everywhere = Spans([(0, 2**64 - 1)])
    first, second = 1 << 32, 2 << 32
    assert known.note(Entry(1, first + 1, True, "slope"), 0.0)
    assert known.note(Entry(1, first + 2, True, "valley"), 0.0)
    assert known.note(Entry(2, 1, True, "slope"), 50.0)
    assert known.note(Entry(1, second + 1, True, "river"), 50.0), "it has begun anew"
    assert {entry.text for entry in known.meeting(everywhere)} == {"slope", "river"}
    assert not known.note(Entry(1, first + 3, True, "valley"), 50.0), (
        "an update of the earlier incarnation"
    )
    known.tidy(everywhere, KEEP_S + 10)
    assert len(known) == 2
    known.tidy(everywhere, KEEP_S + 60)
    assert len(known) == 0

"""Problems are shown in the order of the file, safe for terminals, and as JSON."""

import pytest

from testbed.errors import InputError
from testbed.topology import Problem, TopologyErrors, load_text


def wrong(text: str) -> TopologyErrors:
    with pytest.raises(TopologyErrors) as caught:
        load_text(text, "x.yaml")
    return caught.value


def caret_column(problem: Problem) -> tuple[str, int]:
    lines = str(problem).splitlines()
    return lines[1], lines[2].index("^")


def test_problems_are_input_errors_in_the_order_of_lines() -> None:
    error = wrong("zzz: 1\nnodes: {b: {kind: x}}\nseed: y\n")
    assert isinstance(error, InputError)
    assert error.exit_code == 2
    assert [problem.line for problem in error.problems] == [1, 2, 3]


def test_json_names_file_line_column_message_and_hint() -> None:
    (first,) = wrong("nodes: {b: {kind: broker}}\nsed: 1\n").as_json()
    assert first == {
        "file": "x.yaml",
        "line": 2,
        "column": 1,
        "message": "unknown key 'sed'",
        "hint": "did you mean 'seed'?",
    }


def test_the_caret_marks_the_mistake_also_after_japanese_text() -> None:
    problem = Problem("f", 1, 5, "m", snippet="高知: 悪い", width=2)
    assert str(problem).splitlines()[1:3] == ["  1 | 高知: 悪い", "    |       ^^^^"]


def test_long_lines_are_cut_around_the_mistake() -> None:
    line, column = caret_column(Problem("f", 1, 5001, "m", snippet="x" * 5000 + "!" + "y" * 5000))
    assert len(line) < 120
    assert line[column] == "!"


def test_nothing_from_the_file_reaches_the_terminal_raw() -> None:
    error = wrong('nodes: {b: {kind: "\\e[2J"}}\n"\\x9b1m": 1\n')
    assert all(character.isprintable() or character == "\n" for character in str(error))


def test_a_file_wrong_throughout_gives_a_list_that_ends() -> None:
    error = wrong("".join(f"k{i}: 1\n" for i in range(1000)))
    assert len(error.problems) == 200
    assert str(error).endswith("... and 150 more")


def test_consequences_of_a_problem_are_not_problems_of_their_own() -> None:
    text = """
links: {profiles: {slow: {up: {rate: 5}}}}
groups:
  sensors: {kind: sensor, count: many}
  Bad: {kind: sensor, count: 1}
nodes:
  hub: {kind: brokr, link: slow}
scenario:
  duration: 5
  events:
    - {at: 9s, publish: {from: ["sensors[9]", sensors-8, "Bad[*]", hub], topic: x, size: 1B}}
"""
    assert [problem.line for problem in wrong(text).problems] == [2, 4, 5, 7, 9]


def test_a_wrong_count_does_not_make_a_router_unknown() -> None:
    text = """
groups:
  masts: {kind: router, count: many}
nodes:
  hub: {kind: broker}
  gauge: {kind: sensor, router: "masts[9]"}
"""
    assert [problem.line for problem in wrong(text).problems] == [3]


def test_shape_and_reference_problems_come_together() -> None:
    text = "seed: x\nnodes: {hub: {kind: broker, link: nowhere}, b: {kind: broker}}\n"
    assert len(wrong(text).problems) == 3


def test_events_keep_their_places_when_earlier_ones_are_broken() -> None:
    text = """nodes: {hub: {kind: broker}, gauge: {kind: sensor}}
scenario:
  duration: 5s
  events:
    - 5
    - {at: 1s}
    - {at: 1s, publish: {topic: x, size: 1B}}
    - {at: 1s, publish: {from: gage, topic: x, size: 1B}}
"""
    error = wrong(text)
    assert [problem.line for problem in error.problems] == [5, 6, 7, 8]
    assert "gage" in error.problems[-1].message


@pytest.mark.parametrize(
    ("name", "stem", "problems"),
    [
        ("Bad Name", "x", 1),
        (None, "my topology", 1),
        (None, "x" * 31, 1),
        ("good", "my topology", 0),
    ],
)
def test_a_lab_needs_a_proper_name_from_somewhere(
    name: str | None, stem: str, problems: int
) -> None:
    text = "nodes: {hub: {kind: broker}}\n"
    if problems:
        with pytest.raises(TopologyErrors) as caught:
            load_text(text, "x.yaml", name=name, fallback=stem)
        assert len(caught.value.problems) == problems
    else:
        assert load_text(text, "x.yaml", name=name, fallback=stem).name == name


def test_an_event_with_hundreds_of_selectors_should_have_had_a_group() -> None:
    many = ", ".join(["gauge"] * 101)
    text = f"""nodes: {{hub: {{kind: broker}}, gauge: {{kind: sensor}}}}
scenario: {{duration: 1s, events: [{{at: 0s, publish: {{from: [{many}], topic: x, size: 1B}}}}]}}
"""
    assert "more than 100 selectors" in str(wrong(text))


def test_the_same_wrong_selection_is_shown_wherever_it_occurs() -> None:
    event = "    - {at: 0s, publish: {from: [gauge, hub], topic: x, size: 1B}}\n"
    text = f"""nodes: {{hub: {{kind: broker}}, gauge: {{kind: sensor}}}}
scenario:
  duration: 1s
  events:
{event}{event}"""
    assert [problem.line for problem in wrong(text).problems] == [5, 6]


@pytest.mark.parametrize(
    "image",
    [
        "eclipse-mosquitto:2",
        "localhost:5000/their/broker:1.2-rc_1",
        "a.b/c__d/e--f@sha256:" + "0" * 64,
    ],
)
def test_an_image_may_be_called_as_engines_allow(image: str) -> None:
    topology = load_text(f'nodes: {{a: {{kind: external, image: "{image}"}}}}', "x.yaml")
    assert topology.node("a").external.image == image


@pytest.mark.parametrize("image", ["Mosquitto:2", "a:", "a//b", "a:1:2", "a@sha256:12", "a-", "-a"])
def test_an_image_that_no_engine_would_take_is_found_in_the_file(image: str) -> None:
    error = wrong(f'nodes: {{a: {{kind: external, image: "{image}"}}}}')
    assert error.problems[0].message == f"'{image}' cannot be an image's name"

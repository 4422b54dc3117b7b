"""Likely mistakes of a valid file are reported: topics without subscribers, and subscriptions without publishers."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.backends.registry import Choice
from testbed.cli.app import app
from testbed.errors import MissingCapability
from testbed.lab.up import bring_up
from testbed.progress import Event, Warned
from testbed.topology import find_likely_mistakes, load, load_text

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted((ROOT / "topologies").glob("*.yaml")) + sorted(
    (ROOT / "topologies" / "papers").glob("*.yaml")
)


def lab(topics: str, *events: str) -> str:
    lines = "".join(f"  - {{at: 0s, publish: {{{event}, size: 1B}}}}\n" for event in events)
    return f"""nodes:
  hub: {{kind: broker}}
  siren: {{kind: subscriber, topics: {topics}}}
  gauge: {{kind: sensor}}
groups: {{sensors: {{kind: sensor, count: 3}}}}
scenario:
  duration: 5s
  events:
{lines or "    []"}
"""


def mistakes_in(topics: str, *events: str) -> tuple[str, ...]:
    return find_likely_mistakes(load_text(lab(topics, *events), "x"))


TYPO = lab("[alerts]", "from: gauge, topic: alert")


def test_a_mistyped_topic_is_reported_at_both_ends() -> None:
    assert find_likely_mistakes(load_text(TYPO, "x")) == (
        "no node subscribes to 'alert', which gauge publishes; did you mean 'alerts'?",
        "no node publishes 'alerts', to which siren subscribes; did you mean 'alert'?",
    )


def test_without_a_similar_topic_the_existing_topics_are_named() -> None:
    assert mistakes_in("[rain, alerts]", 'from: "sensors[*]", topic: alerts', "from: gauge, topic: soil") == (
        "no node subscribes to 'soil', which gauge publishes; subscribed topics: rain, alerts",
        "no node publishes 'rain', to which siren subscribes; published topics: alerts, soil",
    )  # fmt: skip


def test_many_publishers_of_a_topic_give_one_warning() -> None:
    (first, _) = mistakes_in(
        "[x]", 'from: "sensors[0..1]", topic: y', 'from: ["sensors[*]", gauge], topic: y'
    )
    assert first.startswith("no node subscribes to 'y', which sensors-0 and 3 others publish;")


def test_one_subscription_to_a_topic_per_node_is_enough() -> None:
    event = 'from: "sensors[*]", topic: "readings/{node}"'
    assert mistakes_in("[readings/sensors-1]", event) == ()
    assert mistakes_in("[readings/sensors-1, readings/sensors-7]", event) == (
        "no node publishes 'readings/sensors-7', to which siren subscribes; did you mean 'readings/sensors-2'?",
    )  # fmt: skip


def test_without_events_there_is_no_warning() -> None:
    assert mistakes_in("[alerts]") == ()
    assert find_likely_mistakes(load_text("nodes: {hub: {kind: broker}}", "x")) == ()


def test_without_subscribers_every_published_topic_is_reported() -> None:
    text = re.sub(r"  siren.*\n", "", TYPO)
    assert find_likely_mistakes(load_text(text, "x")) == (
        "no node subscribes to 'alert', which gauge publishes",
    )


def test_hundreds_of_likely_mistakes_give_a_list_that_ends() -> None:
    topics = f"[{', '.join(f't{i}' for i in range(500))}]"
    found = mistakes_in(topics, *(f"from: gauge, topic: x{i}" for i in range(5)))
    assert len(found) == 21
    assert found[-1] == "485 more topics lack publishers or subscribers"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_have_no_likely_mistakes(path: Path) -> None:
    assert find_likely_mistakes(load(path)) == ()


@pytest.mark.parametrize("page", ["README.md", "docs/howto/labs.md"])
def test_the_topologies_of_pages_have_no_likely_mistakes(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        assert find_likely_mistakes(load_text(block, page)) == ()


@pytest.mark.parametrize(
    ("options", "environment", "code"),
    [([], {}, 0), (["--strict"], {}, 3), ([], {"TESTBED_STRICT": "1"}, 3)],
)
def test_validate_warns_and_ends_with_three_if_it_is_strict(
    tmp_path: Path, options: list[str], environment: dict[str, str], code: int
) -> None:
    file = tmp_path / "typo.yaml"
    file.write_text(TYPO)
    done = CliRunner(env=environment).invoke(app, ["validate", str(file), "--json", *options])
    assert done.exit_code == code
    document = json.loads(done.stdout)
    assert document["valid"] is True
    assert document["errors"] == []
    assert [warning["file"] for warning in document["warnings"]] == [str(file)] * 2
    assert "did you mean 'alerts'?" in document["warnings"][0]["message"]
    assert "warning:" in done.stderr


def test_errors_in_one_file_outweigh_warnings_about_another(tmp_path: Path) -> None:
    typo, wrong = tmp_path / "typo.yaml", tmp_path / "wrong.yaml"
    typo.write_text(TYPO)
    wrong.write_text("nodes: {}\n")
    done = CliRunner().invoke(app, ["validate", str(typo), str(wrong), "--json"])
    assert done.exit_code == 2
    document = json.loads(done.stdout)
    assert document["valid"] is False
    assert len(document["errors"]) == 1
    assert len(document["warnings"]) == 2


def test_a_file_without_warnings_is_just_valid() -> None:
    done = CliRunner().invoke(app, ["validate", str(EXAMPLES[0]), "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    (disk,) = document.pop("disk")
    assert disk["file"] == str(EXAMPLES[0])
    assert document == {
        "valid": True,
        "errors": [],
        "warnings": [],
        "incomplete": [],
    }


@pytest.mark.usefixtures("places")
def test_a_lab_that_starts_reports_likely_mistakes_first(tmp_path: Path) -> None:
    file = tmp_path / "typo.yaml"
    file.write_text(TYPO)
    emitted: list[Event] = []

    def no_place(*_: object) -> None:
        raise MissingCapability("no place for a lab")

    with pytest.raises(MissingCapability):
        bring_up(
            load(file), file, None, emitted.append, no_place, lambda _: Choice("none", "a test")
        )  # type: ignore[arg-type]
    warned = [event.text for event in emitted if isinstance(event, Warned)]
    assert warned == list(find_likely_mistakes(load(file)))


def test_an_overlay_of_one_broker_is_reported() -> None:
    one = lab("[a]", "from: gauge, topic: a") + "overlay: {method: sg-tbps}\n"
    (warning,) = find_likely_mistakes(load_text(one, "x"))
    assert warning.startswith("overlay sg-tbps is for several brokers, but there is only one")
    two = one.replace("hub: {kind: broker}", "hub: {kind: broker}\n  other: {kind: broker}")
    assert find_likely_mistakes(load_text(two, "x")) == ()

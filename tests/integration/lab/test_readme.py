"""The README and the page on work with a lab as a new user would follow them: all commands run."""

import re
import shlex
from pathlib import Path

import pytest

from support.pages import blocks_of, shell

README, TUTORIAL, LABS = "README.md", "docs/tutorial/first-question.md", "docs/howto/labs.md"


@pytest.fixture
def blocks(repository) -> dict[str, list[str]]:
    return blocks_of(repository / LABS)


@pytest.fixture
def valley(places, blocks) -> Path:
    (example,) = blocks["yaml"]
    path = places / "valley.yaml"
    path.write_text(example)
    return path


@pytest.mark.netns
@pytest.mark.spark
@pytest.mark.timeout(900)  # six starts of Spark, and several labs
def test_every_command_of_the_page_on_labs_works(blocks, valley, repository, testbed):
    lines = [line for block in blocks["sh"] for line in block.splitlines()]
    assert any(line.startswith("testbed run") for line in lines)
    for line in lines:
        folder = repository if line.startswith(". ") else valley.parent
        done = shell(line, folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_validate_prints_the_mistakes_that_the_page_shows(blocks, valley, testbed):
    (shown,) = [block for block in blocks[""] if "did you mean" in block]
    wrong = re.sub("link: mvno-128k, topics", "link: mvno-218k, topics", valley.read_text())
    valley.write_text(wrong.replace("priority: 5", "priority: 6"))
    done = testbed("validate", valley.name, cwd=valley.parent)
    assert done.stdout.strip() == shown.strip()


@pytest.mark.netns
@pytest.mark.spark
def test_make_demo_prints_the_table_and_the_path_of_the_report(places, repository):
    done = shell("make demo", repository)
    assert done.returncode == 0, done.stderr
    assert re.search(r"backend (docker|netns): ", done.stderr)
    for level in ("5 emergency", "4 evacuate", "2 advisory", "1 routine"):
        assert level in done.stdout
    report = re.search(r"^report: (.*)$", done.stdout, re.M)
    assert report is not None
    assert Path(report[1]).stat().st_size > 10_000


def test_the_two_commands_exist(repository):
    (block,) = blocks_of(repository / README)["console"]
    commands = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    assert commands == [["make", "demo"], ["make", "test"]]
    for command in commands:
        assert shell(f"make --dry-run {command[1]}", repository).returncode == 0


def test_the_question_of_the_readme_is_that_of_the_tutorial_whose_commands_are_tested(repository):
    readme, tutorial = (blocks_of(repository / page) for page in (README, TUTORIAL))
    assert readme["yaml"] == tutorial["yaml"][:1]
    tested = {line for block in tutorial["sh"] for line in block.splitlines()}
    assert {line for block in readme["sh"] for line in block.splitlines()} <= tested


def test_the_readme_has_600_to_800_words(repository):
    text = (repository / README).read_text()
    prose = re.sub(r"^```.*?^```$|\]\([^)]*\)", "", text, flags=re.M | re.S)
    assert 600 <= len(re.findall(r"[A-Za-z][\w'-]*", prose)) <= 800


def test_every_document_the_readme_points_to_is_there(repository):
    text = (repository / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (repository / target).exists(), target

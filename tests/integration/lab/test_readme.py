"""The README as a new user would follow it: the test runs every command in it, and compares the output."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def blocks(repository) -> dict[str, list[str]]:
    """The README's code blocks by language."""
    found: dict[str, list[str]] = {}
    text = (repository / "README.md").read_text()
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        found.setdefault(language, []).append(body)
    return found


@pytest.fixture
def valley(places, blocks) -> Path:
    (example,) = blocks["yaml"]
    path = places / "valley.yaml"
    path.write_text(example)
    return path


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": commands},
        text=True,
        capture_output=True,
        timeout=240,
        check=False,
    )


@pytest.mark.netns
@pytest.mark.spark
@pytest.mark.timeout(900)  # six starts of Spark, and several labs
def test_every_command_of_the_readme_works(blocks, valley, repository, testbed):
    lines = [line for block in blocks["sh"] for line in block.splitlines()]
    assert any(line.startswith("testbed run") for line in lines)
    for line in lines:
        folder = repository if line.startswith(". ") else valley.parent
        done = shell(line, folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_validate_prints_the_mistakes_that_the_readme_shows(blocks, valley, testbed):
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


def test_the_two_commands_exist(blocks, repository):
    commands = [shlex.split(line, comments=True)[1:] for line in blocks["console"][0].splitlines()]
    assert commands == [["make", "demo"], ["make", "test"]]
    for command in commands:
        assert shell(f"make --dry-run {command[1]}", repository).returncode == 0


def test_every_document_the_readme_points_to_is_there(repository):
    text = (repository / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (repository / target).exists(), target

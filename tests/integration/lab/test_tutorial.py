"""The tutorial as a new user would follow it: its files are saved, and its commands run, in the order of the page."""

import re

import pytest

from support.pages import shell

PAGE = "docs/tutorial/first-question.md"


@pytest.mark.netns
@pytest.mark.spark
@pytest.mark.timeout(900)  # two labs, and several starts of Spark
def test_the_files_and_commands_of_the_tutorial_work_in_its_order(places, repository, testbed):
    text = (repository / PAGE).read_text()
    file = places / "slope.yaml"
    ran = []
    for language, body in re.findall(r"^```(yaml|sh)\n(.*?)^```$", text, re.M | re.S):
        if language == "yaml":
            lines = body if body.startswith("name:") else file.read_text() + body
            file.write_text(lines)
            continue
        for line in body.splitlines():
            command, _, comment = line.partition("    # ")
            folder = repository if command.startswith(". ") else places
            done = shell(command, folder)
            wanted = int(comment.removeprefix("exit code ")) if comment else 0
            assert done.returncode == wanted, f"{command}\n{done.stdout}{done.stderr}"
            ran.append(command.split()[1])
    assert {"validate", "run", "why", "compare", "simulate", "sweep", "status"} <= set(ran)


def test_the_topology_of_the_tutorial_has_about_ten_lines(repository):
    text = (repository / PAGE).read_text()
    (topology,) = re.findall(r"^```yaml\n(name:.*?)^```$", text, re.M | re.S)
    assert len(topology.splitlines()) <= 12

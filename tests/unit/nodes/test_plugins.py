"""Methods of other packages: which are known, which come first, and what a node's zipapp takes along."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nodes import plugins
from nodes.plugins import Plugin, PluginError, Registry
from support.plugins import install

POINTS = """
[testbed.deliveries]
fifo = late:METHOD
late = late:METHOD
deep = late.parts:METHOD
"""
FILES = {
    "late/__init__.py": "METHOD = 'late'\n",
    "late/parts.py": "from late import METHOD\n",
    "late/data.txt": "not taken along\n",
}
SHOW = """
import sys
from nodes.delivery import METHODS
print(list(METHODS), METHODS["late"], METHODS["deep"], METHODS["fifo"].scheduler.__name__)
print("importlib.metadata" in sys.modules)
"""
BUILD = """
import sys
from pathlib import Path
from testbed.backends.common.zipapp import build
build(Path(sys.argv[1]))
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry[str]:
    """Methods of our own, and two packages of which both bring `twice`."""
    found = (
        Plugin("own", "os:sep", "one", "1"),
        Plugin("separator", "os:path.sep", "one", "1"),
        Plugin("twice", "os:sep", "one", "1"),
        Plugin("twice", "os:sep", "two", "1"),
        Plugin("wrong", "os:nothing", "two", "1"),
        Plugin("missing", "no_such_module:x", "two", "1"),
    )
    monkeypatch.setattr(plugins, "declared", lambda group: found if group == "parts" else ())
    return Registry("parts", {"own": "ours"})


def test_our_own_methods_come_first_and_others_are_loaded_when_they_are_needed(registry):
    assert registry["own"] == "ours"
    assert registry["separator"] == "/"
    assert list(registry) == ["own", "separator", "twice", "wrong", "missing"]
    assert len(registry) == 5
    assert "separator" in registry
    assert "unknown" not in registry
    assert registry.get("unknown") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("twice", "packages one and two both bring 'twice': uninstall one"),
        ("wrong", "package two 1 brings 'wrong' as 'os:nothing', which cannot be loaded"),
        ("missing", "which cannot be loaded: No module named 'no_such_module'"),
    ],
)
def test_a_method_that_cannot_be_loaded_is_an_error_with_the_package(registry, name, reason):
    with pytest.raises(PluginError, match=reason):
        registry[name]


def test_without_other_packages_there_are_only_our_own():
    assert plugins.declared("testbed.no-such-group") == ()
    assert dict(Registry("testbed.no-such-group", {"own": 1})) == {"own": 1}


def test_the_zipapp_has_the_packages_and_a_node_finds_them_without_metadata(tmp_path: Path):
    folder = install(tmp_path, "late", FILES, POINTS)
    zipapp = tmp_path / "nodes.pyz"
    root = Path(plugins.__file__).parents[1]
    subprocess.run(
        [sys.executable, "-c", BUILD, zipapp],
        env={"PYTHONPATH": f"{folder}:{root}"},
        check=True,
    )
    with zipfile.ZipFile(zipapp) as archive:
        names = set(archive.namelist())
    assert {"nodes_plugins.py", "late/__init__.py", "late/parts.py"} <= names
    assert "late/data.txt" not in names
    # -S: without installed packages, as on a node
    shown = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(zipapp)!r})\n{SHOW}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={},
    )
    assert shown.stdout.splitlines() == [
        "['fifo', 'pq-pc', 'dmpq-pc', 'preemptive', 'deep', 'late'] late late Fifo",
        "False",
    ], shown.stderr

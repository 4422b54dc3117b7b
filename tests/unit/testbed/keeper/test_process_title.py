"""A forked process shows a command line and a mark of its own."""

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from testbed.keeper.process_title import PADDING, PADDING_VARIABLE, marked

FORK = """
import json, os, sys
from pathlib import Path
from testbed.keeper.process_title import ProcessTitle

title = ProcessTitle()
(reading, writing), (until, end) = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    os.close(end)
    title.change([sys.executable, "-m", "nodes", "/lab/n/s1/node.json"], {"ROLE": "node:" + "s" * 40})
    os.write(writing, b".")
    os.read(until, 1)
    os._exit(0)
os.read(reading, 1)
look = lambda who: [Path(f"/proc/{who}/{file}").read_bytes().decode() for file in ("cmdline", "environ")]
print(json.dumps({"child": look(pid), "parent": look("self")}))
"""


def test_the_fork_has_its_own_arguments_and_mark_and_the_parent_keeps_its_own() -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORK, "-" * 40],
        env={
            "PYTHONPATH": ":".join(sys.path),
            "ROLE": "prefork",
            PADDING_VARIABLE: PADDING,
            "LAST": "x",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout)
    arguments, environment = found["child"]
    assert arguments.rstrip("\0").split("\0") == [
        *(sys.executable, "-m", "nodes", "/lab/n/s1/node.json")
    ]
    variables = [line for line in environment.split("\0") if line]
    assert f"ROLE=node:{'s' * 40}" in variables
    assert "LAST=x" in variables
    assert "ROLE=prefork" in found["parent"][1].split("\0")
    assert FORK in found["parent"][0]


names = st.sampled_from(["HOME", "ROLE", "PATH", PADDING_VARIABLE])
values = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=9)


@given(st.dictionaries(names, values), values)
def test_only_the_marks_change_and_the_padding_goes(before: dict[str, str], role: str) -> None:
    block = b"".join(f"{name}={value}\0".encode() for name, value in before.items())
    after = marked(block, {"ROLE": role})
    found = dict(line.split("=", 1) for line in after.decode().split("\0") if line)
    expected = {name: value for name, value in before.items() if name != PADDING_VARIABLE}
    assert found == (expected | {"ROLE": role} if "ROLE" in before else expected)


def test_the_role_of_the_longest_name_fits() -> None:
    block = f"TESTBED_ROLE=prefork\0{PADDING_VARIABLE}={PADDING}\0".encode()
    assert len(marked(block, {"TESTBED_ROLE": f"node:{'n' * 40}"})) < len(block)


def test_the_prefork_worker_names_nodes_like_python_would(repository: Path) -> None:
    from testbed.keeper.prefork_worker import COMMAND

    usage = subprocess.run(
        list(COMMAND), cwd=repository, capture_output=True, text=True, check=False
    )
    assert usage.returncode == 2
    assert "node.json" in usage.stderr

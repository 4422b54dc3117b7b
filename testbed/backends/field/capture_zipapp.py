"""capture.pyz: the capture program of a board in one file, for any Python from 3.11 on.

Holds `testbed.capture.board`, the modules that it loads of ours and of scapy (pure Python), and scapy's licence. It
needs no protocols of scapy, as frames stay bytes. As with nodes.pyz, the same sources always give the same bytes.
"""

from collections.abc import Iterator
from pathlib import Path

import nodes
import testbed
from testbed.backends.common.zipapp import folder_of, licence, pack, with_byte_code
from testbed.errors import TestbedError

MAIN = b'''\
"""Captures an interface of a board: python3 capture.pyz --help"""

import sys

from testbed.capture.board import main

sys.exit(main())
'''
OURS = (
    "testbed/__init__.py",
    "testbed/errors.py",
    *(
        f"testbed/capture/{name}.py"
        for name in ("__init__", "board", "bpf_filter", "link", "pcap", "records", "sockets")
    ),
    "nodes/__init__.py",
    *(
        f"nodes/board/{name}.py"
        for name in ("__init__", "bpf", "errors", "links", "plan")
    ),
)  # fmt: skip
# The modules that `import testbed.capture.board` loads on a machine without scapy's cache.
SCAPY = (
    *("__init__", "base_classes", "compat", "config", "consts", "dadict", "data", "error", "fields"),
    *("interfaces", "main", "packet", "plist", "pton_ntop", "supersocket", "themes", "utils"),
    *("utils6", "volatile", "arch/__init__", "arch/common", "arch/linux/__init__"),
    *("arch/linux/rtnetlink", "libs/__init__", "libs/ethertypes", "libs/extcap", "libs/structures"),
    "libs/test_pyx",
)  # fmt: skip
# Long tables that scapy loads at its start, which takes seconds on a board; a capture does not need them.
EMPTY_TABLES = {
    "scapy/libs/bluetoothids.py": b'"""Left empty: a capture needs no names of makers."""\n\nDATA = {}\n',
    "scapy/libs/manuf.py": b'"""Left empty: a capture needs no names of makers."""\n\nDATA = ""\n',
}


def build(target: Path) -> Path:
    """Write the file (whole or not at all) and return its path."""
    return pack(target, _contents())


def sources() -> list[tuple[str, bytes]]:
    """Name and content of each source, sorted."""
    return sorted(_sources())


def _contents() -> Iterator[tuple[str, bytes]]:
    yield from with_byte_code(sources())
    yield from licence("scapy")


def _sources() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", MAIN
    yield from EMPTY_TABLES.items()
    here = {"testbed": Path(testbed.__path__[0]), "nodes": Path(nodes.__path__[0])}
    for name in OURS:
        yield name, (here[name.split("/")[0]].parent / name).read_bytes()
    scapy = folder_of("scapy")
    for part in SCAPY:
        try:
            yield f"scapy/{part}.py", (scapy / f"{part}.py").read_bytes()
        except FileNotFoundError as error:
            raise TestbedError(
                f"the installed scapy has no {part}.py",
                "install the version that constraints.txt names",
            ) from error

"""Collects the files of boards, checks them by their sums, and resumes interrupted transfers."""

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.field import playbooks
from testbed.backends.field.board_files import connection_variables, write_inventory
from testbed.backends.field.boards import Board
from testbed.backends.field.connections import (
    BoardError,
    Connections,
    failures_by_node,
    for_each_board,
)
from testbed.backends.field.deployment import NOT_YET, BoardPaths, Deployed, Deployment, folder
from testbed.jsonfiles import read_json, write_json
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit, StageAdvanced, StageEnded, StageStarted

STAGE = "collecting from boards"
COLLECT = "collect.yml"
COLLECTED = "collected"  # in boards.json: complete, partial or nothing
COMPLETE, PARTIAL, NOTHING = "complete", "partial", "nothing"
_BLOCK = 1 << 20
LOG = "node.jsonl"
SUMS_S = 300.0


def known_boards(run: RunPlace) -> dict[str, dict[str, Any]]:
    """boards.json of the run's folder: node -> facts on its board."""
    return read_json(run.folder / "boards.json") or {}


def note_board(run: RunPlace, node: str, facts: Mapping[str, Any]) -> None:
    """Add facts on a board."""
    known = known_boards(run)
    known[node] = {**known.get(node, {}), **facts}
    write_json(run.folder / "boards.json", known)


def run_files(run: RunPlace, node: str) -> dict[str, Path]:
    """The files of a board, and their paths in the run's folder."""
    return {
        LOG: run.log(node),
        "node.stderr": run.logs / f"{node}.stderr",
        "capture.pcap": run.pcap(node),
        "capture.json": run.folder / "boards" / f"{node}.capture.json",
    }


def collect(
    connections: Connections,
    deployment: Deployment,
    lab: LabPlace,
    run: RunPlace,
    emit: Emit,
    *,
    stop: bool,
) -> tuple[dict[str, dict[str, int]], str]:
    """Collect captures and logs of all boards that answer; packet counts by node, and a sentence on missing data."""
    known, there = known_boards(run), Deployed(lab).all()
    boards = [
        board
        for board in deployment.boards
        if board.node in there and known.get(board.node, {}).get(COLLECTED) != COMPLETE
    ]
    emit(StageStarted(STAGE, len(boards)))
    failed = connections.open(boards)
    able = [board for board in boards if board.node not in failed]
    sums, refused = (
        _sums(deployment, lab, run, able, emit) if stop else _sums_meanwhile(connections, lab, able)
    )
    failed |= refused
    able = [board for board in able if board.node not in failed]
    board_paths = BoardPaths(lab.name)

    def collect_board(board: Board) -> str:
        was_there = there[board.node]["fingerprint"] != NOT_YET
        lost = was_there and not sums[board.host]
        trouble = f"{board.host} has nothing of this lab any more" if lost else ""
        for entry in sums[board.host]:
            try:
                fetch(connections, board, board_paths, entry, run_files(run, board.node))
            except BoardError as error:
                trouble = error.message
        emit(StageAdvanced(STAGE, detail=board.host))
        return trouble

    (run.folder / "boards").mkdir(exist_ok=True)
    cut_off = {
        b.node: why for b, why in zip(able, for_each_board(collect_board, able), strict=True) if why
    }
    for board in boards:
        why = failed.get(board.node) or cut_off.get(board.node) or ""
        here = any(path.exists() for path in run_files(run, board.node).values())
        whole = stop and not why  # a running node still writes
        state = COMPLETE if whole else PARTIAL if here else NOTHING
        note_board(run, board.node, {COLLECTED: state, "missing": why})
    emit(StageEnded(STAGE))
    return _counts(run, deployment.boards), _missing(failed | cut_off)


def _sums(
    deployment: Deployment,
    lab: LabPlace,
    run: RunPlace,
    boards: Sequence[Board],
    emit: Emit,
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Stop nodes and captures; return the files by host, and the reasons of failures by node."""
    if not boards:
        return {}, {}
    hosts = {board.host: connection_variables(board) for board in boards}
    own = write_inventory(folder(lab) / "collect-inventory.json", hosts)
    outcome = playbooks.play(
        COLLECT,
        deployment.inventories(own),
        [*hosts],
        {"testbed_lab": lab.name, "testbed_run": run.run, "testbed_collect_stop": True},
        run.folder / "ansible",
        lambda host, task: emit(StageAdvanced(STAGE, 0, f"{host}: {task}")),
    )
    listed = {host: facts.get("testbed_collected", []) for host, facts in outcome.facts.items()}
    by_host = {board.host: board.node for board in boards}
    refused = {by_host[host]: why for host, why in outcome.reasons.items() if host in by_host}
    return {host: listed.get(host, []) for host in hosts}, refused


def _sums_meanwhile(
    connections: Connections, lab: LabPlace, boards: Sequence[Board]
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """The same while nodes run: each file as long as it is now. Skip logs that the watcher copies anyway."""
    board_paths = BoardPaths(lab.name)
    found: dict[str, list[dict[str, Any]]] = {}

    def ask(board: Board) -> None:
        words = ("python3", board_paths.nodes_pyz, "board", "sums", board_paths.data)
        listed = json.loads(connections.command(board, words, as_root=True, timeout_s=SUMS_S))
        found[board.host] = [
            {**entry, "name": entry["file"], "path": f"{board_paths.data}/{entry['file']}"}
            for entry in listed
            if not (board.shape and entry["file"] == LOG)
        ]

    return found, failures_by_node(ask, boards)


def fetch(
    connections: Connections,
    board: Board,
    board_paths: BoardPaths,
    entry: Mapping[str, Any],
    targets: Mapping[str, Path],
) -> None:
    """Fetch one file, from where an earlier attempt ended; BoardError if it is not complete afterwards."""
    name, size = str(entry["name"]), int(entry["size"])
    target = targets.get(name)
    if target is None:
        return
    path, have = str(entry["path"]), _size(target)
    if have <= size:
        _append(connections, board, path, board_paths, target, have, size)
        if _sum(target) == entry["sha256"]:
            return
    # Do not overwrite the local copy: it may stay the only one.
    anew = target.with_name(f".{target.name}.anew")
    try:
        _append(connections, board, path, board_paths, anew, 0, size)
        if _sum(anew) != entry["sha256"]:
            raise BoardError(f"{board.host}: {name} is not whole ({_size(anew)} of {size} bytes)")
        anew.replace(target)
    finally:
        anew.unlink(missing_ok=True)


def _append(
    connections: Connections,
    board: Board,
    path: str,
    board_paths: BoardPaths,
    target: Path,
    offset: int,
    size: int,
) -> None:
    """Append the bytes after the offset, up to the size of the sum: a file may still grow."""
    words = ("python3", board_paths.nodes_pyz, "board", "read", path, str(offset))
    argv = connections.argv(board, words, as_root=True)
    with (
        target.open("r+b" if target.exists() else "w+b") as file,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process,
    ):
        assert process.stdout is not None
        file.seek(offset)
        file.truncate()
        while offset < size and (block := process.stdout.read(min(_BLOCK, size - offset))):
            file.write(block)
            offset += len(block)
        process.stdout.close()


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _counts(run: RunPlace, boards: Sequence[Board]) -> dict[str, dict[str, int]]:
    counts = {}
    for board in boards:
        statistics = read_json(run_files(run, board.node)["capture.json"])
        if isinstance(statistics, dict):
            counts[board.node] = {
                name: int(statistics.get(name, 0)) for name in ("packets", "bytes", "dropped")
            }
    return counts


def _missing(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{node} is not all here ({why})" for node, why in sorted(reasons.items()))

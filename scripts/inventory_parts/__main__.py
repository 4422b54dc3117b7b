"""Write an inventory of the product into a folder of JSON files, and compare two such folders."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.inventory_parts import comparing, journeys, mutants, running, speed, static
from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames
from scripts.inventory_parts.trees import Tree, say

EXAMPLES = """examples:
  scripts/inventory write before                          the whole inventory of this tree
  scripts/inventory write --quick --only tests,names DIR  some parts
  scripts/inventory write --only traces --match 'demo*' DIR
  scripts/inventory write --tree ../old before            another checkout
  scripts/inventory compare before after --renames docs/dev/renames.md
  scripts/inventory numbers                               the import graph as a table
  scripts/inventory journeys --tree ../old                the files that a message, a delay and `up` pass
  scripts/inventory speed ../old . --pairs 20             interleaved pairs of calls
  scripts/inventory mutants --modules testbed.plan --sample 20 DIR
  scripts/inventory mutants --same-as before after        the same mutants in a tree whose modules moved

parts:
  goldens    hashes and texts of tests/golden, and byte constants in tests
  json       key paths of the documents that commands print with --json
  tests      ids of all tests, and hashes of their functions without identifiers
  options    every command's options and arguments
  schema     JSON Schemas of topology and scenario files
  tables     schemas that the analysis declares, and its tables of the sample run
  traces     hashes of what the simulator writes for each sample topology
  imports    the import graph and its numbers
  speed      CPU time and imported modules of commands, memory of a broker
  names      public names of every module
  structure  hashes of every definition's syntax without identifiers

Exit codes of compare: 0 nothing is lost, 1 something is, 2 wrong input.
"""

Writer = Callable[[Tree, argparse.Namespace], Any]
WRITERS: dict[str, Writer] = {
    "goldens": lambda tree, _given: static.goldens(tree),
    "names": lambda tree, _given: static.names(tree),
    "structure": lambda tree, _given: static.structure(tree),
    "imports": lambda tree, _given: static.imports(tree),
    "options": lambda tree, _given: running.options(tree),
    "schema": lambda tree, _given: running.schema(tree),
    "tests": lambda tree, _given: static.tests(tree),
    "speed": lambda tree, _given: speed.speed(tree),
    "tables": lambda tree, given: running.tables(tree, given.quick),
    "json": lambda tree, given: running.json_keys(tree, given.quick),
    "traces": lambda tree, given: running.traces(
        tree,
        given.quick,
        given.match,
        given.jobs,
        lambda found: _keep(given.folder / "traces.json", found),
    ),
}


def write(given: argparse.Namespace) -> int:
    tree = Tree(given.tree.resolve())
    given.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for part in _chosen(given.only, list(WRITERS)):
        say(f"{part} ...")
        began = time.monotonic()
        try:
            found = WRITERS[part](tree, given)
        except (RuntimeError, OSError, SyntaxError) as error:
            say(f"{part} failed: {error}")
            failed.append(part)
            continue
        _keep(given.folder / f"{part}.json", found)
        say(f"{part} took {time.monotonic() - began:.0f} s")
    if failed:
        say(f"not written: {', '.join(failed)}")
    return 1 if failed else 0


def _keep(path: Path, found: Any) -> None:
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _chosen(only: str | None, known: list[str]) -> list[str]:
    chosen = only.split(",") if only else known
    if unknown := [part for part in chosen if part not in known]:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(known)}")
    return chosen


def compare(given: argparse.Namespace) -> int:
    for folder in (given.old, given.new):
        if not folder.is_dir():
            print(f"{folder} is no folder", file=sys.stderr)
            return 2
    renames = Renames.read(given.renames)
    equal = kept = True
    for part in _chosen(given.only, list(comparing.PARTS)):
        paths = [folder / f"{part}.json" for folder in (given.old, given.new)]
        if not all(path.exists() for path in paths):
            print(f"{part}: not in both inventories")
            continue
        found = Findings(given.all)
        old, new = (json.loads(path.read_text()) for path in paths)
        comparing.PARTS[part](old, new, renames, found)
        found.show(part)
        equal &= found.are_none
        kept &= not found.losses
    print("equal" if equal else "nothing is lost" if kept else "something is lost or differs")
    return 0 if kept else 1


def numbers(given: argparse.Namespace) -> int:
    folders = {"value" if given.old is None else "now": given.tree}
    if given.old is not None:
        folders = {"before": given.old, **folders}
    graphs = {name: static.imports(Tree(each.resolve())) for name, each in folders.items()}
    table = static.numbers_table({name: each["numbers"] for name, each in graphs.items()})
    return _shown_or_kept(table, given.page, "numbers")


def show_journeys(given: argparse.Namespace) -> int:
    only = _chosen(given.only, list(journeys.JOURNEYS))
    old = json.loads(given.old.read_text()) if given.old else None
    found = journeys.journeys(Tree(given.tree.resolve()), only)
    if given.json:
        print(json.dumps({name: each.as_json() for name, each in found.items()}, indent=1))
        return 0
    text = journeys.shown(found)
    if old is not None:
        text = f"{journeys.compared(old, found)}\n\n{text}"
    return _shown_or_kept(text, given.page, "journeys")


def _shown_or_kept(text: str, page: Path | None, section: str) -> int:
    """Print it, or put it into a page between `<!-- begin: SECTION -->` and `<!-- end: SECTION -->`."""
    if page is None:
        print(text)
        return 0
    before, begin, rest = page.read_text().partition(f"<!-- begin: {section} -->\n")
    _, end, after = rest.partition(f"<!-- end: {section} -->")
    if not end:
        print(f"{page} has no section {section}", file=sys.stderr)
        return 2
    page.write_text(f"{before}{begin}{text}\n{end}{after}")
    return 0


def compare_speed(given: argparse.Namespace) -> int:
    old, new = Tree(given.old.resolve()), Tree(given.new.resolve())
    return 0 if speed.compare_speed(old, new, given.pairs, given.memory_pairs) else 1


def mutate(given: argparse.Namespace) -> int:
    tree = Tree(given.tree.resolve())
    same = given.same_as / "mutants.json" if given.same_as else None
    wanted = json.loads(same.read_text()) if same else None
    modules = given.modules.split(",") if given.modules else None
    chosen = given.tests.split(",") if given.tests else None
    renames = Renames.read(given.renames)
    found = mutants.mutants(tree, modules, chosen, given.sample, given.seed, wanted, renames)
    given.folder.mkdir(parents=True, exist_ok=True)
    _keep(given.folder / "mutants.json", found)
    print(mutants.scores_table(found))
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "scripts/inventory",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    tree = argparse.ArgumentParser(add_help=False)
    tree.add_argument("--tree", type=Path, default=Path.cwd(), help="a checkout; default: here")

    each = commands.add_parser("write", parents=[tree], help="write an inventory")
    each.add_argument("folder", type=Path, help="where the JSON files go")
    each.add_argument("--only", metavar="PARTS", help="these parts only, divided by commas")
    each.add_argument(
        "--quick",
        action="store_true",
        help=f"no Spark, and no simulation of more than {running.QUICK_CPU_S} s of CPU time",
    )
    each.add_argument("--match", default="*", help="traces: a pattern of names, e.g. 'demo*'")
    each.add_argument("--jobs", type=int, default=1, help="simulations at a time")
    each.set_defaults(do=write)

    each = commands.add_parser("compare", help="compare two inventories")
    each.add_argument("old", type=Path)
    each.add_argument("new", type=Path)
    each.add_argument("--renames", type=Path, help="a Markdown file with rows | `old` | `new` |")
    each.add_argument("--only", metavar="PARTS", help="these parts only, divided by commas")
    each.add_argument("--all", action="store_true", help="show every difference")
    each.set_defaults(do=compare)

    page = argparse.ArgumentParser(add_help=False)
    page.add_argument("--page", type=Path, help="put it into this Markdown file's section")

    each = commands.add_parser("numbers", parents=[tree, page], help="the import graph as a table")
    each.add_argument("--old", type=Path, help="another checkout, for a column beside")
    each.set_defaults(do=numbers)

    each = commands.add_parser(
        "journeys", parents=[tree, page], help="which files run for a message, a delay row and `up`"
    )
    each.add_argument(
        "--only",
        metavar="JOURNEYS",
        default=journeys.USUAL,
        help=f"of {', '.join(journeys.JOURNEYS)}; divided by commas; default: {journeys.USUAL}",
    )
    each.add_argument("--json", action="store_true", help="print a JSON document")
    each.add_argument("--old", type=Path, help="a JSON document of an older tree, to compare with")
    each.set_defaults(do=show_journeys)

    each = commands.add_parser("speed", help="CPU time and memory of two checkouts, in pairs")
    each.add_argument("old", type=Path)
    each.add_argument("new", type=Path)
    each.add_argument("--pairs", type=int, default=20, help="pairs of calls of each command")
    each.add_argument("--memory-pairs", type=int, default=5, help="pairs of brokers")
    each.set_defaults(do=compare_speed)

    each = commands.add_parser("mutants", parents=[tree], help="which mutants the unit tests kill")
    each.add_argument("folder", type=Path, help="where mutants.json goes")
    each.add_argument("--modules", help="dotted modules, divided by commas; default: a fixed list")
    each.add_argument("--tests", help="test files; default: those known, or that import the module")
    each.add_argument("--sample", type=int, default=10, help="mutants of each module")
    each.add_argument("--seed", type=int, default=1)
    each.add_argument("--same-as", type=Path, help="an inventory whose mutants are made again")
    each.add_argument("--renames", type=Path, help="with --same-as: where its test files are now")
    each.set_defaults(do=mutate)
    return made


def main() -> int:
    given = parser().parse_args()
    code: int = given.do(given)
    return code


if __name__ == "__main__":
    sys.exit(main())

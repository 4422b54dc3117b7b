"""Mutation scores: small faults put into modules, and whether the unit tests notice.

Cosmic Ray's operators make the faults. A mutant's key is the structure of the function it stands in, the operator
and the occurrence: so the same mutants are found again after modules moved and names changed.
"""

import ast
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.inventory_parts import digests
from scripts.inventory_parts.renames import Renames
from scripts.inventory_parts.trees import Finished, Module, Tree, say, scratch

# Delivery methods, custody, reassembly and the plan, with their tests. `--same-as` finds the functions of an older
# inventory by their structure, and the tests by the rename table.
_DELIVERY = (
    "tests/unit/nodes/delivery/test_fifo_model.py",
    "tests/unit/nodes/delivery/test_delivery_*.py",
)
_CUSTODY = (
    "tests/unit/nodes/overlay/reliability/test_custody.py",
    "tests/unit/nodes/overlay/reliability/test_outbox.py",
)
_STREAMS = (
    "tests/unit/analysis/streams/test_range_set.py",
    "tests/unit/analysis/streams/test_stream_reassembly.py",
    "tests/unit/analysis/protocols/test_reading_in_windows.py",
)
MODULES = {
    "nodes.delivery.fifo": _DELIVERY,
    "nodes.delivery.pacing": _DELIVERY,
    "nodes.delivery.pq_pc": _DELIVERY,
    "nodes.delivery.dmpq_pc": _DELIVERY,
    "nodes.delivery.preemptive": _DELIVERY,
    "nodes.overlay.reliability.custody": _CUSTODY,
    "nodes.overlay.reliability.outbox": _CUSTODY,
    "analysis.streams.range_set": _STREAMS,
    "analysis.streams.reassembly": _STREAMS,
    "testbed.plan": ("tests/unit/testbed/plan/*.py",),
}
SKIPPED = ("core/Variable", "core/NoOp")  # the first need arguments, the last changes nothing
PATIENCE = 5  # times the CPU time of the tests without a fault: then the fault is an endless loop
LEAST_PATIENCE_S = 30
NOT_COPIED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")


@dataclass(frozen=True)
class Mutant:
    """One fault: the operator's occurrence in the module, and in the function."""

    key: str
    module: Module
    function: str
    definition: str  # the function's structure
    operator: str
    occurrence: int
    line: int


def mutants(
    tree: Tree,
    modules: Sequence[str] | None,
    tests: Sequence[str] | None,
    sample: int,
    seed: int,
    wanted: Mapping[str, Any] | None,
    renames: Renames,
) -> dict[str, Any]:
    """The outcome of each mutant of the sample, and the score: killed / all."""
    chosen = list(_again(tree, wanted) if wanted else _sampled(tree, modules, sample, seed))
    say(f"mutants: {len(chosen)} in {len({each.module.name for each in chosen})} modules")
    found: dict[str, Any] = {}
    with scratch() as folder:
        copy = folder / "tree"
        shutil.copytree(
            tree.folder, copy, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True
        )
        files = {each.key: _tests(tree, each, tests, wanted, renames) for each in chosen}
        groups = dict.fromkeys((each.module.name, files[each.key]) for each in chosen)
        sound = {paths: _sound(Tree(copy), paths) for paths in dict.fromkeys(files.values())}
        for name, paths in groups:
            ours = [each for each in chosen if (each.module.name, files[each.key]) == (name, paths)]
            found.update(_outcomes(tree, Tree(copy), ours, paths, sound[paths]))
    killed = sum(each["outcome"] == "killed" for each in found.values())
    missing = sorted(set(wanted["mutants"]) - set(found)) if wanted else []
    return {
        "seed": wanted["seed"] if wanted else seed,
        "sample": sample,
        "score": f"{killed}/{len(found)}",
        "not_found": missing,
        "mutants": found,
    }


def _sampled(tree: Tree, modules: Sequence[str] | None, sample: int, seed: int) -> Iterator[Mutant]:
    known = {module.name: module for module in tree.product()}
    for name in modules or MODULES:
        if name not in known:
            raise SystemExit(f"no module {name}; name them with --modules, or use --same-as")
        every = {each.key: each for each in _mutants(known[name], seed)}
        in_order = sorted(every.values(), key=lambda each: each.key)
        yield from itertools.islice((each for each in in_order if _is_python(each)), sample)


def _mutated(mutant: Mutant) -> str:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    operator = get_operator(mutant.operator)()
    return str(mutate_code(mutant.module.text, operator, mutant.occurrence))


def _is_python(mutant: Mutant) -> bool:
    """Not so where an operator took the star before keyword arguments for a product."""
    try:
        ast.parse(_mutated(mutant))
    except SyntaxError:
        return False
    return True


def _tests(
    tree: Tree,
    mutant: Mutant,
    given: Sequence[str] | None,
    wanted: Mapping[str, Any] | None,
    renames: Renames,
) -> tuple[str, ...]:
    """The test files of a mutant: those given, those of the other inventory, the known ones, or by imports."""
    if given:
        return tuple(given)
    if wanted:
        return tuple(dict.fromkeys(map(renames.file, wanted["mutants"][mutant.key]["tests"])))
    if patterns := MODULES.get(mutant.module.name):
        found = [path for each in patterns for path in sorted(tree.folder.glob(each))]
        return tuple(str(path.relative_to(tree.folder)) for path in found)
    return tuple(tests_of(tree, mutant.module.name))


def _again(tree: Tree, wanted: Mapping[str, Any]) -> Iterator[Mutant]:
    """The mutants of another inventory, wherever their functions stand now."""
    structures = {each["definition"] for each in wanted["mutants"].values()}
    seen: set[str] = set()
    for module in tree.product():
        if any(digests.structure(node) in structures for _, node in _functions(module)):
            for each in _mutants(module, wanted["seed"]):
                if each.key in wanted["mutants"] and each.key not in seen:
                    seen.add(each.key)
                    yield each


def _functions(module: Module) -> Iterator[tuple[str, digests.Definition]]:
    for name, node in digests.definitions(module.syntax):
        if not isinstance(node, ast.ClassDef):
            yield name, node


def _mutants(module: Module, seed: int) -> Iterator[Mutant]:
    """All mutants inside of functions, but for those of annotations."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    functions = list(_functions(module))
    structures = {name: digests.structure(node) for name, node in functions}
    apart = list(_annotations(module.syntax))
    nodes = list(ast_nodes(get_ast(module.text)))
    for operator_name in sorted(operator_names()):
        if operator_name.startswith(SKIPPED):
            continue
        operator = get_operator(operator_name)()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        within: Counter[str] = Counter()
        for occurrence, (start, _stop) in enumerate(places):
            function = _enclosing(functions, start[0])
            if function is None or any(low <= start < high for low, high in apart):
                continue
            definition = structures[function]
            key = digests.digest(f"{seed} {definition} {operator_name} {within[function]}")
            within[function] += 1
            yield Mutant(key, module, function, definition, operator_name, occurrence, start[0])


def _enclosing(functions: Sequence[tuple[str, digests.Definition]], line: int) -> str | None:
    for name, node in functions:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            return name
    return None


def _annotations(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(tree):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(each, ast.expr):
                end = (each.end_lineno or each.lineno, each.end_col_offset or each.col_offset)
                yield (each.lineno, each.col_offset), end


def tests_of(tree: Tree, module: str) -> list[str]:
    """The unit tests that import the module, else those whose support does."""
    tests = tree.folder / "tests"
    support = {
        name: path
        for path in (tests / "support").rglob("*.py")
        for name in (path.stem, ".".join(path.relative_to(tests).with_suffix("").parts))
    }
    indirect = {name for name, path in support.items() if module in _imported(path)}
    unit = sorted((tests / "unit").rglob("test_*.py"))
    imported = {str(path.relative_to(tree.folder)): _imported(path) for path in unit}
    direct = [path for path, names in imported.items() if module in names]
    return direct or [path for path, names in imported.items() if indirect & names]


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return found


def _outcomes(
    tree: Tree, copy: Tree, chosen: Sequence[Mutant], tests: Sequence[str], sound: Finished
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the tests say to each mutant of a module. `sound`: what they said without a fault."""
    module = chosen[0].module
    path = copy.folder / module.path.relative_to(tree.folder)
    limit_s = max(LEAST_PATIENCE_S, round(PATIENCE * sound.cpu_s))
    for number, each in enumerate(chosen, 1):
        _put(path, _mutated(each), number)
        done = _tested(copy, tests, limit_s)
        outcome = "survived" if done.code == 0 else "killed"
        say(f"{module.name}:{each.line} {each.function} {each.operator}: {outcome}")
        yield (
            each.key,
            {
                "module": module.name,
                "where": f"{module.name}:{each.function}",
                "line": each.line,
                "definition": each.definition,
                "operator": each.operator,
                "tests": list(tests),
                "outcome": outcome,
                "by": _killer(done),
            },
        )
    _put(path, module.text, len(chosen) + 1)


def _killer(done: Finished) -> str:
    """The test that failed first."""
    if done.timed_out:
        return "(no end)"
    lines = (line.split(" - ")[0] for line in done.out.splitlines())
    return next((line for line in lines if line.startswith(("FAILED", "ERROR"))), "")


def _sound(copy: Tree, tests: Sequence[str]) -> Finished:
    """The tests without a fault, which must pass."""
    say(f"without a fault: {len(tests)} test files, {', '.join(tests[:3])} ...")
    done = _tested(copy, tests) if tests else None
    if done is None or done.code:
        told = done.out[-1500:] if done else "there are none"
        raise SystemExit(f"the tests fail without a fault: {', '.join(tests)}\n{told}")
    return done


def _put(path: Path, text: str, number: int) -> None:
    """Each version gets a time of its own: byte code is known by time and size."""
    path.write_text(text)
    moment = 1_000_000_000 + 2 * number
    os.utime(path, (moment, moment))


def _tested(copy: Tree, tests: Sequence[str], cpu_limit_s: int | None = None) -> Finished:
    shutil.rmtree(copy.folder / ".hypothesis", ignore_errors=True)  # it remembers other faults
    given = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
    return copy.run(given, copy.folder, cpu_limit_s=cpu_limit_s)


def scores_table(found: Mapping[str, Any]) -> str:
    """Killed and all, by module."""
    total, killed = Counter[str](), Counter[str]()
    for each in found["mutants"].values():
        total[each["module"]] += 1
        killed[each["module"]] += each["outcome"] == "killed"
    lines = [f"| `{name}` | {killed[name]} | {total[name]} |" for name in total]
    last = f"| all | {killed.total()} | {total.total()} |"
    return "\n".join(["| module | killed | mutants |", "| --- | --- | --- |", *lines, last])

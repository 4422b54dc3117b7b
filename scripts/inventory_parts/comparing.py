"""Two inventories side by side, part by part, under a rename table."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from scripts.inventory_parts import documents
from scripts.inventory_parts.comparing_goldens import goldens
from scripts.inventory_parts.comparing_tests import tests
from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames

MODULES_LIMIT = 1.05
MUCH_SLOWER = 1.5  # of two single measurements; pairs are exact


def json_keys(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    for command in [*old, *(name for name in new if name not in old)]:
        if command not in new:
            found.note([f"{command}: only in the old inventory"])
            continue
        if command not in old:
            found.note([f"{command}: only in the new inventory"])
            continue
        before, after = old[command], new[command]
        if before["exit"] != after["exit"]:
            found.lose([f"{command}: exit code {before['exit']} -> {after['exit']}"])
        keys = {renames.key_path(key) for key in before["keys"]}
        now = set(after["keys"])
        found.lose(f"{command}: {key} is gone" for key in sorted(keys - now))
        found.note(f"{command}: {key} is new" for key in sorted(now - keys))


def schema(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    """The schemas, with keys and definitions called as the table calls the topology's keys and the classes."""
    known = renames.within("topology").with_words(renames.classes())
    each = documents.differences(documents.called_as_now(old, new, known), new)
    documents.report_but(found, each, {"description": "descriptions have other words"})


def options(old: Any, new: Any, _renames: Renames, found: Findings) -> None:
    texts = dict.fromkeys(("help", "epilog"), "help texts have other words")
    names = {"name[0]": "arguments have another name inside, and the same one for a user"}
    each = documents.differences(_by_option(old), _by_option(new))
    documents.report_but(found, each, texts | names)


def _by_option(commands: Any) -> Any:
    """Parameters under what a user sees of them: an option's names, an argument's place and word."""
    return {
        name: {**command, "parameters": _by_sight(command["parameters"])}
        for name, command in commands.items()
    }


def _by_sight(parameters: list[Any]) -> dict[str, Any]:
    arguments = [each for each in parameters if "Argument" in each["kind"]]
    seen = {
        f"argument {index + 1} {each['metavar'] or each['name'][0].upper()}": each
        for index, each in enumerate(arguments)
    }
    return seen | {"/".join(each["name"]): each for each in parameters if each not in arguments}


def tables(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    after = new["declared"]
    unused = dict(after)
    rest = {}
    for where, declared in old["declared"].items():
        module, _, name = where.partition(":")
        mapped = ":".join(renames.name(module, name))
        columns = [[renames.word(column), kind] for column, kind in declared]
        if after.get(mapped) == columns:
            unused.pop(mapped, None)
        else:
            rest[where] = columns
    for where, columns in rest.items():
        same = next((name for name, each in unused.items() if each == columns), None)
        if same is None:
            found.lose([f"declared {where}: no such columns now"])
        else:
            unused.pop(same)
            found.note([f"declared {where}: the same columns are {same}"])
    found.note(f"declared {where}: new" for where in unused)
    for run in ("sample", "simulated"):
        if run in old and run in new:
            _same_tables(old[run], new[run], f"{run} run", renames, found)


def _same_tables(old: Any, new: Any, where: str, renames: Renames, found: Findings) -> None:
    """Tables by name, else by content; columns by name, else by their values."""
    used = set()
    for name, before in old.items():
        now = renames.word(name)
        if now not in new:
            twins = (key for key, each in new.items() if key not in old and _alike(each, before))
            now = next(twins, "")
            if not now:
                found.lose([f"{where}: table {name} is gone"])
                continue
            found.note([f"{where}: table {name} is {now} now"])
        used.add(now)
        _same_columns(before, new[now], f"{where}: {name}", renames, found)
    found.note(f"{where}: table {name} is new" for name in new if name not in used)


def _alike(one: Any, other: Any) -> bool:
    return bool(one["numbers"] == other["numbers"] and one["rows"] == other["rows"])


def _same_columns(before: Any, after: Any, where: str, renames: Renames, found: Findings) -> None:
    if before == after:
        return
    if before["rows"] != after["rows"]:
        found.lose([f"{where}: {before['rows']} rows -> {after['rows']}"])
    columns = {renames.word(name): value for name, value in before["columns"].items()}
    added = {name: value for name, value in after["columns"].items() if name not in columns}
    for name, value in columns.items():
        if name in after["columns"]:
            now = after["columns"][name]
            if now == value:
                continue
            if "counted" in value and _renamed(value["counted"], renames) == now.get("counted"):
                found.note([f"{where}.{name}: the same values under the table"])
            else:
                found.lose([f"{where}.{name}: other values or type"])
            continue
        twin = next((key for key, each in added.items() if each == value), None)
        if twin is None:
            found.lose([f"{where}.{name}: gone"])
        else:
            added.pop(twin)
            found.note([f"{where}.{name}: is {twin} now, with the same values"])
    found.note(f"{where}.{name}: new" for name in added)


def _renamed(counted: Mapping[str, int], renames: Renames) -> dict[str, int]:
    total: Counter[str] = Counter()
    for text, count in counted.items():
        total[renames.word(text)] += count
    return dict(total)


def traces(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    for name, before in old.items():
        after = new.get(name)
        if after is None:
            found.lose([f"{name}: not simulated"])
        elif "left_out" in before or "left_out" in after:
            if before.keys() != after.keys():
                found.note([f"{name}: left out of one inventory"])
        elif ("refused" in before) != ("refused" in after):
            found.lose([f"{name}: refused in one of the trees"])
        elif "refused" in before:
            if before != after:
                found.note([f"{name}: refused with other words"])
        else:
            _same_trace(before, after, name, renames, found)
    found.note(f"{name}: new" for name in new if name not in old)


def _carried(trace: Any) -> list[str]:
    """What the links carried and when, without names of tables and columns."""
    return sorted(each["numbers"] for each in trace["trace"].values())


def _same_trace(before: Any, after: Any, name: str, renames: Renames, found: Findings) -> None:
    if _carried(before) != _carried(after):
        found.lose([f"{name}: other packets or times"])
    _same_tables(before["trace"], after["trace"], f"{name}: trace", renames, found)
    pairs = [("logs", before["logs"], after["logs"])]
    for file in before["other_lines"]:
        now = renames.names.get(f"file: {file}", f"file: {file}").removeprefix("file: ")
        if now in after["other_lines"]:
            pairs.append((now, before["other_lines"][file], after["other_lines"][now]))
        else:
            found.note([f"{name}: {file} is gone or renamed"])
    for what, a, b in pairs:
        if a["numbers"] != b["numbers"] or a["files"] != b["files"]:
            found.lose([f"{name}: {what}: other numbers"])
        elif a["text"] != b["text"]:
            found.note([f"{name}: {what}: other words, the same numbers"])


def names(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    """Every public name of before has a place: where its row or its module's row says, or exactly one other."""
    homes: dict[str, list[str]] = {}
    for module, defined in new.items():
        for name in defined:
            homes.setdefault(name, []).append(module)
    used: set[tuple[str, str]] = set()
    for module, defined in old.items():
        for name in defined:
            place = renames.name(module, name)
            if place[1] in new.get(place[0], ()):
                used.add(place)
            elif len(homes.get(name, ())) == 1:
                found.note([f"{module}:{name} has no row, but stands in {homes[name][0]}"])
                used.add((homes[name][0], name))
            else:
                found.lose([f"{module}:{name} has no place (looked for {place[0]}:{place[1]})"])
    for module, defined in new.items():
        found.note(f"new: {module}:{name}" for name in defined if (module, name) not in used)


def structure(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    """Equal, equal but for texts, then what is left by place: changed, missing, new."""
    before, after = old["definitions"], new["definitions"]
    totals = [len(before), len(after)]
    counts = []
    for key in (1, 2):
        before, after, same = _without_common(before, after, key, renames)
        counts.append(same)
    if not before and not after and not counts[1]:
        return
    places = {where for where, *_ in after}
    mapped = [(where, _mapped(where, renames)) for where, *_ in before]
    changed = [pair for pair in mapped if pair[1] in places]
    gone = [pair for pair in mapped if pair[1] not in places]
    came = sorted(places - {place for _, place in changed})
    found.note(
        [
            f"{totals[0]} definitions before, {totals[1]} after: {counts[0]} unchanged, {counts[1]} but for texts, "
            f"{len(changed)} changed, {len(gone)} missing, {len(came)} new"
        ]
    )
    found.lose(f"changed: {where} -> {place}" for where, place in changed)
    found.lose(f"missing: {where} (looked for {place})" for where, place in gone)
    found.note(f"new: {where}" for where in came)


def _mapped(where: str, renames: Renames) -> str:
    module, _, name = where.partition(":")
    return ":".join(renames.name(module, name))


def _without_common(
    before: list[list[str]], after: list[list[str]], key: int, renames: Renames
) -> tuple[list[list[str]], list[list[str]], int]:
    """Both lists without the definitions of equal hash. Those in the same place are paired first."""
    common = Counter(row[key] for row in before) & Counter(row[key] for row in after)
    total = common.total()
    theirs = {(row[0], row[key]) for row in after}
    ours = {(_mapped(row[0], renames), row[key]) for row in before}

    def left(rows: list[list[str]], in_place: Callable[[list[str]], bool]) -> list[list[str]]:
        remaining, kept = Counter(common), []
        for row in sorted(rows, key=lambda row: not in_place(row)):
            if remaining[row[key]]:
                remaining[row[key]] -= 1
            else:
                kept.append(row)
        return kept

    return (
        left(before, lambda row: (_mapped(row[0], renames), row[key]) in theirs),
        left(after, lambda row: (row[0], row[key]) in ours),
        total,
    )


def imports(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    """The graph may change; its numbers are shown, new cycles and exemptions are losses."""
    if old == new:
        return
    before, after = old["numbers"], new["numbers"]
    for key in ("modules", "median_lines", "mean_lines"):
        if before[key] != after[key]:
            found.note([f"{key}: {before[key]} -> {after[key]}"])
    for key in ("single_importers", "small_single_importers", "one_public_name"):
        if before[key] != after[key]:
            found.note([f"{key}: {len(before[key])} -> {len(after[key])}"])
    for key in ("module_cycles", "package_cycles", "exemptions"):
        text = f"{key}: {len(before[key])} -> {len(after[key])}"
        if len(after[key]) > len(before[key]):
            found.lose([text])
        elif before[key] != after[key]:
            found.note([text])
    arrows = {
        (renames.module(name), renames.module(each))
        for name, imported in old["graph"].items()
        for each in imported
    }
    now = {(name, each) for name, imported in new["graph"].items() for each in imported}
    found.note(
        [
            f"imports under the table: {len(arrows & now)} kept, {len(arrows - now)} gone, "
            f"{len(now - arrows)} new"
        ]
    )


def speed(old: Any, new: Any, _renames: Renames, found: Findings) -> None:
    """Imported modules must not grow by more than 5 %; times of two single runs are only shown when they do."""
    for command, before in old.items():
        after = new[command]
        if command == "broker_pss_kb":
            if after > before * MODULES_LIMIT:
                found.lose([f"memory of a broker: {before} -> {after} kB"])
            continue
        for kind, count in before["modules"].items():
            if after["modules"][kind] > count * MODULES_LIMIT:
                found.lose([f"{command}: {count} -> {after['modules'][kind]} modules ({kind})"])
            elif after["modules"][kind] != count:
                found.note([f"{command}: {count} -> {after['modules'][kind]} modules ({kind})"])
        ratio = after["cpu_s"]["least"] / before["cpu_s"]["least"]
        if ratio > MUCH_SLOWER:
            found.note(
                [
                    f"{command}: least CPU time x {ratio:.2f}; `scripts/inventory speed` measures pairs"
                ]
            )


def mutants(old: Any, new: Any, _renames: Renames, found: Findings) -> None:
    """The same mutants must be killed."""
    for key, before in old["mutants"].items():
        after = new["mutants"].get(key)
        if after is None:
            found.note([f"{before['where']} {before['operator']}: not in the new sample"])
        elif before["outcome"] == "killed" and after["outcome"] != "killed":
            found.lose([f"{after['where']} {after['operator']}: {after['outcome']}, was killed"])
    if old["score"] != new["score"]:
        found.note([f"score: {old['score']} -> {new['score']}"])


PARTS: dict[str, Callable[[Any, Any, Renames, Findings], None]] = {
    "goldens": goldens,
    "json": json_keys,
    "tests": tests,
    "options": options,
    "schema": schema,
    "tables": tables,
    "traces": traces,
    "imports": imports,
    "speed": speed,
    "names": names,
    "structure": structure,
    "mutants": mutants,
}

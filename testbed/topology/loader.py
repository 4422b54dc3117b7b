"""Load a topology: read the file, apply overrides, check the shape, resolve references between sections.

The scenario may be in a file of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testbed.topology.diagnostics.problems import Problem, ProblemList, TopologyErrors
from testbed.topology.diagnostics.source_map import Place
from testbed.topology.model import PREFIX, Capture, CongestionControl, Emulator, Topology
from testbed.topology.names import MAX_LAB_NAME, name_problem
from testbed.topology.parse.files import check_text, text_of
from testbed.topology.parse.overrides import overridden, parse_overrides
from testbed.topology.parse.shape import shape
from testbed.topology.parse.yaml_reader import Document, read
from testbed.topology.resolve import events
from testbed.topology.resolve.actions import profiles_of
from testbed.topology.resolve.brokers import check_brokers
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.expectations import expected
from testbed.topology.resolve.hazard import hazard
from testbed.topology.resolve.interests import space_of, with_interests
from testbed.topology.resolve.links import LinkProfiles, check_places, method
from testbed.topology.resolve.methods import check_methods
from testbed.topology.resolve.nodes import expand


def resolve(checking: Checking, name: str) -> Topology:
    """Resolve the sections of a file; the topology is complete and consistent unless problems were found."""
    file = checking.file
    profiles = LinkProfiles(checking)
    nodes = expand(checking, profiles)
    scenario = events.scenario(checking, nodes, profiles)
    scenario = replace(scenario, hazard=hazard(checking, nodes))
    space = space_of(checking, nodes)
    nodes = with_interests(checking, nodes, scenario, space)
    scenario = replace(scenario, expect=expected(checking, nodes))
    check_brokers(checking, nodes)
    check_places(checking)
    check_methods(checking, nodes, scenario, space)
    return Topology(
        name=name,
        seed=file.seed,
        profiles=profiles.used({node.profile for node in nodes} | profiles_of(scenario)),
        nodes=nodes,
        overlay=method(file.overlay),
        delivery=method(file.delivery),
        emulator=Emulator(file.links.emulator),
        tcp=CongestionControl(file.tcp) if file.tcp else None,
        scenario=scenario,
        capture=Capture(file.capture.enabled, file.capture.snaplen),
        prefix=PREFIX,
        space=space.dimensions if space else (),
        deadlines=tuple(sorted((int(level), s) for level, s in file.deadlines.items())),
    )


SCENARIO = "scenario"  # the section that may be in a file of its own


def load(
    path: Path,
    *,
    name: str | None = None,
    scenario: Path | None = None,
    overrides: Sequence[str] = (),
) -> Topology:
    """The topology of this file, as lab `name` (default: as the file says, else the file's own name)."""
    return load_text(
        text_of(path),
        str(path),
        name=name,
        fallback=path.stem,
        folder=path.parent,
        scenario=scenario,
        overrides=overrides,
    )


def load_text(
    text: str,
    source: str,
    *,
    name: str | None = None,
    fallback: str = "lab",
    folder: Path = Path(),
    scenario: Path | None = None,
    overrides: Sequence[str] = (),
) -> Topology:
    """The same from a text; errors name `source`; `fallback` is the lab's name if there is no other.

    Relative paths start at `folder`. A scenario file replaces the text's own scenario, and `overrides`
    (PATH=VALUE) replace values of both.
    """
    settings = parse_overrides(overrides)
    check_text(text, source)
    document, problems = read(text, source)
    if scenario is not None:
        document, problems = _with_scenario(document, problems, scenario)
    document, problems = overridden(document, problems, settings)
    shaped = shape(document, problems)
    if shaped is None:
        raise TopologyErrors(problems.found)
    lab = name or shaped.file.name or fallback
    topology = resolve(Checking(document, shaped, problems, folder), lab)
    if shaped.sound("name") and (problem := name_problem(lab, MAX_LAB_NAME)):
        message, hint = problem
        where = "the name given for the lab" if name else "the file's name, which names the lab"
        hint = f"{hint}; or add `name:` to the file" if not name else hint
        problems.found.append(Problem(source, None, None, f"{where}: {message}", hint))
    problems.raise_if_any()
    return replace(topology, overrides=tuple((one.path, one.value) for one in settings))


def _with_scenario(
    document: Document, problems: ProblemList, path: Path
) -> tuple[Document, ProblemList]:
    """Insert the scenario into the document; each problem names the file in which it is."""
    section, found = read(text_of(path), str(path))
    if section.data is None:
        found.at(Place(1, 1), "the file is empty", "begin with `duration: 20s`")
    source = document.source.with_section(SCENARIO, section.source)
    together = ProblemList(source)
    together.found += [*problems.found, *found.found]
    if not isinstance(document.data, dict):
        return document, problems
    return Document({**document.data, SCENARIO: section.data}, source), together

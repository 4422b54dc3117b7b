"""The scenario of a topology as a drawing: a row for each thing that happens, on one line of time."""

from collections.abc import Callable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from testbed.scenario.outline import Row, outline
from testbed.topology.model import Topology
from testbed.topology.units import DURATION

WIDTH = 40  # characters of the line of time
SHOWN_NODES = 3
FewWords = Callable[[Sequence[str], Topology], Mapping[str, int]]


def timeline_table(topology: Topology, few_words: FewWords) -> Table:
    """What happens when; `few_words` names nodes briefly."""
    scenario = topology.scenario
    title = f"what happens, in {DURATION.write(scenario.duration_s)}"
    if scenario.speed != 1.0:
        title += f", played {scenario.speed:g} times as fast"
    table = Table(title=title)
    table.add_column("from", justify="right", no_wrap=True)
    table.add_column("what")
    table.add_column("whom")
    table.add_column(axis(scenario.duration_s), width=WIDTH)
    for row in outline(topology):
        what = Text(row.what, style="bold").append(f" {row.told}", style="not bold")
        table.add_row(
            _begin(row),
            what,
            Text(_whom(row, topology, few_words)),
            Text(drawn(row, scenario.duration_s)),
        )
    return table


def axis(duration_s: float) -> Text:
    """The line of time itself: its begin and its end."""
    end = DURATION.write(duration_s)
    return Text("0s" + end.rjust(WIDTH - 2))


def drawn(row: Row, duration_s: float) -> str:
    """Where on the line of time it is: a block while it lasts, a dot for a moment."""
    if row.when is not None:
        return f"when {row.when}"
    line = ["·"] * WIDTH
    for begin_s in row.moments_s:
        first = _place(begin_s, duration_s)
        if row.lasts_s is None:
            line[first] = "●"
            continue
        last = _place(begin_s + row.lasts_s, duration_s)
        for place in range(first, last + 1):
            line[place] = "█"
    return "".join(line)


def _place(at_s: float, duration_s: float) -> int:
    return min(WIDTH - 1, int(at_s / duration_s * WIDTH)) if duration_s else 0


def _begin(row: Row) -> str:
    first = DURATION.write(row.moments_s[0]) if row.moments_s[0] else "0s"
    if row.when is not None:
        return f"+{first}" if row.moments_s[0] else ""
    return first if len(row.moments_s) == 1 else f"{first}, {len(row.moments_s)} times"


def _whom(row: Row, topology: Topology, few_words: FewWords) -> str:
    named = list(few_words(row.nodes, topology))
    more = len(named) - SHOWN_NODES
    shown = ", ".join(named[:SHOWN_NODES]) + (f", … {more} more" if more > 0 else "")
    return shown if row.share >= 1.0 else f"{row.share:.0%} of {shown}"

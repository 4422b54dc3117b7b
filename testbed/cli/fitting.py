"""Tables on narrow terminals: columns that matter less are left out rather than all of them cut."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

_WIDE = 10_000


@dataclass(frozen=True, slots=True)
class Fitting:
    """The first variant that fits; else the last. A variant names the columns that it does without."""

    make: Callable[[Collection[str]], Table]
    variants: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unbounded = options.update_width(_WIDE)
        for left_out in ((), *self.variants):
            table = self.make(left_out)
            if table.__rich_measure__(console, unbounded).maximum <= options.max_width:
                break
        yield table


def what_is_missing(known: Sequence[str], left_out: Collection[str]) -> str | None:
    """A caption on the columns that there would be, had they room."""
    missing = [name for name in known if name in left_out]
    return f"a wider terminal shows more: {', '.join(missing)}" if missing else None

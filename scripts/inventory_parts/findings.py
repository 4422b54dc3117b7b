"""What a comparison of two inventories found, and how it is shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

SHOWN = 30


@dataclass
class Findings:
    """What differs: `losses` must be explained, `notes` are differences that lose nothing.

    `guesses` are pairs that only a person can confirm; all of them are shown.
    """

    show_all: bool = False
    losses: list[str] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lose(self, texts: Iterable[str]) -> None:
        self.losses.extend(texts)

    def guess(self, texts: Iterable[str]) -> None:
        self.guesses.extend(texts)

    def note(self, texts: Iterable[str]) -> None:
        self.notes.extend(texts)

    def summarize(self, what: str, texts: Iterable[str]) -> None:
        """One note for all of them, with their number; each of them only if everything is shown."""
        if each := list(texts):
            self.notes.append(f"{len(each)} {what}")
            self.notes.extend(each if self.show_all else ())

    @property
    def are_none(self) -> bool:
        return not self.losses and not self.guesses and not self.notes

    def show(self, part: str) -> None:
        if self.are_none:
            print(f"{part}: equal")
            return
        verdict = f"{len(self.losses)} DIFFER" if self.losses else "nothing lost"
        asked = f", {len(self.guesses)} to look at" if self.guesses else ""
        print(f"{part}: {verdict}{asked}, {len(self.notes)} notes")
        _print("  - ", self.losses, self.show_all)
        _print("  ? ", self.guesses, show_all=True)
        _print("  . ", self.notes, self.show_all)


def _print(mark: str, texts: list[str], show_all: bool) -> None:
    for text in texts if show_all else texts[:SHOWN]:
        print(f"{mark}{text}")
    if not show_all and len(texts) > SHOWN:
        print(f"{mark}... and {len(texts) - SHOWN} more (--all shows them)")

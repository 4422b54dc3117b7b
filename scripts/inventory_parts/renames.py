"""The rename table: which module, name or test file of before is which one now."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

ROW = re.compile(r"^\|\s*`([^`]+)`\s*\|\s*`([^`]+)`\s*\|", re.MULTILINE)
WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class Renames:
    """Rows ``| `old` | `new` |``: dotted modules, ``module:Name``, paths of files, or single words.

    Single words are keys of JSON documents, columns and tables.
    """

    modules: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | None) -> "Renames":
        found = cls()
        for old, new in ROW.findall(path.read_text()) if path else ():
            if ":" in old:
                found.names[old] = new
            elif "/" in old:
                found.files[old] = new
            elif "." in old:
                found.modules[old] = new
            else:
                found.words[old] = new
        return found

    def module(self, old: str) -> str:
        """The module itself, or what its nearest package with a row became."""
        head, tail = old, ""
        while head:
            if head in self.modules:
                return self.modules[head] + tail
            head, dot, last = head.rpartition(".")
            tail = f"{dot}{last}{tail}"
        return old

    def name(self, module: str, name: str) -> tuple[str, str]:
        """Module and name of today. A method goes with its class."""
        if row := self.names.get(f"{module}:{name}"):
            new_module, _, new_name = row.partition(":")
            return new_module, new_name or name
        owner, dot, rest = name.partition(".")
        if dot:
            new_module, new_owner = self.name(module, owner)
            return new_module, f"{new_owner}.{rest}"
        return self.module(module), name

    def file(self, old: str) -> str:
        return self.files.get(old, old)

    def test(self, old: str) -> str:
        """A test's id: its file, its name and its parameters, which keep their words."""
        file, _, name = old.partition("::")
        name, bracket, parameters = name.partition("[")
        file = self.file(file)
        name = self.names.get(f"{file}::{name}", f"::{name}").partition("::")[2]
        return f"{file}::{name}{bracket}{parameters}"

    def word(self, old: str) -> str:
        return self.words.get(old, old)

    def phrase(self, old: str) -> str:
        """A text, word by word."""
        return WORD.sub(lambda match: self.word(match[0]), old)

    def within(self, scope: str) -> "Renames":
        """The table where rows ``| `SCOPE: old` | `SCOPE: new` |`` are rows of single words, too."""
        mark = f"{scope}: "
        rows = {old: new for old, new in self.names.items() if old.startswith(mark)}
        return self.with_words(
            {old.removeprefix(mark): new.removeprefix(mark) for old, new in rows.items()}
        )

    def with_words(self, words: dict[str, str]) -> "Renames":
        return replace(self, words={**self.words, **words})

    def key_path(self, old: str) -> str:
        """A path of keys such as `.levels[].delay`."""
        parts = (re.fullmatch(r"(.*?)((?:\[\])*)", part) for part in old.split("."))
        return ".".join(self.word(each[1]) + each[2] for each in parts if each)

    def classes(self) -> dict[str, str]:
        """The bare names of the classes that were renamed in whatever module."""
        pairs = ((old.partition(":")[2], new.partition(":")[2]) for old, new in self.names.items())
        return {old: new for old, new in pairs if old[:1].isupper() and new and old != new}

"""Methods that other packages bring: found by their entry points, or by the list in nodes.pyz.

A package declares a method in its `pyproject.toml`:

    [project.entry-points."testbed.deliveries"]
    drop-low = "drop_low:DELIVERY"

`testbed.backends.common.zipapp` adds the package to nodes.pyz, and a module with the list: a node then needs neither
the package's metadata nor the modules that read it. Our own methods come first: a package cannot replace them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

DELIVERIES, OVERLAYS = "testbed.deliveries", "testbed.overlays"
LIST = "nodes_plugins"  # the module in nodes.pyz; its `METHODS` are group -> rows of `Plugin`

T = TypeVar("T")


class PluginError(ValueError):
    """A method of another package cannot be loaded."""


class Plugin(NamedTuple):
    """What a package declares: the object `value` ("module:attribute") as a method of this name."""

    name: str
    value: str
    package: str
    version: str

    def load(self) -> Any:
        """The object; PluginError if there is none."""
        module, _, attribute = self.value.partition(":")
        try:
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:  # whatever the module does when it is imported
            raise PluginError(
                f"package {self.package} {self.version} brings {self.name!r} as {self.value!r}, "
                f"which cannot be loaded: {error}"
            ) from error
        return found


@cache
def declared(group: str) -> tuple[Plugin, ...]:
    """What all installed packages declare in this group, sorted by name."""
    try:
        listed: Mapping[str, Any] = import_module(LIST).METHODS
    except ModuleNotFoundError:
        return tuple(sorted(_installed(group)))
    return tuple(Plugin(*row) for row in listed.get(group, ()))


def _installed(group: str) -> Iterator[Plugin]:
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        if entry.dist is not None:
            yield Plugin(entry.name, entry.value, entry.dist.name, entry.dist.version)


class Registry(Mapping[str, T], Generic[T]):
    """Our own methods by name, and then those of other packages, which are looked for only if they are needed."""

    def __init__(
        self, group: str, own: Mapping[str, T], load: Callable[[Plugin], T] = Plugin.load
    ) -> None:
        self.own = own
        self._group = group
        self._load = load

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        found = self._others().get(name)
        if found is None:
            raise KeyError(name)
        if len(found) > 1:
            packages = " and ".join(plugin.package for plugin in found)
            raise PluginError(f"packages {packages} both bring {name!r}: uninstall one")
        return self._load(found[0])

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._others()

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self._others()

    def __len__(self) -> int:
        return len(self.own) + len(self._others())

    def _others(self) -> dict[str, list[Plugin]]:
        others: dict[str, list[Plugin]] = {}
        for plugin in declared(self._group):
            if plugin.name not in self.own:
                others.setdefault(plugin.name, []).append(plugin)
        return others

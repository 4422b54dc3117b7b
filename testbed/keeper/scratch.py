"""Scratch links to measure on, made by a core as a lab's own links are."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from secrets import randbits

from testbed.errors import TestbedError
from testbed.keeper.core import Core
from testbed.links.calibration.exchange import Exchange
from testbed.links.spec import LinkSpec
from testbed.topology.model import Emulator, Profile

NETWORK = "198.18"  # for benchmarks of network devices (RFC 2544)
MOST_LINKS = 60  # at the same time
_PREFIX_LENGTH = 16
Lanes = list[tuple[Profile, tuple[str, ...]]]


class Bench:
    """Scratch links of one emulator in this process's own core.

    They stay for the next question, as taking links away takes longer than making them; the kernel takes all of them
    away at once when this process ends.
    """

    def __init__(self, core: Core, emulator: Emulator, log: Path) -> None:
        self.emulator = emulator
        self._core = core
        self._log = log
        self._exchange: Exchange | None = None
        self._standing: dict[Profile, tuple[str, ...]] = {}
        self._descriptors: list[int] = []

    def lanes(self, wanted: Sequence[tuple[Profile, int]]) -> tuple[Exchange, Lanes]:
        """So many links of each profile, shaped and up."""
        missing = [
            (profile, count - len(self._standing.get(profile, ())))
            for profile, count in wanted
            if count > len(self._standing.get(profile, ()))
        ]
        if self._count() + sum(count for _, count in missing) > MOST_LINKS:
            self._clear()
            missing = list(wanted)
        if missing:
            self._add(missing)
        assert self._exchange is not None
        return self._exchange, [
            (profile, self._standing[profile][:count]) for profile, count in wanted
        ]

    def _count(self) -> int:
        return sum(map(len, self._standing.values()))

    def _add(self, missing: Sequence[tuple[Profile, int]]) -> None:
        profiles = [profile for profile, count in missing for _ in range(count)]
        first = self._count() + 1
        specs = [_spec(number, profile) for number, profile in enumerate(profiles, first)]
        try:
            pids = self._make(specs, profiles)
        except BaseException:
            self._core.unwire([spec.node for spec in specs])
            raise
        self._exchange = self._exchange or Exchange(specs[0].gateway)
        for spec, profile in zip(specs, profiles, strict=True):
            self._descriptors.append(os.open(f"/proc/{pids[spec.node]}/ns/net", os.O_RDONLY))
            self._exchange.open(spec.node, spec.address, self._descriptors[-1], spec.far_if)
            self._standing[profile] = (*self._standing.get(profile, ()), spec.node)

    def _clear(self) -> None:
        if self._exchange is not None:
            self._exchange.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._core.unwire([name for names in self._standing.values() for name in names])
        self._exchange, self._standing, self._descriptors = None, {}, []

    def _make(self, specs: Sequence[LinkSpec], profiles: Sequence[Profile]) -> dict[str, int]:
        idle = ["sleep", "1000000"]
        nodes = [{"name": s.node, "argv": idle, "env": {}, "stderr": str(self._log)} for s in specs]
        spawned = self._core.spawn(nodes)
        if spawned["failed"]:
            raise TestbedError(f"no scratch link: {next(iter(spawned['failed'].values()))}")
        self._core.wire(self.emulator, [asdict(spec) for spec in specs])
        self.shape([spec.node for spec in specs], profiles)
        self._core.capture([spec.node for spec in specs])
        pids: dict[str, int] = spawned["pids"]
        return pids

    def shape(self, names: Sequence[str], profiles: Sequence[Profile]) -> None:
        """As the profiles ask; with another seed each time, so that a second look sees other chances."""
        links = [
            {"node": name, "up": asdict(profile.up), "down": asdict(profile.down)}
            for name, profile in zip(names, profiles, strict=True)
        ]
        self._core.shape(links, seed=randbits(32))


def _spec(number: int, profile: Profile) -> LinkSpec:
    high, low = divmod(number, 256)
    return LinkSpec(
        node=f"scratch-{number}",
        number=number,
        address=f"{NETWORK}.{high}.{low}",
        prefix_length=_PREFIX_LENGTH,
        mac=f"02:74:63:00:{high:02x}:{low:02x}",
        mtu=profile.mtu,
        alias="testbed calibration",
    )

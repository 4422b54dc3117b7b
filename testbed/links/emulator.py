"""Choose the link emulator from what the file asks for, what the links need and what the machine has. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from testbed.errors import InputError, MissingCapability
from testbed.topology.model import Emulator, Shape


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this machine can shape links with; `tun` is a reason if taps cannot be made, else empty."""

    netem: bool
    tbf: bool
    tun: str = ""


def choose(asked: Emulator, shapes: Iterable[Shape], machine: Capabilities) -> tuple[Emulator, str]:
    """The emulator and the reason for it; refuses what cannot be done instead of doing less."""
    more_than_rate = any(shape.delay_s or shape.jitter_s or shape.loss for shape in shapes)
    if asked is Emulator.AUTO:
        return _best(more_than_rate, machine)
    if asked is Emulator.TBF and more_than_rate:
        raise InputError(
            "the emulator tbf only limits rates, but the links ask for delay, jitter or loss",
            "use `emulator: auto` (or relay), or take delay, jitter and loss out of the profiles",
        )
    if asked is Emulator.RELAY:
        _need_taps(machine)
    elif not (machine.netem if asked is Emulator.NETEM else machine.tbf):
        raise MissingCapability(
            f"this kernel has no {asked}",
            f"load it with `sudo modprobe sch_{asked}` if the module exists, or use `emulator: auto`",
        )
    return asked, "asked for"


def _best(more_than_rate: bool, machine: Capabilities) -> tuple[Emulator, str]:
    if machine.netem:
        return Emulator.NETEM, "this kernel has netem"
    if machine.tun and machine.tbf and not more_than_rate:
        return Emulator.TBF, f"no netem, and no relay ({machine.tun}); the links only have rates"
    _need_taps(machine)
    return Emulator.RELAY, "this kernel has no netem; the user-space relay serves instead"


def _need_taps(machine: Capabilities) -> None:
    if machine.tun:
        raise MissingCapability(
            f"the relay cannot make its interfaces: {machine.tun}",
            "load the module with `sudo modprobe tun`; /dev/net/tun must be readable and writable for "
            "you (`sudo chmod 666 /dev/net/tun`; in a container: --device /dev/net/tun)",
        )

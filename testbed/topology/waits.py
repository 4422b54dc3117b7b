"""What events wait for (`when` of the file): who receives what, how late, or an overlay that is stable."""

from testbed.topology.checking import Checking
from testbed.topology.hints import with_article
from testbed.topology.model import Node, NodeKind, Trigger, TriggerKind
from testbed.topology.raw import RawDelay, RawReceived, RawWhen
from testbed.topology.selection import Selection
from testbed.topology.source_map import Path

_SHORTEST_QUIET_S = 1.0  # brokers are asked about once a second


class Waits:
    """Turns what the file says into triggers; whatever is wrong with it goes to the problems."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._receivers = Selection(checking, nodes, _receives_nothing)

    def trigger(self, path: Path, raw: RawWhen) -> Trigger:
        """What stands at this path."""
        said = [kind for kind in TriggerKind if getattr(raw, kind) is not None]
        if len(said) != 1 and self._checking.shaped.sound(*path):
            kinds = ", ".join(TriggerKind)
            message = "nothing is waited for here" if not said else "it waits for two things"
            self._checking.key(path, message, f"give exactly one of {kinds}")
        if raw.quiet is not None and raw.stable is None:
            hint = "remove it, or wait for `stable: overlay`"
            self._checking.key((*path, "quiet"), "`quiet` belongs to `stable`", hint)
        self._check_times(path, raw)
        received, delay = raw.received, raw.delay
        if received is not None:
            who = self._who((*path, "received"), received)
            count = received.count or 1
            return Trigger(
                *(TriggerKind.RECEIVED, who, received.level, received.topic),
                count=count,
                within_s=raw.within,
            )
        if delay is not None:
            return Trigger(
                *(TriggerKind.DELAY, self._who((*path, "delay"), delay), delay.level, delay.topic),
                percentile=delay.percentile,
                above_s=delay.above,
                over_s=delay.over,
                within_s=raw.within,
            )
        quiet_s = Trigger(TriggerKind.STABLE).quiet_s if raw.quiet is None else raw.quiet
        return Trigger(TriggerKind.STABLE, quiet_s=quiet_s, within_s=raw.within)

    def _check_times(self, path: Path, raw: RawWhen) -> None:
        scenario = self._checking.file.scenario
        clear = self._checking.shaped.sound("scenario", "duration")
        end_s = scenario.duration if scenario is not None and clear else float("inf")
        if raw.within is not None and not 0 < raw.within <= end_s:
            message = "that is no time of the scenario"
            self._checking.value((*path, "within"), message, "from its start to its `duration`")
        if raw.quiet is not None and raw.quiet < _SHORTEST_QUIET_S:
            hint = "brokers are asked once a second: write it like 3s"
            self._checking.value((*path, "quiet"), "that is too short to be seen", hint)
        if raw.delay is not None and raw.delay.over == 0:
            where = (*path, "delay", "over")
            self._checking.value(where, "no time at all: nothing comes in it", "write it like 10s")

    def _who(self, path: Path, raw: RawReceived | RawDelay) -> tuple[str, ...]:
        if not raw.nodes:
            return ()
        nodes = self._receivers.of((*path, "nodes"), raw.nodes)
        return tuple(node.name for node in nodes)


def _receives_nothing(node: Node) -> tuple[str, str] | None:
    if node.kind is NodeKind.SUBSCRIBER:
        return None
    return (
        f"{node.name} is {with_article(node.kind)}; only subscribers receive",
        "choose subscribers",
    )

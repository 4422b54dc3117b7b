"""The analysis tells how far each of its stages is; the terminal wants to hear of beginnings, steps and ends."""

from collections.abc import Callable

from testbed.events import Emit, StageAdvanced, StageEnded, StageStarted


def stages(emit: Emit) -> Callable[[str, int, int], None]:
    """A listener for (stage, done, total) that emits events."""
    known: dict[str, int] = {}

    def on_progress(stage: str, done: int, total: int) -> None:
        if stage not in known:
            known[stage] = 0
            emit(StageStarted(stage, total))
        emit(StageAdvanced(stage, done - known[stage]))
        known[stage] = done
        if done >= total:
            emit(StageEnded(stage))

    return on_progress

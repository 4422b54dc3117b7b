"""What an `up` has to make anew because it has died: the measurement has a gap then, and the manifest says so."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.errors import few
from testbed.plan import Step, StepKind


def repairs(steps: Sequence[Step], manifest: Mapping[str, Any]) -> str:
    """A sentence on what had died of a lab that was up; nothing if nothing had. Edits of the file are no repairs."""
    if manifest["status"] not in ("up", "played"):
        return ""
    had = {node["name"] for node in manifest["topology"]["nodes"]}
    edited = {step.target for step in steps if step.kind is StepKind.REMOVE}
    died = {
        kind: [s.target for s in steps if s.kind is kind and s.target in had - edited]
        for kind in (StepKind.CREATE, StepKind.WIRE, StepKind.CAPTURE, StepKind.START)
    }
    told = []
    if died[StepKind.CREATE]:
        told.append(f"made anew: {few(died[StepKind.CREATE])}")
    elif died[StepKind.WIRE]:
        told.append(f"new links: {few(died[StepKind.WIRE])}")
    elif died[StepKind.CAPTURE]:
        told.append(f"captured anew: {few(died[StepKind.CAPTURE])}")
    if ended := [name for name in died[StepKind.START] if name not in died[StepKind.CREATE]]:
        told.append(f"started anew: {few(ended)}")
    if not told:
        return ""
    when = time.strftime("%H:%M:%S")
    return f"parts of the lab had died and were repaired at {when} ({'; '.join(told)})"

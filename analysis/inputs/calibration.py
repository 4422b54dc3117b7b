"""The manifest's `calibration`: requested and achieved values of links, measured before the run."""

from typing import Any

from analysis.formatting import NARROW, percent
from analysis.formatting import rate as bit_rate
from analysis.inputs.run_folder import Run


def entries(run: Run) -> list[dict[str, Any]]:
    """One entry for each profile and direction; none if calibration did not run."""
    return [entry for entry in run.manifest.get("calibration") or [] if isinstance(entry, dict)]


def reasons(run: Run) -> list[str]:
    """A sentence for each link profile whose achieved values differ from the requested ones."""
    return [_reason(entry) for entry in entries(run) if not entry.get("ok", True)]


def _reason(entry: dict[str, Any]) -> str:
    what = f"Links of profile {entry.get('profile')}, {entry.get('direction')}, deviate from the profile"
    why = "; ".join(str(reason).rstrip(".") for reason in entry.get("reasons") or [])
    return f"{what}: {why}." if why else f"{what}."


def rows(run: Run) -> list[dict[str, Any]]:
    """Rows for the report: requested beside achieved values."""
    return [
        {
            "profile": entry.get("profile"),
            "direction": entry.get("direction"),
            "method": entry.get("method"),
            "ok": bool(entry.get("ok", True)),
            **{
                name: (text_of((entry.get("asked") or {}).get(key)), _achieved(entry, key, text_of))
                for name, key, text_of in (
                    ("rate", "rate_bps", rate),
                    ("delay", "delay_s", delay),
                    ("loss", "loss", loss),
                )
            },
        }
        for entry in entries(run)
    ]


def _achieved(entry: dict[str, Any], key: str, text_of: Any) -> str:
    value = (entry.get("achieved") or {}).get(key)
    return "not measured" if value is None else str(text_of(value))


def rate(bits: float | None) -> str:
    """A rate; none is no limit."""
    return "unlimited" if bits is None else bit_rate(bits)


def delay(seconds: float | None) -> str:
    """A delay, in milliseconds."""
    return f"{(seconds or 0.0) * 1000:.4g}{NARROW}ms"


def loss(share: float | None) -> str:
    """A share of the packets, in per cent."""
    return percent(share or 0.0, ".3g")

"""How high a river stands at a gauge: the rain upstream comes after a lag and drains as from one linear reservoir."""

from testbed.hazards.model import River


def held_after(held_mm: float, rain_mm_h: float, river: River, seconds: float) -> float:
    """What the basin holds one step later: dS/dt = R - S/k."""
    drained = min(1.0, seconds / river.drain_s)
    return held_mm * (1.0 - drained) + rain_mm_h * seconds / 3_600


def depth_m(held_mm: float, river: River) -> float:
    """How deep the water is."""
    return river.base_m + river.rise_m_per_mm * held_mm

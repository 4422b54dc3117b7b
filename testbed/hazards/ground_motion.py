"""An earthquake at a place: the arrival times of its waves, and its intensity on JMA's scale.

Peak ground velocity by Si and Midorikawa (1999) for crustal earthquakes, on ground with Vs = 600 m/s; the distance is
taken to the fault as JMA's early warning does it: log10 L = 0.5 M - 1.85, X = R - L/2, at least 3 km. Intensity from
velocity by Midorikawa, Fujimoto and Muramatsu (1999): I = 2.68 + 1.72 log10(PGV).
"""

from math import hypot, log10

from testbed.earth import Place, distance_m
from testbed.hazards.model import Quake

NEAREST_KM = 3.0
# JMA's intensity from which each level holds: 3, 4, 5 lower and 6 lower, whose lower ends are 2.5, 3.5, 4.5 and 5.5.
BOUNDS = (2.5, 3.5, 4.5, 5.5)


def hypocentral_m(quake: Quake, at: Place) -> float:
    """The distance from the hypocentre, in a straight line."""
    return hypot(distance_m(quake.epicentre, at), quake.depth_m)


def p_arrival_s(quake: Quake, at: Place) -> float:
    """The arrival time of the P wave."""
    return quake.at_s + hypocentral_m(quake, at) / quake.p_m_s


def s_arrival_s(quake: Quake, at: Place) -> float:
    """The arrival time of the S wave."""
    return quake.at_s + hypocentral_m(quake, at) / quake.s_m_s


def velocity_cm_s(quake: Quake, at: Place) -> float:
    """Peak ground velocity on firm ground."""
    half_fault_km = 10 ** (0.5 * quake.magnitude - 1.85) / 2
    km = max(NEAREST_KM, hypocentral_m(quake, at) / 1_000 - half_fault_km)
    near = 0.0028 * 10 ** (0.5 * quake.magnitude)
    depth_km = quake.depth_m / 1_000
    return float(
        10 ** (0.58 * quake.magnitude + 0.0038 * depth_km - 1.29 - log10(km + near) - 0.002 * km)
    )


def intensity(velocity: float) -> float:
    """JMA's instrumental intensity of a peak velocity in cm/s; from 0 to slightly above 7."""
    return max(0.0, 2.68 + 1.72 * log10(velocity)) if velocity > 0 else 0.0

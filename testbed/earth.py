"""Distances on the Earth, computed on a sphere."""

from math import asin, cos, radians, sin, sqrt

EARTH_M = 6_371_000.0

Place = tuple[float, float]  # latitude, longitude


def distance_m(here: Place, there: Place) -> float:
    """The distance along the surface."""
    (latitude, longitude), (other, far) = map(radians, here), map(radians, there)
    half = sin((other - latitude) / 2) ** 2
    half += cos(latitude) * cos(other) * sin((far - longitude) / 2) ** 2
    return 2 * EARTH_M * asin(min(1.0, sqrt(half)))

"""The soil water index of the Japan Meteorological Agency: rain that is still in the ground, in three tanks.

Okada, Makihara, Shimpo, Nagata, Kunitsugu, Saito: Soil water index (in Japanese), Tenki 48(5), 2001, 349-356, with the
constants of Ishihara and Kobatake (1979), which JMA takes for all of Japan. Storages and heights in mm, rates in 1/h.
"""

from dataclasses import dataclass

# Heights of the outlets at the side, the rates at which water above them leaves there, and of what seeps down.
L1, L2, L3, L4 = 15.0, 60.0, 15.0, 15.0
ALPHA1, ALPHA2, ALPHA3, ALPHA4 = 0.1, 0.15, 0.05, 0.01
BETA1, BETA2, BETA3 = 0.12, 0.05, 0.01


@dataclass(frozen=True, slots=True)
class Tanks:
    """What the three tanks hold: near the surface, in the ground, deep below."""

    surface: float = 0.0
    ground: float = 0.0
    deep: float = 0.0

    @property
    def index(self) -> float:
        """The soil water index: all that they hold, in mm."""
        return self.surface + self.ground + self.deep

    @property
    def sideways_mm_h(self) -> tuple[float, float, float]:
        """What leaves each tank at its side: q1, q2 and q3."""
        return (
            ALPHA1 * max(0.0, self.surface - L1) + ALPHA2 * max(0.0, self.surface - L2),
            ALPHA3 * max(0.0, self.ground - L3),
            ALPHA4 * max(0.0, self.deep - L4),
        )

    @property
    def downwards_mm_h(self) -> tuple[float, float, float]:
        """What seeps into the next tank, and out of the last."""
        return BETA1 * self.surface, BETA2 * self.ground, BETA3 * self.deep

    def after(self, rain_mm: float, hours: float) -> "Tanks":
        """One step of the published equations: S(t + dt) from S(t) and the rain of this time."""
        q1, q2, q3 = self.sideways_mm_h
        down1, down2, down3 = self.downwards_mm_h
        return Tanks(
            self.surface - (down1 + q1) * hours + rain_mm,
            self.ground - (down2 + q2 - down1) * hours,
            self.deep - (down3 + q3 - down2) * hours,
        )

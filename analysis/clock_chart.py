"""Clocks over time: a panel each, with a line, a grey band around it and measurements with bars; needs no colour."""

from typing import Any

from analysis.charts import WIDTH, of_rows, svg

HEIGHT = 90
Panel = tuple[str, list[dict[str, Any]], list[dict[str, Any]]]  # whose, the line, the measurements


def draw(panels: list[Panel], edges: list[float], label: str) -> str:
    """Rows: at_s, offset_ms, low_ms, high_ms. `edges`: when the scenario began and ended, in seconds."""
    import altair as alt

    last = len(panels) - 1
    drawn = [_panel(panel, edges, number == last) for number, panel in enumerate(panels)]
    return svg(alt.vconcat(*drawn, spacing=16), "clocks", label, height=None)


def _panel(panel: Panel, edges: list[float], lowest: bool) -> Any:
    import altair as alt

    node, line, measured = panel
    at = alt.X("at_s:Q", title="seconds after the start" if lowest else None).scale(nice=False)
    scale = alt.Scale(zero=False, nice=True)
    y = alt.Y("low_ms:Q", title="ahead, ms", scale=scale).axis(tickCount=4)
    band = of_rows(line).mark_area(color="var(--quiet)", opacity=0.22)
    curve = of_rows(line).mark_line(color="var(--accent)", strokeWidth=2)
    rules = of_rows([{"at_s": edge} for edge in edges]).mark_rule(
        strokeDash=[5, 4], color="var(--quiet)"
    )
    bars = of_rows(measured).mark_rule(color="var(--ink)", strokeWidth=1.5)
    dots = of_rows(measured).mark_point(
        filled=True, size=38, opacity=1, shape="circle", color="var(--ink)"
    )
    layers = [
        band.encode(x=at, y=y, y2="high_ms:Q"),
        curve.encode(x=at, y=alt.Y("offset_ms:Q", scale=scale)),
        bars.encode(x=at, y=alt.Y("low_ms:Q", scale=scale), y2="high_ms:Q"),
        dots.encode(x=at, y=alt.Y("offset_ms:Q", scale=scale)),
    ]
    if edges:
        layers.insert(0, rules.encode(x=at))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=node)

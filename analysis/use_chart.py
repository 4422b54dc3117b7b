"""The heat map of links: the fuller, the stronger; with a dot where full, and the peak of each line in numbers."""

from typing import Any

from analysis.charts import WIDTH, of_rows, svg
from analysis.findings import percent

ROW = 17  # pixels of a line
NAMES, PEAKS = 150, 70  # pixels for names and for peaks


def draw(rows: list[dict[str, Any]], peaks: dict[str, float], full: float, label: str) -> str:
    """`rows`: line, from_s, to_s, share, in the order of the lines; `peaks` of each line."""
    import altair as alt

    lines = list(peaks)
    shown = [{**row, "filled": min(1.0, row["share"])} for row in rows]
    y = alt.Y("line:N", title=None, sort=lines).scale(paddingInner=0.12)
    y = y.axis(domain=False, ticks=False, labelLimit=NAMES, labelOverlap=False)
    x = alt.X("from_s:Q", title="seconds after the start").scale(nice=False, zero=True)
    cells = (
        of_rows(shown)
        .mark_rect(color="var(--accent)")
        .encode(
            y=y,
            x=x,
            x2="to_s:Q",
            fillOpacity=alt.FillOpacity("filled:Q")
            .scale(domain=[0, 1], range=[0.05, 1])
            .legend(None),
        )
    )
    middles = [
        {"line": row["line"], "from_s": (row["from_s"] + row["to_s"]) / 2}
        for row in rows
        if round(row["share"], 2) >= full  # as its number says
    ]
    dots = of_rows(middles).mark_point(
        shape="circle", size=9, filled=True, opacity=1, color="var(--paper)"
    )
    words = [{"line": line, "text": percent(peak)} for line, peak in peaks.items()]
    peak = of_rows(words).mark_text(align="left", fontSize=11)
    chart = alt.layer(
        cells,
        dots.encode(y=y, x=alt.X("from_s:Q")),
        peak.encode(y=y, x=alt.value(WIDTH - NAMES - PEAKS + 8), text="text:N"),
    )
    size = {"width": WIDTH - NAMES - PEAKS, "height": len(lines) * ROW}
    return svg(chart.properties(**size), "use", label, height=None)

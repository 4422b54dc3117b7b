"""result.json has the same keys and types of values in every version."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from analysis.papers.banno2013 import figures as banno
from analysis.papers.banno2013 import figures as of_banno
from analysis.papers.kawakami2016 import figures as kawakami
from analysis.papers.kawakami2016 import figures as of_kawakami
from analysis.papers.kawakami2016 import waiting
from analysis.papers.kita2025 import figures as kita
from analysis.papers.kita2025 import figures as of_kita
from analysis.papers.ogawa import figures as of_ogawa
from analysis.papers.ogawa import figures as ogawa
from support.runs.levelling_rows import ogawa_means
from support.runs.overlay_rows import banno_means, kawakami_means, kawakami_waited, kita_means

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "papers"


def shape(value: Any) -> Any:
    """The keys and types of a value; for a list, those of all its members."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        kinds: dict[str, Any] = {}
        for one in value:
            found = shape(one)
            kinds.setdefault(json.dumps(found, sort_keys=True), found)
        return list(kinds.values())
    return type(value).__name__


def kita_result() -> dict[str, Any]:
    means = kita_means()
    return {"figures": kita.figures(*means), "checks": of_kita.checks(*means)}


def banno_result() -> dict[str, Any]:
    topics, load, totals = banno_means()
    return {
        "figures": banno.figures(topics, load, totals),
        "checks": of_banno.checks(topics, totals),
    }


def kawakami_result() -> dict[str, Any]:
    means, waited = kawakami_means(), kawakami_waited()
    return {
        "figures": [*kawakami.figures(means), *waiting.figures(waited)],
        "checks": [*of_kawakami.checks(means), *waiting.checks(waited)],
    }


def ogawa_result() -> dict[str, Any]:
    means = ogawa_means()
    totals, _, _, moments = means
    verdicts = of_ogawa.checks(totals, ogawa.usual_reading(moments))
    return {"figures": ogawa.figures(*means), "checks": verdicts}


@pytest.mark.parametrize(
    ("paper", "result"),
    [
        ("kita2025", kita_result()),
        ("banno2013", banno_result()),
        ("kawakami2016", kawakami_result()),
        ("ogawa", ogawa_result()),
    ],
)
def test_results_have_the_shape_that_programs_rely_on(paper: str, result: dict[str, Any]) -> None:
    figures = {figure["figure"]: shape(figure["cells"]) for figure in result["figures"]}
    text = json.dumps({"figures": figures, "checks": shape(result["checks"])}, indent=2) + "\n"
    golden = GOLDEN / f"{paper}-result.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()

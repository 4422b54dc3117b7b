"""Charts as files: they do not depend on the page that they come from."""

import xml.etree.ElementTree as ET

import pytest

from analysis.inputs.run_folder import RunNode
from analysis.report import figures
from analysis.report.sections import topology_map
from analysis.report.sections.delay import delay_shares

ROWS = [{"level": "5", "delay_s": 0.1, "share": 0.5}, {"level": "1", "delay_s": 30.0, "share": 1.0}]
NODES = [
    RunNode("hub", 1, "broker", "3g", 0, (), None),
    RunNode("hill", 2, "sensor", "3g", 0, (), None),
]


@pytest.mark.parametrize(
    "chart",
    [str(delay_shares(ROWS, "label")), str(topology_map.draw(NODES, topology_map.star(NODES)))],
    ids=["chart", "drawing"],
)
def test_a_figure_stands_alone_at_the_width_of_a_text(chart):
    text = figures.standalone(chart)
    assert "var(" not in text
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = (float(root.attrib[name].removesuffix("mm")) for name in ("width", "height"))
    _, _, wide, high = (float(value) for value in root.attrib["viewBox"].split())
    assert width == figures.TEXT_WIDTH_MM
    assert height / width == pytest.approx(high / wide, abs=0.001)


def test_a_drawing_takes_its_styles_along():
    text = figures.standalone(str(topology_map.draw(NODES, topology_map.star(NODES))))
    assert ".broker {" in text
    assert "#17617c" in text  # the accent of light paper
    assert "--" not in text


def test_colours_are_those_of_light_paper_on_white():
    colours = figures.light_colours(
        ":root { --ink: #16202b; --card: #f6f7f9; } @media x { --ink: #fff; }"
    )
    assert colours == {"--ink": "#16202b", "--card": "#ffffff"}

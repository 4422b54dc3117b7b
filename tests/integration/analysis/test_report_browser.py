"""The report opened as a reader would: in Chromium, offline."""

import json
import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure
from analysis.report.figures import write_figures
from analysis.report.report import write_report
from support.chromium import QUIET
from support.runs.machine_rows import machine_row, write_rows
from support.runs.star_runs import START_NS, StarRun, publications
from testbed.hazards.kinds import site_histories
from testbed.hazards.model import Hazard, HazardKind, Rain, Storm
from testbed.hazards.record import record

pytestmark = pytest.mark.spark
LOGGING = ("--enable-logging=stderr", "--v=0")


def storm() -> dict[str, object]:
    """A run folder's description of a landslide."""
    places = {"a": (33.5, 133.5), "b": (33.51, 133.5), "c": (33.9, 133.5)}
    rain = Rain(storm=Storm(peak_mm_h=200.0), before_mm=150.0)
    hazard = Hazard(HazardKind.LANDSLIDE, tuple(places), rain)
    return record(hazard, site_histories(hazard, places, 1_800.0, 3), 1_800.0, 20.0)


@pytest.fixture(scope="module")
def report(spark, tmp_path_factory) -> Path:
    """A run with a lost alert, hostile names in its manifest, and a relay that was late."""
    folder = tmp_path_factory.mktemp("runs") / "seen"
    run = StarRun(
        sensors=11,
        publications=list(publications(40, 2)),
        fate=lambda number, _src, dst: "unsent" if (number, dst) == (30, "town-1") else None,
    )
    run.write(
        folder,
        lab="<script>alert(1)</script>",
        details={"relay": {"forwarded": 117, "late_max_s": 0.5, "late_p50_s": 6.4e-05}},
        machine={"memory_bytes": 25274793984, "cores": 2},
        link_changes=[
            {
                "t_ns": START_NS + 3_500_000_000,
                "action": "cut",
                "links": ["town-1"],
                "directions": ["down"],
            }
        ],
        calibration=[
            {
                "profile": "3g",
                "direction": "up",
                "method": "quick",
                "asked": {"rate_bps": 384e3, "delay_s": 0.065, "loss": 0.0},
                "achieved": {"rate_bps": 381.2e3, "delay_s": 0.0658, "loss": None},
                "ok": True,
                "reasons": [],
            }
        ],
    )
    manifest = json.loads((folder / "run.json").read_text())
    for profile in manifest["topology"]["profiles"]:
        profile["up"]["rate_bps"] = profile["down"]["rate_bps"] = 384e3
    manifest["topology"]["deadlines"] = [[5, 0.001]]
    (folder / "run.json").write_text(json.dumps(manifest))
    (folder / "hazard.json").write_text(json.dumps(storm()))
    late = {3: {"relay_late_max_s": 0.5}}
    write_rows(folder, [machine_row(second, **late.get(second, {})) for second in range(-3, 10)])
    measure(spark.sparkContext, read_run(folder))
    return write_report(folder)


@pytest.fixture
def chromium(tmp_path):
    """chromium(url, *flags): the output and the log of Chromium."""

    def look(url: str, *flags: str) -> tuple[str, str]:
        done = subprocess.run(
            ["chromium", *QUIET, *LOGGING, f"--user-data-dir={tmp_path / 'profile'}", *flags, url],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout, done.stderr

    return look


def test_the_report_loads_nothing_from_elsewhere(report):
    text = report.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    addresses = re.findall(r'(?:src|href)="([^"]*)"', text) + re.findall(r"url\(([^)]*)\)", text)
    assert [a for a in addresses if not a.startswith(("data:", "#"))] == []
    assert "@import" not in text


def test_the_report_says_first_whether_the_alerts_got_through(report):
    text = report.read_text().replace("\u00a0", " ")
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", text)
    assert heading is not None
    assert heading[1].startswith(
        "1 of 8 level-5 (emergency) deliveries had not arrived when the run ended: half arrived within"
    )
    assert "7 of those that arrived (100 %) missed their deadline of 1.0 ms." in text
    assert "not forwarded by broker" in text
    assert "Read these numbers with care" in text
    assert "up to 500 ms late with a packet, 3 s into the scenario" in text
    assert f"testbed run {report.parent}/topology.yaml --backend netns" in text


def test_the_report_says_how_it_was_run_in_units_that_people_read(report):
    text = report.read_text().replace("\u00a0", " ")
    facts = dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', text))
    assert facts["relay"] == "forwarded 117, late max 500 ms, late p50 64 µs"
    assert facts["memory"] == "25.3 GB"
    assert facts["cores"] == "2"


def test_the_report_says_whether_the_machine_was_fast_enough(report):
    text = report.read_text().replace("\u00a0", " ")
    section = re.search(r"Was the machine fast enough\?</h2>(.*?)<h2>", text, re.DOTALL)
    assert section is not None
    assert re.search(r'<p class="answer">No\. .*?</p>\s*<ul><li>The link emulator', section[1])
    rows = re.findall(r"<td[^>]*>([^<]*)</td>", section[1])
    assert rows == [
        "3g",
        "up",
        "384 kbit/s",
        "381.2 kbit/s",
        "65 ms",
        "65.8 ms",
        "0 %",
        "not measured",
        "within limits",
    ]


def test_the_report_says_which_links_were_changed_when(report):
    table = re.search(r'<table id="link-changes">.*?</table>', report.read_text(), re.DOTALL)
    assert table is not None
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table[0])
    assert cells == ["2.5\u00a0s", "cut (down)", "town-1", ""]


def test_links_are_listed_in_natural_order(report):
    text = report.read_text()
    listed = re.findall(r"<tr><td>(sensor-\d+)</td><td>up</td>", text)
    assert listed == [f"sensor-{number}" for number in range(1, 12)]


def test_the_report_lists_the_receivers_of_each_level(report):
    table = re.search(r'<div id="receivers">.*?</table>', report.read_text(), re.DOTALL)
    assert table is not None
    rows = re.findall(r"<tr><td>(town-\d)</td><td><span[^>]*>(\d)</span>", table[0])
    assert rows == [("town-1", "5"), ("town-2", "5"), ("town-1", "1"), ("town-2", "1")]


@pytest.mark.browser
def test_a_browser_shows_all_charts_without_a_complaint(report, chromium):
    dom, log = chromium(report.as_uri(), "--dump-dom")
    for name in (
        "shares",
        "times",
        "hazard-chart",
        "journey",
        "paths",
        "link_utilization",
        "layers",
        "machine-chart",
        "topology",
    ):
        figure = re.search(rf'<figure id="{name}">\s*<svg.*?</svg>', dom, re.DOTALL)
        assert figure is not None, name
        assert figure[0].count("<path") + figure[0].count("<line") > 3
    assert "CONSOLE" not in log
    assert "NaN" not in dom
    assert "undefined" not in dom


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screenshot_is_a_page_in_the_readers_colours(report, chromium, tmp_path, scheme):
    picture = tmp_path / "page.png"
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    chromium(
        report.as_uri(),
        f"--screenshot={picture}",
        "--window-size=1000,900",
        "--hide-scrollbars",
        *dark,
    )
    colours = _colours(picture.read_bytes())
    assert len(colours) > 50
    commonest = max(colours, key=lambda colour: colours[colour])
    assert commonest == ((255, 255, 255) if scheme == "light" else (0x11, 0x17, 0x1E))


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", [420, 1000])
def test_no_text_leaves_the_page_or_its_chart(report, chromium, tmp_path, scheme, wide):
    copy = with_script(report, MEASURE, tmp_path)
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    dom, log = chromium(copy.as_uri(), "--dump-dom", f"--window-size={wide},900", *dark)
    found = re.search(r'data-measured="([^"]*)"', dom)
    assert found is not None
    assert found[1] == "nothing"
    assert "CONSOLE" not in log


def with_script(report: Path, script: str, folder: Path) -> Path:
    """A copy of the page that measures itself: the report has no script of its own, and allows none."""
    text = report.read_text()
    without, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert count == 1
    copy = folder / "measured.html"
    copy.write_text(without.replace("</body>", f"<script>{script}</script></body>"))
    return copy


@pytest.mark.browser
def test_the_pointer_is_on_the_mark_whose_text_it_shows(report, chromium, tmp_path):
    dom, _ = chromium(with_script(report, POINT_AT, tmp_path).as_uri(), "--dump-dom")
    found = re.search(r'data-measured="([^"]*)"', dom)
    assert found is not None
    shown = dict(pair.split("=", 1) for pair in found[1].split("|"))
    assert re.search(r"level \d, .*: \S+ → town-\d, 2 hops, published after", shown["times"])
    assert re.search(r"\d\. \S+ → \S+: (waited|sending|crossing) for", shown["journey"])
    assert re.search(r"(up|down), \d+ to \d+ s: \d+&nbsp;%", shown["link_utilization"])
    assert re.search(r"broker (up|down), .*: \S+, \d+\.\d%", shown["layers"])


POINT_AT = """
const found = [];
for (const name of ["times", "journey", "link_utilization", "layers"]) {
  for (const mark of document.querySelectorAll(`#${name} .hover`)) {
    mark.scrollIntoView({block: "center"});
    const box = mark.getBoundingClientRect();
    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (at === mark) { found.push(`${name}=${at.querySelector("title").textContent}`); break; }
  }
}
document.body.dataset.measured = found.join("|");
"""


@pytest.mark.browser
def test_a_script_in_the_page_would_not_run(report, chromium, tmp_path):
    copy = tmp_path / "changed.html"
    script = "<script>document.body.dataset.changed = 1</script></body>"
    copy.write_text(report.read_text().replace("</body>", script))
    dom, log = chromium(copy.as_uri(), "--dump-dom")
    assert "data-changed" not in dom
    assert "Content Security Policy" in log


MEASURE = """
const out = [];
if (document.documentElement.scrollWidth > window.innerWidth) out.push("page");
for (const text of document.querySelectorAll("figure svg text")) {
  const box = text.getBoundingClientRect(), own = text.ownerSVGElement.getBoundingClientRect();
  if (box.width && (box.left < own.left - 2 || box.right > own.right + 2)) out.push(text.textContent);
}
document.body.dataset.measured = out.join("; ") || "nothing";
"""


@pytest.mark.browser
def test_the_report_prints_with_all_that_is_folded_away(report, chromium, tmp_path):
    paper = tmp_path / "page.pdf"
    chromium(report.as_uri(), f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) >= 3


def test_each_chart_is_written_as_a_vector_figure(report, tmp_path):
    written = write_figures(report.parent, tmp_path / "figures")
    names = {path.stem for path in written}
    assert {
        "delay-by-level-cdf",
        "hazard-over-time",
        "link-utilization-heat-map",
        "message-paths",
        "machine-over-time",
    } <= names
    assert {path.suffix for path in written} == {".svg", ".pdf"}
    for path in written:
        opening = b"%PDF" if path.suffix == ".pdf" else b"<svg"
        assert path.read_bytes().startswith(opening)


def test_the_command_lists_the_figures_that_it_wrote_to_the_given_folder(
    report, testbed_json, tmp_path
):
    elsewhere = tmp_path / "paper"
    document = testbed_json("report", report.parent, "--figures", "--to", elsewhere)
    assert document["report"] == str(report)
    assert {Path(name) for name in document["figures"]} == set(elsewhere.iterdir())
    assert (elsewhere / "delay-by-level-cdf.pdf").read_bytes().startswith(b"%PDF")
    assert not (report.parent / "figures").exists()


def test_each_chart_has_a_text_for_screen_readers(report):
    charts = re.findall(r"<figure[^>]*>\s*<svg([^>]*)>", report.read_text())
    assert len(charts) >= 8
    for chart in charts:
        assert 'role="img"' in chart
        assert re.search(r'aria-label="[^"]{10,}"', chart)


def _colours(png: bytes) -> dict[tuple[int, ...], int]:
    """How often each colour occurs in an 8-bit RGB or RGBA picture (PNG, section 9: filtering)."""
    width, _height, _depth, kind = struct.unpack(">IIBB", png[16:26])
    size = 4 if kind == 6 else 3
    at, packed = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += length + 12
    raw = zlib.decompress(packed)
    stride = width * size
    above = bytearray(stride)
    counts: dict[tuple[int, ...], int] = {}
    for begin in range(0, len(raw), stride + 1):
        how, row = raw[begin], bytearray(raw[begin + 1 : begin + 1 + stride])
        for n in range(stride):
            left = row[n - size] if n >= size else 0
            corner = above[n - size] if n >= size else 0
            guess = (0, left, above[n], (left + above[n]) // 2, _paeth(left, above[n], corner))[how]
            row[n] = (row[n] + guess) & 0xFF
        above = row
        for n in range(0, stride, size * 5):
            colour = tuple(row[n : n + 3])
            counts[colour] = counts.get(colour, 0) + 1
    return counts


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((left, above, corner), key=lambda value: abs(estimate - value))

"""The report's rows on links that were changed while the lab ran."""

from analysis.report.sections.actions import change_rows

START_NS = 10_000_000_000


def entry(after_s: float, action: str, links: list[str], **more) -> dict:
    t_ns = START_NS + round(after_s * 1e9)
    return {"t_ns": t_ns, "action": action, "links": links, "directions": ["up", "down"], **more}


def rows(*entries: dict) -> list[tuple[str, str, str, str]]:
    found = change_rows({"link_changes": list(entries)}, START_NS)
    texts = [(row.when, row.what, row.links, row.values) for row in found]
    return [tuple(text.replace("\u00a0", " ") for text in row) for row in texts]


def test_changes_have_their_time_from_the_scenarios_start():
    assert rows(
        entry(-2.3, "cut", ["a"], directions=["up"]),
        entry(12.04, "restore", ["a", "b"]),
    ) == [
        ("2.3 s before", "cut (up)", "a", ""),
        ("12.0 s", "restore (up and down)", "a, b", ""),
    ]


def test_equal_settings_of_both_directions_are_written_once():
    alike = {"rate_bps": 64_000.0, "loss": 0.01}
    (row,) = rows(entry(0, "set", ["a"], shapes={"up": alike, "down": alike}))
    assert row[3] == "64 kbit/s, loss 1 %"
    (row,) = rows(
        entry(0, "set", ["a"], shapes={"up": {"rate_bps": 2e6}, "down": {"rate_bps": None}})
    )
    assert row[3] == "up: 2 Mbit/s; down: no limit"


def test_a_profile_is_named_with_its_values():
    values = {"rate_bps": 7.2e6, "delay_s": 0.2, "jitter_s": 0.01, "queue_bytes": 16_000}
    (row,) = rows(entry(0, "set", ["a"], directions=["up"], profile="x", shapes={"up": values}))
    assert row[3] == "x (7.2 Mbit/s, delay 200 ms, jitter 10.0 ms, queue 16.0 kB)"


def test_hundreds_of_links_fit_a_row():
    (row,) = rows(entry(0, "reset", [f"s-{i}" for i in range(300)]))
    assert row[2] == "s-0, s-1, s-2, s-3, s-4, s-5 and 294 more"


def test_runs_without_changes_and_older_runs_have_no_rows():
    assert change_rows({"link_changes": []}, START_NS) == []
    assert change_rows({}, START_NS) == []

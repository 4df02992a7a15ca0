"""What bench/ makes of its figures: medians and spreads, regressions, plots, and a report of a quick run. No time is asserted."""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import figures  # noqa: E402
import report  # noqa: E402
import svg  # noqa: E402
from figures import LESS, MORE, Plot, Row  # noqa: E402
from world import Samples, medians  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def row(values, better=MORE, **more):
    return Row("case", values, better, name="bench", **more)


def baseline(values, better=MORE):
    return {"bench: case": figures.stored(row(values, better))}


# --- statistics -----------------------------------------------------------------------------------


def test_a_repetition_is_the_median_of_neighbouring_rounds():
    rounds = [(1, 10), (2, 20), (9, 90), (4, 40), (5, 50), (6, 60)]
    assert medians(rounds, 2) == ([2, 5], [20, 50])
    assert medians(rounds, 3) == ([1.5, 6.5, 5.5], [15, 65, 55])
    assert medians(rounds[:2], 5) == ([1, 2], [10, 20])


def test_samples_are_rounds_and_named_numbers():
    samples = Samples(2, "printf", "2 4\\n4 4\\nconnections 3\\n")
    assert (samples.library, samples.control, samples.extra) == ([2, 4], [4, 4], {"connections": 3})
    assert samples.rates(8) == ([4, 2], [2, 2])


@pytest.mark.parametrize("made, values, better", [
    (figures.faster("case", [8, 6, 9], [10, 10, 10], 0.8), [0.8, 0.6, 0.9], MORE),
    (figures.slower("case", [8, 6, 9], [10, 10, 10], 0.8), [0.8, 0.6, 0.9], LESS),
])
def test_a_ratio_is_of_each_repetition_and_its_median_is_judged(made, values, better):
    assert (made.values, made.better, made.median, made.spread, made.met) == (values, better, 0.8, (0.6, 0.9), True)
    made.target = 0.81 if better == MORE else 0.79
    assert made.met is False
    made.target = None
    assert made.met is None


# --- regressions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("better, before, now, verdict", [
    (MORE, [0.9, 1.0, 1.1], [0.7, 0.8, 0.85], True),
    (MORE, [0.9, 1.0, 1.1], [0.7, 0.8, 0.95], False),  # the spreads meet
    (MORE, [1.0, 1.0, 1.0], [0.96, 0.97, 0.98], False),  # within the slack
    (MORE, [0.9, 1.0, 1.1], [1.5, 1.6, 1.7], False),
    (LESS, [0.9, 1.0, 1.1], [1.2, 1.3, 1.4], True),
    (LESS, [0.9, 1.0, 1.1], [1.05, 1.3, 1.4], False),
    (LESS, [0.9, 1.0, 1.1], [0.5, 0.6, 0.7], False),
    (LESS, [0], [2], True),
    (LESS, [2], [0], False),
])
def test_what_is_worse_beyond_slack_and_spreads_is_flagged(better, before, now, verdict):
    assert figures.regressed(row(now, better), baseline(before, better)) is verdict


def test_what_depends_on_the_machine_or_is_new_is_not_compared():
    assert figures.regressed(row([9], LESS, unit="s"), baseline([1], LESS)) is None
    assert figures.regressed(row([1]), {}) is None
    assert figures.regressed(row([9], LESS, unit="connections"), baseline([1], LESS)) is True


@pytest.mark.parametrize("better, before, now, change", [
    (MORE, 2, 1, 0.5), (LESS, 2, 1, 2), (LESS, 0, 0, 1), (LESS, 0, 3, 0), (LESS, 3, 0, float("inf")), (MORE, 3, 0, 0),
])
def test_a_change_below_one_is_for_the_worse(better, before, now, change):
    assert figures.change(row([now], better), baseline([before], better)) == change


# --- plots ----------------------------------------------------------------------------------------


def drawn(**more):
    plot = Plot("p", "Cost & growth", "locks", "µs", {"a < b": [(1, [2, 3, 1]), (100, [30, 20, 200])], "none": []}, **more)
    return xml.etree.ElementTree.fromstring(svg.draw(plot))


def test_a_plot_says_what_its_axes_are_and_has_every_point():
    root = drawn()
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"Cost & growth", "locks", "µs", "a < b", "1", "10", "100", "1 000"} <= {*texts} and "none" not in texts
    (line,) = root.iter(f"{SVG}polyline")
    (x1, y1), (x2, y2) = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert x1 == svg.LEFT and x2 == svg.WIDTH - svg.RIGHT and y1 > y2
    first = next(tag for tag in root.iter(f"{SVG}line") if tag.get("class") == "whisker")
    assert float(first.get("y1")) > y1 > float(first.get("y2"))


def test_decades_are_evenly_spaced_on_a_log_axis():
    axis = svg.Axis([2, 300], 0, 300, log=True, whole=True)
    assert [axis.at(tick) for tick in axis.ticks()] == pytest.approx([0, 100, 200, 300])
    assert axis.ticks() == [1, 10, 100, 1000]


def test_a_value_of_zero_makes_the_axis_linear():
    axis = svg.Axis([0, 4], 0, 42, log=True, whole=True)
    assert axis.at(0) == 0 and axis.at(2) == pytest.approx(20) and 4 in axis.ticks()


@pytest.mark.parametrize("value, text", [(0, "0"), (0.2, "0.2"), (1000, "1 000"), (1e7, "10⁷"), (1e-4, "10⁻⁴")])
def test_numbers_of_an_axis_are_short(value, text):
    assert svg.number(value) == text


def test_a_plot_is_for_light_and_dark():
    assert "prefers-color-scheme: dark" in svg.STYLE
    light, dark = svg.STYLE.split("@media")
    assert all(f"--{name}:" in part for part in (light, dark) for name in ("ground", "ink", "faint", "soft", *svg.COLOURS))


# --- the report -----------------------------------------------------------------------------------


def test_a_report_names_what_was_missed_regressed_and_failed():
    results = [row([0.5, 0.6, 0.4], target=0.9), Plot("p", "Title", "x", "y", {"a": [(1, [1])]}, name="bench"),
               figures.Failure("no server", "other")]
    text = "\n".join(report.markdown(results, baseline([1, 1, 1]), "Here.", 3))
    assert "1 figures: 1 missed their target, 1 regressed" in text
    assert "| case |  |  | 0.50 | 0.40 – 0.60 | ≥ 0.90 | NO | 0.50 REGRESSED |" in text
    assert "![Title](p.svg)" in text and "**other failed:** no server" in text


def quick(tmp_path, *options):
    return subprocess.run([ROOT / "bench/measure", "--quick", "--output", tmp_path, *options, "lint"], capture_output=True,
                          text=True, check=False)


def test_a_quick_run_of_one_writes_a_report_and_a_baseline_that_flags_what_is_worse(tmp_path):
    kept = tmp_path / "baseline.json"
    done = quick(tmp_path, "--baseline", kept, "--save-baseline")
    assert done.returncode == 0, done.stderr
    rows = json.loads(kept.read_text())["rows"]
    assert rows == json.loads((tmp_path / "report.json").read_text())["rows"]
    (key,) = [key for key in rows if key.endswith("one file of 100, against grep")]
    assert len(rows[key]["values"]) == 2 and "## lint" in (tmp_path / "report.md").read_text()

    rows[key]["values"] = [value / 1000 for value in rows[key]["values"]]
    kept.write_text(json.dumps({"rows": rows}))
    assert quick(tmp_path, "--baseline", kept).returncode == 0
    assert "REGRESSED" in (tmp_path / "report.md").read_text()
    assert quick(tmp_path, "--baseline", kept, "--check").returncode == 1


def test_a_wrong_name_is_told_with_the_right_ones(tmp_path):
    done = subprocess.run([ROOT / "bench/measure", "lnt"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no benchmark 'lnt'" in done.stderr and "lint" in done.stderr

"""What a benchmark yields: rows of figures, which can be judged and compared, and plots."""

import dataclasses
import statistics

MORE, LESS = "more", "less"  # which is better
# Figures that do not depend on how fast the machine is; "" is a ratio. Only these are compared with the baseline.
STEADY = ("", "connections", "retries", "MB", "share")
SLACK = 0.05  # of the baseline's median: less than that is no regression


@dataclasses.dataclass
class Row:
    case: str
    values: list  # one of each repetition: a ratio, or a figure in its unit
    better: str
    target: float | None = None
    unit: str = ""
    ours: str = ""  # absolute figures, to be shown only
    control: str = ""
    name: str = ""  # of the benchmark

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        return min(self.values), max(self.values)

    @property
    def met(self):
        """None: no target."""
        if self.target is None:
            return None
        return self.median >= self.target if self.better == MORE else self.median <= self.target

    @property
    def key(self):
        return f"{self.name}: {self.case}"

    def cells(self):
        met = {True: "yes", False: "NO", None: ""}[self.met]
        sign = "≥" if self.better == MORE else "≤"
        target = "" if self.target is None else f"{sign} {show(self.target, self.unit)}"
        spread = f"{number(self.spread[0])} – {number(self.spread[1])}" if len(self.values) > 1 else ""
        return [self.case, self.ours, self.control, show(self.median, self.unit), spread, target, met]


HEADINGS = ["case", "Holdfast", "instead", "ratio or figure", "spread", "target", "met"]


@dataclasses.dataclass
class Failure:
    """A benchmark that did not end: no figure, and no silence either."""
    why: str
    name: str = ""


@dataclasses.dataclass
class Plot:
    """series: by its name, points (x, values of each repetition)."""
    file: str
    title: str
    x: str
    y: str
    series: dict
    log_y: bool = True
    name: str = ""


def faster(case, ours, control, least=None, show_as=None):
    """Of rates, or anything that is to be great: a ratio of each repetition."""
    show_as = show_as or rate
    return Row(case, [a / b for a, b in zip(ours, control)], MORE, least,
               ours=show_as(statistics.median(ours)), control=show_as(statistics.median(control)))


def slower(case, ours, control, most=None, show_as=None):
    """Of times, or anything that is to be small."""
    show_as = show_as or duration
    return Row(case, [a / b for a, b in zip(ours, control)], LESS, most,
               ours=show_as(statistics.median(ours)), control=show_as(statistics.median(control)))


def figure(case, values, unit, target=None, better=LESS):
    """On its own, beside no control."""
    return Row(case, list(values), better, target, unit)


# --- showing --------------------------------------------------------------------------------------


def number(value):
    """Three digits, or all of a whole number."""
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}" if abs(value) < 0.1 else f"{value:.2f}"


def duration(seconds):
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            break
    return f"{seconds * factor:.3g} {unit}"


def rate(of_second):
    return f"{of_second:.0f}/s"


def show(value, unit):
    if unit == "s":
        return duration(value)
    return f"{number(value)} {unit}".strip()


# --- the baseline ---------------------------------------------------------------------------------


def stored(row):
    return {"values": row.values, "better": row.better, "unit": row.unit}


def regressed(row, baseline):
    """
    Whether it is worse than its row of the baseline: by more than the slack, and beyond both spreads, the best
    repetition of now being worse than the worst one of then. None: they cannot be compared.
    """
    then = baseline.get(row.key)
    if not then or row.unit not in STEADY or then["better"] != row.better:
        return None
    sign = 1 if row.better == MORE else -1
    now, before = [sign * value for value in row.values], [sign * value for value in then["values"]]
    usual = statistics.median(before)
    return statistics.median(now) < usual - SLACK * abs(usual) and max(now) < min(before)


def change(row, baseline):
    """As a ratio to the baseline's median, to be shown; below 1 is worse whichever way is better."""
    then = statistics.median(baseline[row.key]["values"])
    if then == 0 or row.median == 0:
        return 1.0 if then == row.median else 0.0 if (row.better == LESS) == (then == 0) else float("inf")
    return row.median / then if row.better == MORE else then / row.median

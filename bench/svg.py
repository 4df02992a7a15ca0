"""A plot as SVG: lines with markers, whiskers from the least to the greatest repetition, readable on light and dark."""

import html
import math
import statistics

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 76, 58
STYLE = """
svg { font: 13px system-ui, sans-serif; --ground: #ffffff; --ink: #1f2328; --faint: #d8dce1; --soft: #59636e;
      --a: #0969da; --b: #bc4c00; --c: #1a7f37; --d: #8250df; --e: #6e7781; --f: #bf3989; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0d1117; --ink: #e6edf3; --faint: #30363d; --soft: #9198a1;
        --a: #58a6ff; --b: #f0883e; --c: #3fb950; --d: #bc8cff; --e: #9198a1; --f: #f778ba; } }
.ground { fill: var(--ground); } text { fill: var(--ink); } .soft { fill: var(--soft); }
.title { font-size: 16px; font-weight: 600; } .grid { stroke: var(--faint); stroke-width: 1; }
.line { fill: none; stroke-width: 2; } .whisker { stroke-width: 1.2; opacity: .7; }
"""
COLOURS = "abcdef"
DASHES = ("", "6 4", "2 3", "9 3 2 3", "", "6 4")


def number(value):
    """As people write it: 0.001, 20, 1 000, 10⁷."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        power = math.floor(math.log10(abs(value)) + 1e-9)
        digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        factor = value / 10**power
        return f"10{digits}" if abs(factor - 1) < 1e-6 else f"{factor:g}·10{digits}"
    return f"{value:,.0f}".replace(",", " ") if value == int(value) else f"{value:g}"


class Axis:
    """From data to pixels; log for decades, whole ones if asked, so that the grid has lines."""

    def __init__(self, values, start, end, log, whole=False):
        low, high = min(values), max(values)
        self.log = log and low > 0
        if self.log:
            self.low, self.high = math.log10(low), math.log10(high)
            if whole:
                self.low, self.high = math.floor(self.low + 1e-9), math.ceil(self.high - 1e-9)
        else:
            self.low, self.high = min(0, low), high * 1.05 or 1
        if self.high == self.low:
            self.high += 1
        self.start, self.end = start, end

    def at(self, value):
        place = math.log10(value) if self.log else value
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self):
        if self.log:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            return [10.0**power for power in range(first, last + 1)]
        step = 10 ** math.floor(math.log10(self.high - self.low))
        for factor in (1, 0.5, 0.2):
            if (self.high - self.low) / (step * factor) >= 4:
                break
        step *= factor
        return [i * step for i in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]


def tag(name, content=None, **attributes):
    words = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{words}/>" if content is None else f"<{name}{words}>{content}</{name}>"


def text(content, x, y, **attributes):
    return tag("text", html.escape(content), x=f"{x:.1f}", y=f"{y:.1f}", **attributes)


def marker(which, x, y, colour):
    """A shape of its own for each: colour alone does not tell everybody."""
    shapes = ["M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-4,-4h8v8h-8z", "M0,-5l5,9h-10z", "M0,-5l5,5l-5,5l-5,-5z",
              "M-4,-4l8,8m0,-8l-8,8", "M-5,0h10m-5,-5v10"]
    return tag("path", d=shapes[which % len(shapes)], transform=f"translate({x:.1f} {y:.1f})", fill=colour, stroke=colour)


def grid(plot, x, y):
    for value in x.ticks():
        at = x.at(value)
        yield tag("line", x1=f"{at:.1f}", y1=TOP, x2=f"{at:.1f}", y2=HEIGHT - BOTTOM, class_="grid")
        yield text(number(value), at, HEIGHT - BOTTOM + 18, text_anchor="middle", class_="soft")
    for value in y.ticks():
        at = y.at(value)
        yield tag("line", x1=LEFT, y1=f"{at:.1f}", x2=WIDTH - RIGHT, y2=f"{at:.1f}", class_="grid")
        yield text(number(value), LEFT - 8, at + 4, text_anchor="end", class_="soft")
    yield text(plot.x, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, text_anchor="middle")
    yield text(plot.y, 0, 0, text_anchor="middle", transform=f"translate(20 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)")


def curve(which, points, x, y):
    colour = f"var(--{COLOURS[which % len(COLOURS)]})"
    places = [(x.at(at), y.at(statistics.median(values))) for at, values in points]
    for (across, _), (_, values) in zip(places, points):
        yield tag("line", x1=f"{across:.1f}", x2=f"{across:.1f}", y1=f"{y.at(min(values)):.1f}",
                  y2=f"{y.at(max(values)):.1f}", class_="whisker", stroke=colour)
    yield tag("polyline", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in places), class_="line", stroke=colour,
              stroke_dasharray=DASHES[which % len(DASHES)])
    for across, up in places:
        yield marker(which, across, up, colour)


def legend(names):
    across, up = LEFT, 50
    for which, name in enumerate(names):
        width = 34 + 7.2 * len(name)
        if across > LEFT and across + width > WIDTH - RIGHT:
            across, up = LEFT, up + 18
        yield marker(which, across + 6, up - 4, f"var(--{COLOURS[which % len(COLOURS)]})")
        yield text(name, across + 18, up)
        across += width


def draw(plot):
    """The whole file. A series without points is left out; values of 0 cannot be on a log axis, which is linear then."""
    series = {name: points for name, points in plot.series.items() if points}
    values = [value for points in series.values() for _, several in points for value in several]
    x = Axis([at for points in series.values() for at, _ in points], LEFT, WIDTH - RIGHT, log=True)
    y = Axis(values, HEIGHT - BOTTOM, TOP, log=plot.log_y, whole=True)
    parts = [tag("title", html.escape(plot.title)), tag("style", STYLE),
             tag("rect", width=WIDTH, height=HEIGHT, class_="ground"), text(plot.title, LEFT, 26, class_="title"),
             *legend(series), *grid(plot, x, y)]
    for which, points in enumerate(series.values()):
        parts += curve(which, points, x, y)
    return tag("svg", "\n" + "\n".join(parts) + "\n", xmlns="http://www.w3.org/2000/svg",
               viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img") + "\n"

"""What a run leaves behind: report.md, its plots beside it, and report.json, which can become the baseline."""

import json

import figures
import svg

INTRODUCTION = """# Benchmarks: report

Made by `make bench`; [bench/README.md](../../bench/README.md) says what is measured. {setting}
Each figure is the median of {repetitions} repetitions, in turns with what users would pick instead; the spread is from the
least to the greatest. Trust the ratios, not the absolute figures: the machine's speed and its other load cancel out of them.
A ratio that has to be great is of speed, one that has to be small is of time.
"""


def table(headings, lines):
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "---|" * len(headings)
    for cells in lines:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def against(row, baseline):
    """The last cell: how it stands to the baseline."""
    verdict = figures.regressed(row, baseline)
    if verdict is None:
        return ""
    return f"{figures.change(row, baseline):.2f}" + (" REGRESSED" if verdict else "")


def markdown(results, baseline, setting, repetitions):
    rows = [result for result in results if isinstance(result, figures.Row)]
    worse = [row for row in rows if figures.regressed(row, baseline)]
    missed = [row for row in rows if row.met is False]
    failed = [result for result in results if isinstance(result, figures.Failure)]
    yield INTRODUCTION.format(setting=setting, repetitions=repetitions)
    yield f"{len(rows)} figures: {len(missed)} missed their target, {len(worse)} regressed against the baseline.\n"
    for title, these in (("Missed", missed), ("Regressed", worse)):
        if these:
            yield f"{title}:\n"
            yield from (f"- {row.key}: {row.cells()[3]}" for row in these)
            yield ""
    for failure in failed:
        yield f"**{failure.name} failed:** {failure.why}\n"
    for name in dict.fromkeys(result.name for result in results):
        of_name = [result for result in results if result.name == name]
        yield f"## {name}\n"
        lines = [[*row.cells(), against(row, baseline)] for row in of_name if isinstance(row, figures.Row)]
        if lines:
            yield from table([*figures.HEADINGS, "to the baseline"], lines)
            yield ""
        for plot in of_name:
            if isinstance(plot, figures.Plot):
                yield f"![{plot.title}]({plot.file}.svg)\n"


def data(results, setting):
    return {"setting": setting,
            "rows": {row.key: figures.stored(row) for row in results if isinstance(row, figures.Row)}}


def read_baseline(path):
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else {}


def save_baseline(path, results, setting):
    """Rows that were not measured now stay as they are."""
    fresh = data(results, setting)
    fresh["rows"] = {**read_baseline(path), **fresh["rows"]}
    path.write_text(json.dumps(fresh, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def write(folder, results, baseline, setting, repetitions):
    folder.mkdir(parents=True, exist_ok=True)
    for plot in results:
        if isinstance(plot, figures.Plot):
            (folder / f"{plot.file}.svg").write_text(svg.draw(plot), encoding="utf-8")
    text = "\n".join(markdown(results, baseline, setting, repetitions)).rstrip() + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    save_baseline(folder / "report.json", results, setting)


def terminal(results, baseline):
    """The same rows for people at the terminal, in columns."""
    rows = [result for result in results if isinstance(result, figures.Row)]
    lines = [["benchmark", *figures.HEADINGS, "to the baseline"]]
    lines += [[row.name, *row.cells(), against(row, baseline)] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()

"""What a run found, as a table: a line for each fault, with all that happened until the next one."""

import collections

COLUMNS = ("fault", "injected", "operations", "violations", "unaware", "told after", "regrant", "pause", "stale")


class Report:
    def __init__(self, world, history, checker, violations):
        self.world, self.history, self.checker, self.violations = world, history, checker, violations

    def _fault(self, at):
        found = self.history.fault_at(at)
        return found[1] if found else "(none yet)"

    def rows(self):
        """Seconds are the worst that were measured, or None."""
        by_fault = collections.defaultdict(lambda: collections.Counter())
        samples = collections.defaultdict(list)
        for _, name, _ in self.history.faults:
            by_fault[name]["injected"] += 1
        for operation in self.history.operations:
            by_fault[self._fault(operation.asked)]["operations"] += 1
            for at, status in operation.writes:
                by_fault[self._fault(at)]["stale"] += status == "STALE"
        for violation in self.violations:
            by_fault[self._fault(violation.at)]["violations"] += 1
        for sample in self.checker.samples:
            samples[self._fault(sample.at)].append(sample)
        for name, counts in sorted(by_fault.items()):
            worst = [self.checker.worst(kind, samples[name]) for kind in ("unaware", "told", "regrant", "pause")]
            yield [name, counts["injected"], counts["operations"], counts["violations"], *worst, counts["stale"]]

    def print(self):
        print("".join(f"{name:>{width}}" for name, width in zip(COLUMNS, WIDTHS)))
        for row in self.rows():
            print("".join(f"{as_text(cell):>{width}}" for cell, width in zip(row, WIDTHS)))
        print(f"worst: unaware of a loss {self.worst('unaware')} of {self.checker.bound:.0f} s, granted again after a loss "
              f"in {self.worst('regrant')} s, answered {self.worst('answer')} s behind the wait")
        answers = collections.Counter(f"{o.op} {o.status}" for o in self.history.operations)
        print("answers: " + ", ".join(f"{what} {count}" for what, count in sorted(answers.items())))
        for note in self.notes():
            print(note)
        for violation in self.violations[:20]:
            print(f"VIOLATION {violation.kind}: {violation.text}")
        for name, why in self.world.left_out.items():
            print(f"LEFT OUT {name}: {why}")
        print(f"{len(self.history.operations)} operations, {len(self.history.faults)} faults, "
              f"{len(self.violations)} violations")

    def worst(self, kind):
        return as_text(self.checker.worst(kind))

    def notes(self):
        """On what a world does not promise, and what it counted by itself."""
        counts = collections.Counter(sample.kind for sample in self.checker.samples)
        if counts["split"]:
            yield (f"Two servers granted locks: {counts['split']} times two had one, for {self.worst('split')} s at most, "
                   "and only tokens protected.")
        if counts["old token"]:
            yield (f"A server that had been replaced granted {counts['old token']} locks, up to {self.worst('old token')} s "
                   "after the new one; their tokens were lower.")
        if counts["lost"]:
            yield f"{counts['lost']} reported commits were lost: the standby is asynchronous."
        yield from self.history.state.get("notes", ())

    def markdown(self, title):
        yield f"### {title}"
        yield ""
        yield "| " + " | ".join(COLUMNS) + " |"
        yield "|---|" + "---:|" * (len(COLUMNS) - 1)
        for row in self.rows():
            yield "| " + " | ".join(map(as_text, row)) + " |"
        yield ""
        kinds = collections.Counter(violation.kind for violation in self.violations)
        found = ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))
        yield (f"{len(self.history.operations)} operations, {len(self.history.faults)} faults, "
               f"{len(self.violations)} violations{f' ({found})' if found else ''}; an answer came "
               f"at most {self.worst('answer')} s behind its wait.")
        yield from self.notes()
        for name, why in self.world.left_out.items():
            yield f"Left out: {name}, because {why}."
        yield ""


END = "<!-- end of the tables -->"


def write_into(path, lines, mark="tables of tests/chaos/run"):
    """Between the marks of a page that has them; else that is the page."""
    page, begin = path.read_text() if path.exists() else "", f"<!-- {mark} -->"
    before, _, rest = page.partition(begin) if begin in page else ("", "", "")
    path.write_text("\n".join([before + begin, "", *lines, END + rest.partition(END)[2].rstrip("\n"), ""]))


WIDTHS = (17, 9, 11, 11, 9, 11, 9, 9, 6)


def as_text(cell):
    if cell is None:
        return "-"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)

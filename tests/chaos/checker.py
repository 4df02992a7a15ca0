"""
Holds a history to the promises. Each rule yields violations; times that were within the bound, but
worst, are kept in `worst`. What is compared are times at which a process had certainly got a lock
and had not yet begun to give it back, so no delay of a log can make a violation.
"""

import collections

SLACK = 2.0  # seconds that a busy machine may take to run a thread

# Seconds between two arrivals that certainly were in that order at the server.
APART = 2.0

Violation = collections.namedtuple("Violation", "kind text at")


class Checker:
    def __init__(self, history, bound, answer=10.0, overtaken=3):
        """bound: seconds in which a loss is told; answer: in which a call ends behind its wait."""
        self.history = history
        self.bound = bound
        self.answer = answer
        self.overtaken = overtaken
        self.worst = {"notice": 0.0, "regrant": 0.0, "answer": 0.0}

    def violations(self):
        for rule in (self.one_holder, self.tokens_grow, self.all_answered, self.first_come_first_served,
                     self.fence_holds, self.commits_are_there_once):
            yield from rule()

    # --- locks -------------------------------------------------------------------------------------------

    def _grants(self):
        """Grants by what they exclude each other in: a label, or a slot of it."""
        by_key = collections.defaultdict(list)
        for operation in self.history.operations:
            if operation.granted is not None and operation.op != "tx":
                for label in operation.labels:
                    by_key[label if operation.slot is None else f"{label} slot {operation.slot}"].append(operation)
        for key, grants in by_key.items():
            yield key, sorted(grants, key=lambda grant: grant.granted)

    def one_holder(self):
        for key, grants in self._grants():
            open_grants = []
            for later in grants:
                open_grants = [g for g in open_grants if self.history.ended(g) > later.granted]
                for earlier in open_grants:
                    if "exclusive" in (earlier.mode, later.mode):
                        yield from self._judge(key, earlier, later)
                open_grants.append(later)

    def _judge(self, key, earlier, later):
        ended = self.history.ended(earlier)
        both = ended - later.granted
        was_lost = earlier.told is not None or earlier.freed_status not in ("OK", None) \
            or earlier.worker in self.history.killed
        unaware = both - self.history.stopped_within(earlier.worker, later.granted, ended)
        if not was_lost:
            yield Violation("two holders", f"{key}: {earlier} was never told; {later}", later.granted)
        elif unaware > self.bound + SLACK:
            yield Violation("told late", f"{key}: {unaware:.1f} s after {later}: {earlier}", later.granted)
        else:
            self.worst["notice"] = max(self.worst["notice"], unaware)

    def tokens_grow(self):
        for key, grants in self._grants():
            by_asked = sorted((g for g in grants if g.token), key=lambda grant: grant.asked)
            highest, at = None, 0
            given = [g for g in grants if g.token]
            for grant in by_asked:
                while at < len(given) and given[at].granted < grant.asked:
                    highest = max(highest or given[at], given[at], key=lambda g: g.token)
                    at += 1
                if highest and grant.token <= highest.token:
                    yield Violation("token", f"{key}: {grant} is not above {highest}", grant.granted)

    def all_answered(self):
        for operation in self.history.operations:
            if operation.worker in self.history.killed and operation.answered is None:
                continue
            if operation.answered is None:
                yield Violation("no answer", repr(operation), operation.asked)
                continue
            if operation.wait < 0:
                continue
            took = operation.answered - operation.asked
            took -= self.history.stopped_within(operation.worker, operation.asked, operation.answered)
            late = took - operation.wait / 1000
            self.worst["answer"] = max(self.worst["answer"], late)
            if late > self.answer + SLACK:
                yield Violation("late answer", f"{late:.1f} s behind its wait: {operation}", operation.answered)

    def _is_quiet(self, start, end):
        return not any(at < end and (mended or self.history.end) + self.bound + APART > start
                       for at, _, mended in self.history.faults)

    def first_come_first_served(self):
        """Long waits, with nothing wrong meanwhile: nobody is passed by many who came later."""
        for key, grants in self._grants():
            waits = [g for g in grants if g.op == "long" and g.mode == "exclusive"]
            for first in waits:
                passed = [g for g in waits if g.asked > first.asked + APART and g.granted < first.granted]
                if len(passed) > self.overtaken and self._is_quiet(first.asked, first.granted):
                    yield Violation("overtaken", f"{key}: {len(passed)} came later than {first}", first.granted)
        self._regrants()

    def _regrants(self):
        for _, grants in self._grants():
            for gone in grants:
                at = self.history.killed.get(gone.worker)
                if at is None or self.history.ended(gone) != at:
                    continue
                waiting = [g for g in grants if g.asked < at < g.granted]
                if waiting:
                    self.worst["regrant"] = max(self.worst["regrant"], min(g.granted for g in waiting) - at)

    # --- what was written --------------------------------------------------------------------------------

    def fence_holds(self):
        """state["writes"]: [label, token] in the order in which the store took them."""
        highest = {}
        for label, token in self.history.state.get("writes", ()):
            if token < highest.get(label, token):
                yield Violation("fence", f"{label}: token {token} was taken after {highest[label]}", self.history.end)
            highest[label] = max(token, highest.get(label, token))

    def commits_are_there_once(self):
        """state["rows"]: how often each id of a transaction is there."""
        if "rows" not in self.history.state:
            return
        rows = self.history.state["rows"]
        for operation in self.history.operations:
            if operation.op != "tx":
                continue
            count = rows.get(operation.id, 0)
            if operation.status is None or operation.status == "IN_DOUBT":
                wrong = count > 1
            else:
                wrong = count != (1 if operation.status == "OK" else 0)
            if wrong:
                yield Violation("commit", f"{count} rows of {operation}", operation.answered or operation.asked)

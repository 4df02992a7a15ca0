"""
Holds a history to the promises. Each rule yields violations, and keeps what it measured in `samples`:
how long a loss was not known of while another had the lock already ("unaware"), how long after the
fault it was told ("told"), how long until another got the lock of one that was killed or had lost it
("regrant"), how long after a fault nothing was done ("pause"), how late an answer was ("answer"),
and, where two servers granted locks, for how long two had one ("split") and how long after the first
grant of the new server the old one granted something ("old token"). What is compared are times at which a process had certainly got a lock
and had not yet begun to give it back, so no delay of a log can make a violation.
"""

import bisect
import collections

SLACK = 2.0  # seconds that a busy machine may take to run a thread

# Seconds between two arrivals that certainly were in that order at the server.
APART = 2.0

Violation = collections.namedtuple("Violation", "kind text at")
Sample = collections.namedtuple("Sample", "kind at seconds")


class Checker:
    def __init__(self, history, bound, answer=10.0, overtaken=3, split_faults=()):
        """
        bound: seconds in which a loss is told; answer: in which a call ends behind its wait; split_faults: names of
        those during which a server that was replaced may grant locks, so that only tokens protect.
        """
        self._split = [(at, (mended or history.end) + bound) for at, name, mended in history.faults
                       if name in split_faults]
        self.history = history
        self.bound = bound
        self.answer = answer
        self.overtaken = overtaken
        self.samples = []

    def violations(self):
        for rule in (self.one_holder, self.tokens_grow, self.all_answered, self.no_deadlock, self.first_come_first_served,
                     self.fence_holds, self.commits_are_there_once, self.ledgers_are_there_once,
                     self.appends_are_there_once, self.appends_are_in_one_piece, self.found_as_it_should_be):
            yield from rule()
        self._measure_losses()
        self._measure_pauses()

    def worst(self, kind, samples=None):
        found = [sample.seconds for sample in (self.samples if samples is None else samples) if sample.kind == kind]
        return max(found, default=None)

    def _is_split(self, at):
        return any(since <= at <= to for since, to in self._split)

    def _measured(self, kind, at, seconds):
        self.samples.append(Sample(kind, at, seconds))

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

    def _was_told(self, grant):
        return grant.told is not None or grant.freed_status not in ("OK", None)

    def _was_lost(self, grant):
        return self._was_told(grant) or grant.freed is None and grant.worker in self.history.killed

    def _in_order(self, earlier, later):
        """
        Who had the lock first, and who after it. A grant is known when it is answered, and `run` answers only when its
        job has begun: the one who answered later may have had it before, if it asked in time, and lost it to the other.
        """
        if self._was_lost(earlier) or not self._was_told(later) or later.asked > earlier.granted:
            return earlier, later
        if earlier.token and later.token and earlier.token < later.token:
            return earlier, later
        return later, earlier

    def _judge(self, key, one, other):
        since = other.granted
        earlier, later = self._in_order(one, other)
        ended = self.history.ended(earlier)
        both = ended - since
        unaware = both - self.history.stopped_within(earlier.worker, since, ended)
        if not self._was_lost(earlier) and self._is_split(since):
            self._measured("split", since, min(both, self.history.ended(later) - since))
        elif not self._was_lost(earlier):
            yield Violation("two holders", f"{key}: {earlier} was never told; {later}", since)
        elif unaware > self.bound + SLACK:
            yield Violation("told late", f"{key}: {unaware:.1f} s after {later}: {earlier}", since)
        else:
            self._measured("unaware", since, unaware)

    def tokens_grow(self):
        for key, grants in self._grants():
            by_asked = sorted((g for g in grants if g.token), key=lambda grant: grant.asked)
            highest, at = None, 0
            given = [g for g in grants if g.token]
            for grant in by_asked:
                while at < len(given) and given[at].granted < grant.asked:
                    highest = max(highest or given[at], given[at], key=lambda g: g.token)
                    at += 1
                if not highest or grant.token > highest.token:
                    continue
                if self._is_split(grant.granted) and grant.token < highest.token:
                    self._measured("old token", grant.granted, grant.granted - highest.granted)
                else:
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
            self._measured("answer", operation.answered, late)
            if late > self.answer + SLACK:
                yield Violation("late answer", f"{late:.1f} s behind its wait: {operation}", operation.answered)

    def no_deadlock(self):
        """No worker waits for a lock while it holds another."""
        for operation in self.history.operations:
            if operation.status == "DEADLOCK":
                yield Violation("deadlock", repr(operation), operation.answered)

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

    def _measure_losses(self):
        for _, grants in self._grants():
            for gone in grants:
                end = self.history.ended(gone)
                if gone.told == end and (fault := self.history.fault_at(end)):
                    self._measured("told", end, end - fault[0] - self.history.stopped_within(gone.worker, fault[0], end))
                if end not in (gone.told, self.history.killed.get(gone.worker)):
                    continue
                waiting = [g.granted for g in grants if g.asked < end < g.granted]
                if waiting:
                    self._measured("regrant", end, min(waiting) - end)

    def _measure_pauses(self):
        """After a fault, until the next: the longest time in which nothing that was asked for was done."""
        done = sorted(o.answered for o in self.history.operations
                      if o.answered is not None and (o.granted is not None or o.status == "OK"))
        ends = [begun for begun, _, _ in self.history.faults[1:]] + [self.history.end]
        for (begun, _, _), end in zip(self.history.faults, ends):
            first, last = bisect.bisect_left(done, begun), bisect.bisect_left(done, end)
            times = [begun, *done[first:last + 1]]
            self._measured("pause", begun, max((after - before for before, after in zip(times, times[1:])), default=0.0))

    # --- what was written --------------------------------------------------------------------------------

    def fence_holds(self):
        """state["writes"]: [label, token] in the order in which the store took them."""
        highest = {}
        for label, token in self.history.state.get("writes", ()):
            if token < highest.get(label, token):
                yield Violation("fence", f"{label}: token {token} was taken after {highest[label]}", self.history.end)
            highest[label] = max(token, highest.get(label, token))

    def commits_are_there_once(self):
        """state["rows"]: how often each id of a transaction is there; may_lose: the store does not promise to keep them."""
        if "rows" not in self.history.state:
            return
        rows = self.history.state["rows"]
        for operation in self.history.operations:
            if operation.op != "tx":
                continue
            count = rows.get(operation.id, 0)
            if operation.status is None or operation.status == "IN_DOUBT":
                wrong = count > 1
            elif operation.status == "OK" and count == 0 and self.history.state.get("may_lose"):
                self._measured("lost", operation.answered, 0.0)
                wrong = False
            else:
                wrong = count != (1 if operation.status == "OK" else 0)
            if wrong:
                yield Violation("commit", f"{count} rows of {operation}", operation.answered or operation.asked)

    def ledgers_are_there_once(self):
        """
        state["ledgers"]: want [sequence, hash, transactions], rows the same with the transactions that are there,
        coverage [lo, hi] and latest.
        """
        if "ledgers" not in self.history.state:
            return
        ledgers, end = self.history.state["ledgers"], self.history.end
        want = {sequence: [hash_, count, count] for sequence, hash_, count in ledgers["want"]}
        times = collections.Counter(row[0] for row in ledgers["rows"])
        for sequence in sorted(want.keys() | times.keys()):
            if times[sequence] != (sequence in want):
                yield Violation("ledger", f"ledger {sequence} is there {times[sequence]} times", end)
        for sequence, *found in ledgers["rows"]:
            if found != want.get(sequence, found):
                yield Violation("ledger", f"ledger {sequence} is {found} instead of {want[sequence]}", end)
        first, last = min(want), max(want)
        if ledgers["coverage"] != [[first, last]] or ledgers["latest"] != last:
            yield Violation("coverage", f"{ledgers['coverage']}, latest {ledgers['latest']}, of {first} to {last}", end)

    def appends_are_there_once(self):
        """state["appends"]: rows, and how many different ones, by append; strangers: was theirs acknowledged?"""
        if "appends" not in self.history.state:
            return
        left = {int(append): rows for append, rows in self.history.state["appends"].items()}
        for operation in self.history.operations:
            rows, kinds = left.pop(operation.id, [0, 0])
            if operation.status == "OK":
                right = rows == operation.rows
            elif operation.op == "direct" or operation.status == "IN_DOUBT":
                right = rows <= operation.rows
            else:
                right = rows in (0, operation.rows)
            if not right or rows != kinds:
                yield Violation("append", f"{rows} rows, {kinds} kinds, of {operation.rows} of {operation}",
                                operation.answered or operation.asked)
        for append, done in self.history.state["strangers"].items():
            rows = left.pop(int(append), [0, 0])
            if rows not in ([[10, 10]] if done else [[0, 0], [10, 10]]):
                yield Violation("stranger", f"{rows} rows of stranger {append}", self.history.end)
        for append, rows in left.items():
            yield Violation("append", f"{rows} rows of an append that nobody made, {append}", self.history.end)

    def appends_are_in_one_piece(self):
        """state["order"]: the append of each part, in the order of the table. Direct ones may have been cut."""
        cut = {o.id for o in self.history.operations if o.op == "direct" and o.status != "OK"}
        order = [append for append in self.history.state.get("order", ()) if append not in cut]
        starts = collections.Counter(append for at, append in enumerate(order) if at == 0 or order[at - 1] != append)
        for append, times in starts.items():
            if times > 1:
                yield Violation("interleaved", f"append {append} is in {times} pieces", self.history.end)

    def found_as_it_should_be(self):
        for seen in self.history.seen:
            if seen["want"] != seen["got"]:
                yield Violation(seen["what"], f"{seen['got']} instead of {seen['want']}", seen["t"])

"""What an append asks of PostgreSQL: three messages beside those of its connections, whose loss costs no row."""

import pytest

import wire
from appending import Appender, counts, make_table, rows_of, settled_by_others
from appending_beside import beside_strangers
from awaiting import eventually

# What belongs to a connection, and what the history's own writes.
OF_CONNECTIONS = ("pg_is_in_recovery", "open_session", "lift_token", "close_session", "holdfast.events",
                  "holdfast.holders", "holdfast.housekeep")


# Where the line is cut: before the message, before its COMMIT, or once it has been done and not been answered.
BEFORE, COMMIT, ANSWER = "before", "commit", "answer"


class Messages:
    """A rule that keeps what was asked, message by message, and cuts the line in the n-th of the append's own."""

    def __init__(self, at=None, where=None):
        self.at = at
        self.where = where
        self.own = []
        self.was_hit = False

    def __call__(self, line, message):
        if message.kind == "P" and not line.notes.get("is_own") and not line.notes.get("is_begun"):
            line.notes["is_begun"] = True
            line.notes["is_own"] = not any(word in message.text for word in OF_CONNECTIONS)
            if line.notes["is_own"]:
                self.own.append(message.text)
        is_ours = line.notes.get("is_own") and len(self.own) - 1 == self.at and not self.was_hit
        self.was_hit = self.was_hit or is_ours and self._is_there(message)
        if message.kind in "SQ":
            line.notes.clear()
        if not is_ours or not self.was_hit:
            return None
        return wire.MUTE if self.where == ANSWER else wire.CUT

    def _is_there(self, message):
        return {BEFORE: True, COMMIT: message.is_commit, ANSWER: message.kind == "S"}[self.where]


@pytest.fixture
def proxied(holdfast, store, ch):
    make_table(ch)
    with wire.WireProxy(store.server.port) as proxy:
        appender = Appender(holdfast.at(store.url(host="127.0.0.1", port=proxy.port)), ch)
        appender.proxy = proxy
        appender.done("t", input=rows_of(0, 10))  # the table is known from now on
        yield appender


@pytest.mark.parametrize("words, most", [(["--staged"], 3), (["--staged", "--id", "one"], 3), (["--direct"], 2)])
def test_an_append_asks_postgresql_three_times_at_most(proxied, ch, words, most):
    proxied.proxy.rule = messages = Messages()
    assert proxied.done(*words, "t", input=rows_of(1, 100))["rows"] == 100
    assert len(messages.own) == most, messages.own
    assert counts(ch) == {0: 10, 1: 100}


# In that order: the table's lock, what is attached, that it is done.
LOCK, ATTACHING, DONE = range(3)


@pytest.mark.parametrize("at, where, code, outcome", [
    (LOCK, BEFORE, 79, "resumed"),
    (LOCK, ANSWER, 79, "resumed"),
    (ATTACHING, BEFORE, 79, "resumed"),
    (ATTACHING, COMMIT, 79, "resumed"),
    (ATTACHING, ANSWER, 79, "finished"),
    (DONE, BEFORE, 79, "finished"),
    (DONE, COMMIT, 79, "finished"),
    (DONE, ANSWER, 0, "nothing to do"),
])
@beside_strangers
def test_a_line_cut_in_any_message_costs_no_row_and_doubles_none(
        proxied, ch, at, where, code, outcome):
    proxied.proxy.rule = messages = Messages(at, where)
    with settled_by_others(ch):  # who has to wait for the lock asks more often
        first = proxied("--id", "one", "t", input=rows_of(1, 100))
    assert messages.was_hit and first.code == code, (first, messages.own)
    if not ch.strangers:  # one with the lock finishes what it finds
        assert counts(ch) == ({0: 10, 1: 100} if at == DONE else {0: 10})
    proxied.proxy.rule = None
    assert proxied.done("--id", "one", "t", input=rows_of(1, 100))["outcome"] == outcome
    assert counts(ch) == {0: 10, 1: 100} and ch.staging_tables() == []


def test_the_message_that_says_done_gives_both_locks_back(proxied, store, tmp_path):
    rows = tmp_path / "rows"
    rows.write_bytes(rows_of(1, 100))
    held = """SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
              WHERE l.locktype = 'advisory' AND a.datname = current_database()"""
    messages = Messages()

    def keep_the_answer(line, message):
        messages(line, message)
        return wire.HOLD if len(messages.own) == DONE + 1 and message.kind == "S" else None

    proxied.proxy.rule = keep_the_answer
    worker = proxied.start("t", rows)
    eventually(lambda: store.sql("SELECT count(*) FROM holdfast.appends WHERE state = 'done'") == [(2,)],
               20, "it is done")
    eventually(lambda: store.sql(held) == [(0,)], 5, "both are free")
    assert worker.process.poll() is None  # it has not heard of it
    worker.process.kill()
    worker.wait(20)

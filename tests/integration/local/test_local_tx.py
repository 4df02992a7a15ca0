"""Transactions on the local store: deadlines, and waiting for the one writer that SQLite allows."""

import contextlib
import threading
import time

import pytest

import hf
import hf_tx
from awaiting import Background, stays
from hf import Status

COUNTS_FOR_MINUTES = ("with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000000000)"
                      " select count(*) from n")


@pytest.fixture
def store(tmp_path):
    with hf.Store(f"local:{tmp_path / 'state'}") as opened:
        hf_tx.transact(opened, None, lambda tx: tx.query("create table t (a integer)"))
        yield opened


def rows(store):
    return int(hf_tx.transact(store, None, lambda tx: tx.value("select count(*) from t")))


@contextlib.contextmanager
def writer(store):
    """A transaction that has written and is not committed yet."""
    writes, done = threading.Event(), threading.Event()

    def body(tx):
        tx.query("insert into t values (1)")
        writes.set()
        assert done.wait(60)

    with contextlib.closing(Writer(Background(hf_tx.transact, store, None, body), done)) as opened:
        assert writes.wait(20)
        yield opened


class Writer:
    def __init__(self, call, done):
        self.call, self.done = call, done

    def close(self):
        self.done.set()
        self.call.result()


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_deadline_ends_a_running_statement(store, first):
    def body(tx):
        if not first:
            tx.query("insert into t values (1)")
        tx.query(COUNTS_FOR_MINUTES)

    began = time.monotonic()
    error = hf_tx.refusal(store, None, body, deadline_ms=300)
    assert time.monotonic() - began < 20
    assert error.status is Status.EXHAUSTED
    assert "deadline" in error.message
    assert error.sqlstate == "57014"
    assert rows(store) == 0


def test_statement_after_the_deadline_is_not_begun(store):
    def body(tx):
        tx.query("select 1")
        time.sleep(0.2)
        tx.query("insert into t values (1)")

    assert hf_tx.refusal(store, None, body, deadline_ms=100).status is Status.EXHAUSTED
    assert rows(store) == 0


def test_waiting_for_the_writer_spends_no_attempts(store):
    with writer(store) as first:
        call = Background(hf_tx.Call, store, None, lambda tx: tx.query("insert into t values (2)"), max_attempts=1)
        stays(lambda: call.running, 0.5)
        first.close()
    done = call.result()
    assert done.status is Status.OK, done.error.message
    assert done.attempts == 1
    assert rows(store) == 2


def test_deadline_ends_the_wait_for_the_writer(store):
    with writer(store):
        error = hf_tx.refusal(store, None, lambda tx: tx.query("insert into t values (2)"), deadline_ms=300)
        assert error.status is Status.EXHAUSTED
        assert "deadline" in error.message


def test_interrupt_ends_the_wait_for_the_writer(store, tmp_path):
    with writer(store), hf.Store(f"local:{tmp_path / 'state'}") as other:
        call = Background(hf_tx.Call, other, None, lambda tx: tx.query("insert into t values (2)"))
        stays(lambda: call.running, 0.4)
        other.interrupt()
        assert call.result().status is Status.INTERRUPTED


def test_transaction_inside_of_one_does_not_wait_for_it(store):
    def body(tx):
        tx.query("insert into t values (1)")
        return hf_tx.refusal(store, None, lambda inner: inner.query("insert into t values (2)"), max_attempts=2)

    assert hf_tx.transact(store, None, body).status is Status.EXHAUSTED

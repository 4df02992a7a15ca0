"""Transactions whose attempts the caller drives: begun, worked on and ended in different threads."""

import ctypes
import os
from ctypes import byref, c_void_p

import pytest

import hf
import hf_tx
from awaiting import Background, stays
from counting import LABEL, counter, increment
from hf import CError, Cancel, HfError, Status
from hf_tx import Begun, Isolation, Tx, lib

ROUNDS = 30


class Open:
    """One attempt that is open, until end or free."""

    def __init__(self, store, label=None, **options):
        targets = (hf.Target * 1)(hf.target(label)) if label else None
        raw = hf_tx.TxOptions(size=ctypes.sizeof(hf_tx.TxOptions), labels=targets, label_count=1 if label else 0,
                              **options)
        self.pointer, error = c_void_p(), CError()
        hf.check(lib().hf_tx_begin(store.pointer, byref(raw), byref(self.pointer), byref(error)), error)
        self.tx = Tx(self.pointer)

    def end(self, result=Status.OK):
        error = CError()
        return Status(lib().hf_tx_end(self.pointer, result, byref(error)))

    def free(self):
        lib().hf_tx_free(self.pointer)


@pytest.fixture
def begun(store):
    made = []

    def begin(label=None, on=store, **options):
        made.append(Open(on, label, **options))
        return made[-1]

    yield begin
    for one in made:
        one.free()


# --- the same outcomes as hf_transact -----------------------------------------------------------------


def test_what_is_ended_well_is_committed_once(store):
    call = Begun(store, LABEL, increment)
    assert call.status is Status.OK and call.attempts == 1
    assert call.error.message == b"untouched"
    assert [stats.outcome for stats in call.stats] == [Status.OK]
    assert counter(store) == 1


def test_many_at_once_lose_no_update(store, other):
    calls = [Background(lambda on=on: [Begun(on, LABEL, increment).result() for _ in range(ROUNDS)])
             for on in (store, store, other, other)]
    for call in calls:
        call.result()
    assert counter(store) == 4 * ROUNDS


def test_a_conflict_opens_the_next_attempt(server_store):
    def body(tx):
        increment(tx)
        if tx.attempt < 3:
            tx.query("do $$ begin raise sqlstate '40001'; end $$")

    call = Begun(server_store, LABEL, body, backoff_max_ms=5)
    assert call.status is Status.OK and call.attempts == 3
    assert counter(server_store) == 1


def test_attempts_are_spent(server_store):
    call = Begun(server_store, LABEL, lambda tx: tx.query("do $$ begin raise sqlstate '40001'; end $$"),
                 max_attempts=2, backoff_max_ms=5)
    assert call.status is Status.EXHAUSTED and call.attempts == 2
    assert call.stats[0].outcome is Status.EXHAUSTED


def test_a_session_that_ends_before_commit_is_settled(tx_server, server_store):
    def body(tx):
        increment(tx)
        if tx.attempt == 1:
            pid = int(tx.value("select pg_backend_pid()"))
            tx_server.database.sql("select pg_terminate_backend(%s, 5000)", pid)

    call = Begun(server_store, LABEL, body)
    assert call.status is Status.OK and call.attempts == 2
    assert counter(server_store) == 1


@pytest.mark.parametrize("isolation", list(Isolation))
def test_every_level_works(store, isolation):
    assert Begun(store, LABEL, increment, isolation=isolation).status is Status.OK
    assert counter(store) == 1


# --- the application's own reasons --------------------------------------------------------------------


@pytest.mark.parametrize("form", [hf_tx.Call, Begun])
def test_an_application_rolls_back_without_an_error_of_ours(store, form):
    def body(tx):
        increment(tx)
        tx.value("select n from counter where id = 1")
        raise hf_tx.failure(Status.ROLLED_BACK, "")

    call = form(store, LABEL, body)
    assert call.status is Status.ROLLED_BACK and call.attempts == 1
    assert counter(store) == 0


def test_its_reason_needs_no_error(store, begun):
    one = begun(LABEL)
    increment(one.tx)
    error = CError(code=99, message=b"rubbish")
    assert lib().hf_tx_end(one.pointer, Status.ROLLED_BACK, byref(error)) == Status.ROLLED_BACK
    assert error.code == Status.ROLLED_BACK and b"rolled" in error.message
    assert counter(store) == 0


@pytest.mark.parametrize("form", [hf_tx.Call, Begun])
def test_again_is_not_for_applications(store, form):
    def body(tx):
        increment(tx)
        raise hf_tx.failure(Status.AGAIN, "once more")

    assert form(store, LABEL, body).status is Status.INVALID
    assert counter(store) == 0


def test_a_statement_that_is_refused_is_not_said_to_be_a_callbacks(begun):
    with pytest.raises(HfError) as refused:
        begun(LABEL).tx.query("commit")
    assert "callback" not in refused.value.message + refused.value.hint and "hf_tx_end" in str(refused.value)


# --- what is held, and when it ends -------------------------------------------------------------------


def test_the_label_is_held_until_the_end(store, other, begun):
    one = begun(LABEL)
    increment(one.tx)
    waiter = Background(Begun, other, LABEL, increment)
    stays(lambda: waiter.running, 0.3)
    assert one.end() is Status.OK
    assert waiter.result().status is Status.OK
    assert counter(store) == 2


def test_what_was_not_ended_is_rolled_back_when_freed(store, other):
    one = Open(store, LABEL)
    increment(one.tx)
    one.free()
    assert Begun(other, LABEL, increment, deadline_ms=20_000).status is Status.OK
    assert counter(store) == 1


def test_after_its_end_nothing_can_be_done_with_it(store, begun):
    one = begun(LABEL)
    assert one.end() is Status.OK
    assert one.end() is Status.INVALID
    for use in (lambda: one.tx.query("select 1"), lambda: one.tx.queue("select 1"),
                lambda: one.tx.serialize("x"), lambda: one.tx.connection()):
        with pytest.raises(HfError) as refused:
            use()
        assert refused.value.status is Status.INVALID
    assert lib().hf_tx_end(None, Status.OK, None) == Status.INVALID


def test_a_handle_ends_its_wait(store, other, begun):
    with Cancel() as cancel:
        one = begun(LABEL, on=other)
        increment(one.tx)
        waiter = Background(Begun, store, LABEL, increment, cancel=cancel)
        stays(lambda: waiter.running, 0.3)
        cancel.trigger()
        assert waiter.result().status is Status.INTERRUPTED
        assert one.end() is Status.OK
    assert counter(store) == 1


def test_a_child_of_fork_cannot_end_it(store, begun):
    one = begun(LABEL)
    increment(one.tx)
    child = os.fork()
    if child == 0:
        ended = one.end()
        one.free()
        os._exit(int(ended))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == Status.FORKED
    assert one.end() is Status.OK
    assert counter(store) == 1


@pytest.mark.parametrize("form", [hf_tx.Call, Begun])
@pytest.mark.parametrize("owner", [-1, 1 << 62])
def test_its_owner_is_a_positive_number_below_two_to_the_62(store, form, owner):
    assert form(store, LABEL, increment, owner=owner).status is Status.INVALID

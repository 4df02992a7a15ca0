"""
A server, or what is between, that falls silent and tells nobody: a transaction ends soon after its
deadline or its cancel, or, without these, once nobody answers for it, and what is not proven is in doubt.
"""

import contextlib
import threading
import time

import pytest

import hf
import hf_tx
from awaiting import Background, eventually
from hf import PRIVATE, Cancel, State, Status
from hf_tx import Call, OnLock
from wire import HOLD, SILENCE, WireProxy, once

LABEL = "Silence:1"
BEYOND, FIND_OUT = 1.5, 5.0  # seconds that the header allows after the deadline or the cancel
ROOM = 3.0  # for a busy machine; connecting to a silent server takes 10


@pytest.fixture(scope="module", params=["marker", "xid"])
def database(request, pg18):
    made = pg18.create_database()
    made.sql("create table done (what text)", user="app")
    if request.param == "marker":
        hf.install(made.url())
    yield made
    made.drop()


@contextlib.contextmanager
def through_proxy(database, **options):
    database.sql("truncate done")
    with WireProxy(database.server.port) as proxy:
        with hf.Store(database.url(host="127.0.0.1", port=proxy.port), **options) as store:
            hf_tx.transact(store, LABEL, lambda tx: tx.query("select 1"))  # connects
            yield store, proxy


@pytest.fixture
def line(database):
    with through_proxy(database) as made:
        yield made


@pytest.fixture
def watched_line(database):
    """Silence is noticed soon."""
    with through_proxy(database, ping_interval_ms=300, ping_deadline_ms=700) as made:
        yield made


def rows(database):
    return [row[0] for row in database.sql("select what from done")]


def insert(tx):
    tx.query("insert into done values ('row')")


@contextlib.contextmanager
def within(seconds):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + ROOM


def silent_statement(proxy, new, then=None):
    def body(tx):
        insert(tx)
        proxy.silence(new)
        if then:
            then()
        tx.query("select 2")

    return body


def silent_commit(proxy, new):
    def body(tx):
        insert(tx)
        proxy.silence(new)

    return body


ALL = pytest.mark.parametrize("new", [True, False], ids=["all", "open lines"])


# --- with a deadline ---------------------------------------------------------------------------------


@ALL
def test_a_statement_ends_soon_after_its_deadline(database, line, new):
    store, proxy = line
    with within(1 + BEYOND):
        call = Call(store, LABEL, silent_statement(proxy, new), deadline_ms=1000)
    assert call.status in (Status.EXHAUSTED, Status.NOT_ACQUIRED), call.error.message
    assert rows(database) == []


def test_a_commit_of_which_nothing_is_known_is_in_doubt_soon_after_its_deadline(line):
    store, proxy = line
    with within(1 + FIND_OUT):
        call = Call(store, LABEL, silent_commit(proxy, True), deadline_ms=1000)
    assert call.status is Status.IN_DOUBT


def test_a_commit_that_never_arrived_is_proven_not_to_have_been(database, line):
    store, proxy = line
    with within(1 + FIND_OUT):
        call = Call(store, LABEL, silent_commit(proxy, False), deadline_ms=1000)
    assert call.status is Status.EXHAUSTED and rows(database) == []


def test_a_commit_whose_answer_is_kept_is_proven(database, line):
    store, proxy = line
    proxy.rule = once(lambda message: message.is_commit, HOLD)
    with within(1 + FIND_OUT):
        call = Call(store, LABEL, insert, deadline_ms=1000)
    assert call.status is Status.OK and rows(database) == ["row"]


def test_connecting_ends_with_the_deadline(database):
    with WireProxy(database.server.port) as proxy:
        with hf.Store(database.url(host="127.0.0.1", port=proxy.port)) as store:
            store.acquire(1).end()
            proxy.silence(True)
            with within(1):
                call = Call(store, LABEL, insert, deadline_ms=1000)
            assert call.status is Status.UNREACHABLE and call.attempts == 0


def test_labels_whose_grant_was_never_heard_of_are_freed(database, line):
    store, proxy = line
    proxy.rule = once(lambda message: message.is_lock, HOLD)
    call = Call(store, LABEL, insert, deadline_ms=500)
    assert call.status is not Status.OK
    eventually(lambda: not database.advisory_locks(), what="the session that was given up is gone")


def test_a_rollback_ends_soon_after_its_deadline(database, line):
    store, proxy = line

    def body(tx):
        insert(tx)
        proxy.silence(False)
        raise hf_tx.failure(Status.ROLLED_BACK, "no")

    with within(1 + BEYOND):
        assert Call(store, LABEL, body, deadline_ms=1000).status is Status.ROLLED_BACK
    eventually(lambda: not database.advisory_locks(), what="the session that was given up is gone")


# --- with a cancel -----------------------------------------------------------------------------------


@pytest.fixture
def cancel():
    with Cancel() as handle:
        yield handle


@ALL
def test_a_statement_ends_soon_after_its_cancel(database, cancel, line, new):
    store, proxy = line
    sent = threading.Event()
    call = Background(Call, store, LABEL, silent_statement(proxy, new, sent.set), cancel=cancel)
    assert sent.wait(20)
    with within(BEYOND):
        cancel.trigger()
        assert call.result().status is Status.INTERRUPTED
    assert rows(database) == []


@pytest.mark.parametrize("new, status", [(True, Status.IN_DOUBT), (False, Status.INTERRUPTED)],
                         ids=["all", "open lines"])
def test_a_commit_is_found_out_about_or_in_doubt_soon_after_its_cancel(database, cancel, line, new, status):
    store, proxy = line
    sent = threading.Event()

    def rule(_line, message):
        if not message.is_commit or sent.is_set():
            return None
        proxy.silence(new)
        sent.set()
        return SILENCE

    proxy.rule = rule
    call = Background(Call, store, LABEL, insert, cancel=cancel)
    assert sent.wait(20)
    with within(FIND_OUT):
        cancel.trigger()
        assert call.result().status is status
    if not new:
        assert rows(database) == []


def test_a_rollback_ends_soon_after_its_cancel(database, cancel, line):
    store, proxy = line
    sent = threading.Event()

    def body(tx):
        insert(tx)
        proxy.silence(True)
        sent.set()
        raise hf_tx.failure(Status.ROLLED_BACK, "no")

    call = Background(Call, store, LABEL, body, cancel=cancel)
    assert sent.wait(20)
    with within(BEYOND):
        cancel.trigger()
        assert call.result().status is Status.ROLLED_BACK


# --- with neither ------------------------------------------------------------------------------------


def test_a_statement_that_never_arrived_is_noticed_and_tried_again(database, watched_line):
    store, proxy = watched_line
    proxy.rule = once(lambda message: "first" in message.text, SILENCE)

    def body(tx):
        insert(tx)
        tx.query("select 'first'")

    call = Background(Call, store, LABEL, body).result()
    assert (call.status, call.attempts) == (Status.OK, 2) and rows(database) == ["row"]


@pytest.mark.parametrize("verdict, attempts", [(SILENCE, 2), (HOLD, 1)], ids=["lost", "answer lost"])
def test_a_commit_is_noticed_to_be_lost_and_found_out_about(database, watched_line, verdict, attempts):
    store, proxy = watched_line
    proxy.rule = once(lambda message: message.is_commit, verdict)
    call = Background(Call, store, LABEL, insert).result()
    assert (call.status, call.attempts) == (Status.OK, attempts) and rows(database) == ["row"]


def test_a_statement_on_a_server_that_is_silent_altogether_ends(database, watched_line):
    store, proxy = watched_line
    call = Background(Call, store, LABEL, silent_statement(proxy, True), max_attempts=1).result()
    assert call.status is Status.EXHAUSTED and "does not answer for it" in call.error.message.decode()


def test_a_server_that_is_at_work_is_waited_for(database):
    """For longer than silence is borne. The probes have three seconds: a busy machine connects slowly."""
    with through_proxy(database, ping_interval_ms=300, ping_deadline_ms=3000) as (store, _proxy):
        call = Call(store, LABEL, lambda tx: tx.query("select pg_sleep(4.5)"))
        assert (call.status, call.attempts) == (Status.OK, 1)


# --- a lock's session that another uses --------------------------------------------------------------


@contextlib.contextmanager
def busy_session(store):
    """A lock on whose session another owner's transaction runs."""
    entered, leave = threading.Event(), threading.Event()

    def stay(tx):
        tx.query("select 1")
        entered.set()
        assert leave.wait(20)

    with store.acquire("job", flags=PRIVATE) as lock:
        inside = Background(OnLock, lock, stay, owner=1)
        assert entered.wait(20)
        try:
            yield lock
        finally:
            leave.set()
            assert inside.result().status is Status.OK
        assert lock.state is State.HELD


@pytest.mark.parametrize("form", [OnLock, hf_tx.BegunOnLock])
def test_a_cancel_ends_the_wait_for_a_locks_session(cancel, line, form):
    store, _proxy = line
    with busy_session(store) as lock:
        waiter = Background(form, lock, insert, owner=2, cancel=cancel)
        time.sleep(0.1)
        assert waiter.running
        with within(0):
            cancel.trigger()
            assert waiter.result().status is Status.INTERRUPTED


def test_a_deadline_ends_the_wait_for_a_locks_session(line):
    store, _proxy = line
    with busy_session(store) as lock, within(0.2):
        assert Background(OnLock, lock, insert, owner=2, deadline_ms=200).result().status is Status.EXHAUSTED

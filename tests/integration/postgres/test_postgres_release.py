"""Releasing on PostgreSQL: an error frees nothing of another holder's, and costs no finished work."""

import contextlib

import pytest

import hf
import servers
from awaiting import Background, eventually
from hf import FOREVER, SHARED, HfError, State, Status
from strangers import run
from wire import Message, WireProxy

K, X = 7, 9


def failing(word):
    """A rule: the next statement with that word does its work, and then fails."""
    def rule(_line, message):
        if rule.done or message.kind != "P" or word not in message.text:
            return None
        rule.done = True
        return Message.parse(f"select s.*, 1 / (pg_backend_pid() * 0) from ({message.text} offset 0) as s")

    rule.done = False
    return rule


@contextlib.contextmanager
def held_by_two(db, url):
    """A shared lock on K and a shared set {K, X}, both got by waiting, with room for one wait session."""
    with hf.Store(url, max_waits=1) as store, contextlib.closing(db.connect()) as stranger:
        def after_a_wait(what, key):
            run(stranger, "select pg_advisory_lock(%s)", key)
            waiter = Background(store.acquire, what, FOREVER, mode=SHARED)
            eventually(lambda: db.waiters(key))
            run(stranger, "select pg_advisory_unlock(%s)", key)
            return waiter.result()

        single, both = after_a_wait(K, K), after_a_wait([K, X], X)
        assert len(db.holders(K)) == 1 and db.holders(K) == db.holders(X)
        yield single, both, stranger


def test_failed_release_of_a_shared_key_never_frees_another_holders(db):
    """The set shares the hold of the other lock: only the last of the two gives the key back."""
    def is_taken():
        taken, = run(stranger, f"select pg_try_advisory_lock({K})")[0]
        run(stranger, "select pg_advisory_unlock_all()")
        return not taken

    with WireProxy(db.server.port) as proxy:
        with held_by_two(db, db.url(port=proxy.port)) as (single, both, stranger):
            proxy.rule = failing("pg_advisory_unlock_shared")
            single.release()
            assert not proxy.rule.done and is_taken() and both.state is State.HELD
            with contextlib.suppress(HfError):
                both.release()
            assert proxy.rule.done
            eventually(lambda: not is_taken())


@pytest.mark.parametrize("what", [K, [K, X]], ids=["one", "set"])
@pytest.mark.parametrize("mode", [hf.EXCLUSIVE, SHARED], ids=["exclusive", "shared"])
def test_failed_release_leaves_nothing_behind_and_loses_nothing_else(db, what, mode):
    with WireProxy(db.server.port) as proxy, hf.Store(db.url(port=proxy.port)) as store:
        other, lock = store.acquire(1), store.acquire(what, mode=mode)
        proxy.rule = failing("pg_advisory_unlock")
        with contextlib.suppress(HfError):
            lock.release()
        assert proxy.rule.done
        assert db.holders(K) == db.holders(X) == []
        assert other.state is State.HELD and db.holders(1)
        other.end()


@pytest.fixture
def full_queue(template18):
    """Fills the queue of notifications of a server of its own."""
    settings = "max_notify_queue_pages = 64\n"
    with servers.Postgres.copy_of(template18, "full-queue", settings) as server:
        database = server.start().create_database()
        with contextlib.closing(database.connect(autocommit=False)) as sleeper, \
                contextlib.closing(database.connect()) as speaker:
            def fill():
                run(sleeper, "listen nothing")
                sleeper.commit()
                run(sleeper, "select 1")  # its transaction keeps what comes from now on
                with pytest.raises(Exception, match="NOTIFY queue"):
                    for _ in range(1000):
                        run(speaker, "select pg_notify('nothing', repeat('x', 7000))")

            yield database, fill


def test_full_queue_of_notifications_fails_no_release(full_queue):
    database, fill = full_queue
    with hf.Store(database.url()) as holder, hf.Store(database.url()) as store:
        held = {what: holder.acquire(list(what)) for what in [(1,), (2, 3), (4, (5, 6))]}
        waiters = [Background(store.acquire, what[0], FOREVER) for what in held]
        eventually(lambda: len({row[3] for row in database.advisory_locks()
                                if row[2] == 1213156420 and row[3] != 1}) == len(held), what="they listen")
        fill()
        for lock in held.values():
            lock.release()
        for waiter in waiters:
            assert waiter.result().state is State.HELD

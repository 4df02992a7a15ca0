"""Fencing tokens: each greater than every one before, whatever happens to the server."""

import contextlib
import random

import psycopg2
import pytest

import hf
from awaiting import Background, eventually
from hf import FOREVER, State, Status


def strictly_increasing(tokens):
    return all(earlier < later for earlier, later in zip(tokens, tokens[1:]))


def test_tokens_increase_over_acquires_labels_stores_and_processes(recorded):
    tokens = []
    with recorded.open() as store, recorded.open() as other, recorded.peer() as peer:
        for _ in range(5):
            for opened in (store, other):
                for label in ("a", "b"):
                    lock = opened.acquire(label)
                    tokens.append(lock.token)
                    lock.end()
            number = peer.acquire("a")
            tokens.append(peer.token(number))
            peer.release(number)
    assert tokens[0] > 0
    assert strictly_increasing(tokens), tokens


def test_a_set_has_a_token_that_is_greater_than_those_before(recorded):
    with recorded.open() as store:
        before = store.acquire("job").token
        assert store.acquire(["one", "two", "three"]).token > before > 0


def test_a_set_on_a_session_of_its_own_has_all_its_keys(recorded):
    with recorded.open() as store, recorded.open() as other:
        lock = store.acquire([41, 42, 43], flags=hf.PRIVATE)
        assert lock.token > 0
        for key in (41, 42, 43):
            assert other.refusal(key).status is Status.NOT_ACQUIRED
        lock.end()
        other.acquire([41, 42, 43])


def test_tokens_increase_across_reopening(recorded):
    tokens = []
    for _ in range(5):
        with recorded.open() as store:
            tokens.append(store.acquire("job").token)
    assert strictly_increasing(tokens), tokens


def test_hand_over_within_a_process_takes_a_fresh_token(recorded):
    with recorded.open() as store:
        tokens = []

        def take():
            lock = store.acquire("job", FOREVER)
            tokens.append(lock.token)
            lock.end()

        first = store.acquire("job")
        takers = [Background(take) for _ in range(10)]
        tokens.append(first.token)
        first.end()
        for taker in takers:
            taker.result()
    assert len(tokens) == 11
    assert strictly_increasing(tokens), tokens


def test_hand_over_between_processes_takes_a_greater_token(recorded):
    with recorded.open() as store, recorded.peer() as peer:
        held = peer.acquire("job")
        theirs = peer.token(held)
        waiter = Background(store.acquire, "job", FOREVER)
        peer.release(held)
        assert waiter.result().token > theirs


def test_shared_holders_and_slots_have_tokens_of_their_own(recorded):
    with recorded.open() as store:
        tokens = [store.acquire("job", mode=hf.SHARED).token,
                  Background(store.acquire, "job", mode=hf.SHARED).result().token,
                  store.acquire("pool", slots=2).token,
                  Background(store.acquire, "pool", slots=2).result().token]
    assert strictly_increasing(tokens), tokens


def test_token_of_a_lost_lock_is_older_than_its_successors(db):
    with hf.Store(db.url()) as store:
        store.init()
        lock = store.acquire("job")
        db.server.terminate(db.holders(lock.key)[0])
        eventually(lambda: lock.state is State.LOST)
        assert store.acquire("job", 20000).token > lock.token


def test_racing_processes_never_share_a_token(recorded):
    tokens = []

    def collect(opened, label):
        mine = []
        for _ in range(40):
            lock = opened.acquire(label, FOREVER)
            mine.append(lock.token)
            lock.end()
        assert strictly_increasing(mine)
        tokens.extend(mine)

    with recorded.open() as store, recorded.open() as other:
        racers = [Background(collect, opened, label)
                  for opened in (store, other) for label in ("a", "b")]
        for racer in racers:
            racer.result(40)
    assert len(set(tokens)) == len(tokens) == 160


@pytest.mark.timeout(180)
@pytest.mark.parametrize("crash", ["kill9", "kill9_postmaster"])
def test_tokens_increase_across_crashes_of_the_server(own_pg, crash):
    own_pg.extra_settings = "synchronous_commit = off\nwal_writer_delay = 10s\n"
    own_pg.restart()
    db = own_pg.create_database()
    hf.install(db.url())
    tokens, chance = [], random.Random(1)
    for _ in range(8):
        with hf.Store(db.url()) as store:
            for _ in range(chance.randint(1, 40)):
                lock = store.acquire("job")
                tokens.append(lock.token)
                lock.end()
        getattr(own_pg, crash)()
        own_pg.start()
    assert strictly_increasing(tokens), tokens


def test_open_store_gives_greater_tokens_after_a_crash(own_pg, own_db):
    with hf.Store(own_db.url(), connect_timeout_ms=5000) as store:
        store.init()
        tokens = []
        for _ in range(3):
            lock = store.acquire("job", 20000)
            tokens.append(lock.token)
            own_pg.kill9()
            own_pg.start()
            eventually(lambda: lock.state is State.LOST)
            lock.free()
        tokens.append(store.acquire("job", 20000).token)
    assert strictly_increasing(tokens), tokens


@pytest.mark.timeout(120)
def test_tokens_increase_across_promotion(own_pg, own_db):
    """The standby has not heard of the last tokens when it takes over."""
    with hf.Store(own_db.url()) as store:
        store.init()
        tokens = [store.acquire("job").token]
    with own_pg.make_standby() as standby:
        lsn = own_pg.value("select pg_current_wal_flush_lsn()")
        eventually(lambda: standby.value("select pg_last_wal_replay_lsn() >= %s::pg_lsn", lsn))
        standby.sql("select pg_wal_replay_pause()")
        with hf.Store(own_db.url()) as store:
            for _ in range(100):
                lock = store.acquire("job")
                tokens.append(lock.token)
                lock.end()
        own_pg.kill9()
        standby.sql("select pg_wal_replay_resume()")
        standby.promote()
        with hf.Store(standby.url(own_db.name)) as store:
            for _ in range(3):
                lock = store.acquire("job", 20000)
                tokens.append(lock.token)
                lock.end()
        assert strictly_increasing(tokens), tokens
        standby.kill9()
        standby.start()
        with hf.Store(standby.url(own_db.name)) as store:
            tokens.append(store.acquire("job").token)
        assert strictly_increasing(tokens), tokens


def test_tokens_increase_across_a_clean_restart(own_pg, own_db):
    with hf.Store(own_db.url()) as store:
        store.init()
        first = store.acquire("job").token
    own_pg.restart()
    with hf.Store(own_db.url()) as store:
        assert store.acquire("job").token > first


def take(url, times=1):
    """The tokens of one lock that is taken again and again."""
    tokens = []
    with hf.Store(url) as store:
        for _ in range(times):
            lock = store.acquire("job", 20000)
            tokens.append(lock.token)
            lock.end()
    return tokens


@pytest.mark.timeout(120)
def test_tokens_increase_when_two_standbys_are_promoted_in_turn(own_pg, own_db):
    """Neither knows of the other, and both are on the same timeline."""
    hf.install(own_db.url())
    tokens = take(own_db.url(), 5)
    with own_pg.make_standby("first") as first, own_pg.make_standby("second") as second:
        for standby in (first, second):
            lsn = own_pg.value("select pg_current_wal_flush_lsn()")
            eventually(lambda: standby.value("select pg_last_wal_replay_lsn() >= %s::pg_lsn", lsn))
        own_pg.kill9()
        for standby in (first, second):
            standby.promote()
            tokens += take(standby.url(own_db.name), 50)
            standby.kill9()
    assert strictly_increasing(tokens), tokens


@pytest.mark.timeout(120)
def test_tokens_increase_when_a_replaced_primary_comes_back(own_pg, own_db):
    hf.install(own_db.url())
    tokens = take(own_db.url(), 5)
    with own_pg.make_standby() as standby:
        own_pg.stop()
        standby.promote()
        tokens += take(standby.url(own_db.name), 50)
    own_pg.start()
    tokens += take(own_db.url(), 50)
    assert strictly_increasing(tokens), tokens


def test_tokens_increase_across_a_schema_that_is_dropped_and_installed_again(db):
    tokens = []
    for _ in range(3):
        hf.install(db.url())
        tokens += take(db.url(), 50)
        db.sql("drop schema holdfast cascade")
    assert strictly_increasing(tokens), tokens


@pytest.mark.parametrize("flags", [0, hf.PRIVATE])
def test_process_gets_no_token_below_one_that_it_had(recorded_db, flags):
    """As from another server whose clock is behind."""
    with hf.Store(recorded_db.url()) as store:
        lock = store.acquire("job", flags=flags)
        before = lock.token
        recorded_db.sql("select setval('holdfast.token', 1)")
        for session in recorded_db.sessions():
            recorded_db.server.terminate(session)
        eventually(lambda: lock.state is State.LOST)
        assert store.acquire("job", 20000, flags=flags).token > before
    assert take(recorded_db.url())[0] > before


# --- the fence --------------------------------------------------------------------------------------


@pytest.fixture
def fenced(db):
    hf.install(db.url())
    return db


def fence(connection, resource, token):
    """True when the token is accepted; a refusal may be a false or an error."""
    with connection.cursor() as cursor:
        cursor.execute("savepoint before_fence")
        try:
            cursor.execute("select holdfast.fence(%s, %s)", (resource, token))
            accepted = cursor.fetchone()[0]
        except psycopg2.Error:
            cursor.execute("rollback to before_fence")
            return False
        return accepted is not False


def test_fence_accepts_only_what_is_not_older_than_the_newest(fenced):
    with contextlib.closing(fenced.connect(autocommit=False)) as connection:
        assert fence(connection, "ledger", 10)
        assert fence(connection, "ledger", 10), "the holder writes more than once"
        assert fence(connection, "ledger", 11)
        assert not fence(connection, "ledger", 10)
        assert fence(connection, "another", 1)
        connection.commit()
        assert not fence(connection, "ledger", 10)
        assert fence(connection, "ledger", 11)


def test_fence_belongs_to_the_callers_transaction(fenced):
    with contextlib.closing(fenced.connect(autocommit=False)) as connection:
        assert fence(connection, "ledger", 10)
        connection.commit()
        assert fence(connection, "ledger", 20)
        connection.rollback()
        assert fence(connection, "ledger", 15), "what was rolled back was never seen"


def test_older_writer_waits_for_the_newer_and_is_then_refused(fenced):
    with contextlib.closing(fenced.connect(autocommit=False)) as newer, \
            contextlib.closing(fenced.connect(autocommit=False)) as older:
        assert fence(newer, "ledger", 20)
        attempt = Background(fence, older, "ledger", 10)
        eventually(lambda: fenced.value(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
            " and datname = current_database()"))
        newer.commit()
        assert attempt.result() is False
        older.rollback()


def test_fence_keeps_an_older_holder_out(fenced):
    """The old holder has lost its lock without knowing; the new one has written already."""
    with hf.Store(fenced.url()) as store:
        first = store.acquire("job")
        old = first.token
        first.end()
        new = store.acquire("job").token
        with contextlib.closing(fenced.connect(autocommit=False)) as connection:
            assert fence(connection, "job", new)
            connection.commit()
            assert not fence(connection, "job", old)


def test_token_is_above_all_that_the_fence_has_met(fenced):
    """A server whose clock was ahead gave it; else all who hold the lock from now on were refused."""
    with contextlib.closing(fenced.connect(autocommit=False)) as connection:
        ahead = take(fenced.url())[0] + 2 ** 42
        assert fence(connection, "job", ahead)
        connection.commit()
        token = take(fenced.url())[0]
        assert token > ahead and fence(connection, "job", token)
        connection.rollback()
        fenced.sql("select setval('holdfast.token', 1)")
        assert not fence(connection, "job", 1)
        connection.rollback()
        assert take(fenced.url())[0] > ahead


def test_fence_does_not_take_any_number_for_a_token(fenced):
    with contextlib.closing(fenced.connect(autocommit=False)) as connection:
        before = take(fenced.url())[0]
        assert fence(connection, "other", 2 ** 63 - 1)
        connection.commit()
        assert before < take(fenced.url())[0] < before + 2 ** 40


def test_fence_without_a_token_is_an_error(fenced):
    """A NULL must not pass for an accepted token."""
    with contextlib.closing(fenced.connect()) as connection, connection.cursor() as cursor:
        for resource, token in ((None, 1), ("ledger", None)):
            try:
                cursor.execute("select holdfast.fence(%s::text, %s::bigint)", (resource, token))
                assert cursor.fetchone()[0] is False
            except psycopg2.Error:
                pass


def test_token_of_a_killed_process_is_older_than_the_next(recorded):
    with recorded.peer() as peer:
        held = peer.acquire("job")
        theirs = peer.token(held)
        peer.kill9()
    with recorded.open() as store:
        assert store.acquire("job", 20000).token > theirs

"""Waiting on PostgreSQL: no snapshot held, nobody starved, no wake-up lost, nothing left behind."""

import contextlib
import hashlib
import itertools
import random
import statistics
import struct
import threading
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, HfError, State, Status
from peer import Peer
from strangers import run

LONG = 2.5  # seconds after which a wait is a long one


@pytest.fixture
def stranger(db):
    """A session that takes locks without Holdfast."""
    connection = db.connect()
    yield connection
    connection.close()


def begin_long_wait(store, key, seconds=LONG):
    waiter = Background(store.acquire, key, FOREVER)
    stays(lambda: waiter.running, seconds)
    return waiter


def test_long_waiter_holds_back_no_snapshot(db, stranger):
    run(stranger, "select pg_advisory_lock(7)")
    with hf.Store(db.url()) as store:
        waiter = begin_long_wait(store, 7)
        now = int(db.value("select pg_current_xact_id()::text"))
        eventually(lambda: db.value(
            "select count(*) = 0 from pg_stat_activity where application_name like 'holdfast%%'"
            " and datname = current_database() and backend_xmin::text::bigint <= %s", now),
            what="every snapshot of the waiter is younger than the transaction")
        assert waiter.running
        run(stranger, "select pg_advisory_unlock(7)")
        waiter.result()


def test_vacuum_is_not_stalled_by_a_long_waiter(db, stranger):
    run(stranger, "select pg_advisory_lock(7)")
    db.sql("create table bulk as select generate_series(1, 1000) as a")
    with hf.Store(db.url()) as store:
        waiter = begin_long_wait(store, 7)
        db.sql("delete from bulk")

        def vacuumed():
            db.sql("vacuum bulk")
            return db.value("select pg_relation_size('bulk') = 0")

        eventually(vacuumed)
        assert waiter.running
        run(stranger, "select pg_advisory_unlock(7)")
        waiter.result()


def test_holder_may_create_an_index_concurrently_while_another_waits(db, stranger):
    db.sql("create table bulk as select generate_series(1, 1000) as a")
    db.sql("alter table bulk owner to app")
    run(stranger, "select pg_advisory_lock(7)")
    with hf.Store(db.url()) as store:
        waiter = begin_long_wait(store, 7)
        run(stranger, "create index concurrently bulk_a on bulk (a)")
        assert db.value("select indisvalid from pg_index where indexrelid = 'bulk_a'::regclass")
        assert waiter.running
        run(stranger, "select pg_advisory_unlock(7)")
        waiter.result()


@contextlib.contextmanager
def queueing_strangers(db, key, count=3, hold=0.01):
    """One of them holds and the others queue, unless ours gets in."""
    done = threading.Event()

    def loop():
        with contextlib.closing(db.connect()) as connection:
            while not done.is_set():
                run(connection, "select pg_advisory_lock(%s)", key)
                done.wait(hold)
                run(connection, "select pg_advisory_unlock(%s)", key)

    threads = [Background(loop) for _ in range(count)]
    try:
        eventually(lambda: len(db.waiters(key)) >= count - 1)
        yield
    finally:
        done.set()
        for thread in threads:
            thread.result()


def test_waiter_is_not_starved_by_strangers_that_queue(db):
    with hf.Store(db.url()) as store, queueing_strangers(db, 7):
        for _ in range(5):
            store.acquire(7, 20000).end()


def test_long_waiter_is_not_starved_by_strangers_that_queue(db, stranger):
    run(stranger, "select pg_advisory_lock(7)")
    with hf.Store(db.url()) as store:
        waiter = begin_long_wait(store, 7)
        with queueing_strangers(db, 7):
            run(stranger, "select pg_advisory_unlock(7)")
            waiter.result(30).end()


def test_set_is_not_starved_by_strangers_that_queue(db):
    with hf.Store(db.url()) as store, queueing_strangers(db, 7), queueing_strangers(db, 9):
        store.acquire([7, 8, 9], 30000).end()


@pytest.mark.parametrize("max_waits", [1, 16], ids=["pool spent", "a connection each"])
def test_release_wakes_long_waiters_of_another_process(db, max_waits):
    """A lost wake-up would leave them to the tick, which comes up to a second later."""
    keys = list(range(100, 110))
    with hf.Store(db.url(), max_waits=max_waits) as store, hf.Store(db.url()) as other, Peer(db.url()) as holder:
        held = {key: holder.acquire(key) for key in keys}
        waiters = {key: Background(store.acquire, key, FOREVER) for key in keys}
        stays(lambda: all(waiter.running for waiter in waiters.values()), LONG + 0.5)

        def delay(waiter, lock):
            released = time.monotonic()
            holder.release(lock)
            waiter.result().free()
            return waiter.finished_at - released

        def delay_in_the_queue(key):
            """Nobody has to wake it; on a busy machine it takes its time all the same."""
            lock = holder.acquire(key)
            waiter = Background(other.acquire, key, FOREVER)
            eventually(lambda: db.waiters(key))
            return delay(waiter, lock)

        queued, delays = zip(*[(delay_in_the_queue(-key), delay(waiters[key], held[key])) for key in keys])
        assert statistics.median(delays) < 0.25 + 3 * statistics.median(queued), (delays, queued)


def test_freed_label_wakes_its_own_waiter_however_many_wait_for_others(db):
    labels = [f"label-{number}" for number in range(40)]
    with hf.Store(db.url(), max_waits=2) as store, hf.Store(db.url()) as holder:
        held = {label: holder.acquire(label) for label in labels}
        waiters = {label: Background(store.acquire, label, FOREVER) for label in labels}
        stays(lambda: all(waiter.running for waiter in waiters.values()), 1)
        for label in labels[::5]:
            held[label].end()
        for label in labels[::5]:
            assert waiters[label].result(5).state is State.HELD
        for label in labels:
            if waiters[label].running:
                held[label].end()
        for waiter in waiters.values():
            waiter.result()


class Line:
    """Stores that want one key, and the order in which they get it."""

    def __init__(self, db, stack):
        self.db = db
        self.stack = stack
        self.granted = []

    def begin(self, name, hold):
        """Waits, holds for so long, releases; returns when the wait has become a long one."""
        store = self.stack.enter_context(hf.Store(self.db.url()))

        def take():
            lock = store.acquire(7, FOREVER)
            self.granted.append(name)
            time.sleep(hold)
            lock.end()

        return self.joined_by(lambda: Background(take))

    def joined_by(self, begin):
        """Returns when the wait that this begins has become a long one."""
        def long_waits():
            return {row[0] for row in self.db.advisory_locks() if row[2] == 1213156420 and row[3] != 1}

        before = len(long_waits())
        begun = begin()
        eventually(lambda: len(long_waits()) > before)
        return begun


def test_long_waits_are_granted_in_the_order_in_which_they_came(db):
    with contextlib.ExitStack() as stack, hf.Store(db.url()) as store:
        first, line = store.acquire(7), Line(db, stack)
        waiters = [line.begin(name, 0.1) for name in "abcde"]
        first.end()
        for waiter in waiters:
            waiter.result()
        assert line.granted == list("abcde")


def test_long_holders_that_come_back_wait_for_the_others(db):
    """Without an order, who releases and acquires again at once is always the fastest."""
    granted, names = [], "abcd"

    def loop(name):
        with hf.Store(db.url()) as store:
            for _ in range(3):
                lock = store.acquire(7, FOREVER)
                granted.append(name)
                time.sleep(0.9)
                lock.end()

    for one in [Background(loop, name) for name in names]:
        one.result(40)
    gaps = [granted[at + 1:].index(name) for name in names for at, other in enumerate(granted)
            if other == name and name in granted[at + 1:]]
    assert max(gaps) <= len(names), granted


def stop_in_line(db, peer):
    """Not in the server's own queue, where it would be granted the key, and hold it stopped."""
    def is_stopped():
        peer.stop()
        if not db.waiters(7):
            return True
        peer.cont()
        return False

    eventually(is_stopped)


def test_stopped_waiter_lets_others_pass(db):
    with contextlib.ExitStack() as stack, hf.Store(db.url()) as store, Peer(db.url()) as peer:
        first, line = store.acquire(7), Line(db, stack)
        line.joined_by(lambda: peer.begin("acquire", 7, FOREVER))
        stop_in_line(db, peer)
        waiters = [line.begin(name, 0.05) for name in "ab"]
        first.end()
        for waiter in waiters:
            waiter.result()
        peer.cont()


def test_no_wake_up_is_lost_in_a_storm(db):
    """Waiters come and go around the moment of release; a wait that hangs would break its limit."""
    with hf.Store(db.url()) as store, hf.Store(db.url()) as other:
        def loop(opened, seed):
            chance = random.Random(seed)
            for _ in range(150):
                lock = opened.acquire(7, 20000)
                if chance.random() < 0.3:
                    threading.Event().wait(chance.random() * 0.003)
                lock.end()

        loops = [Background(loop, opened, seed)
                 for seed, opened in enumerate([store, store, other, other])]
        for one in loops:
            one.result(50)


def test_dead_waiter_leaves_the_queue(db, stranger):
    run(stranger, "select pg_advisory_lock(7)")
    with Peer(db.url(), application="holdfast-doomed") as peer:
        peer.begin("acquire", 7, FOREVER)
        eventually(lambda: db.waiters(7), what="the peer queues")
        peer.kill9()
    eventually(lambda: not db.sessions("holdfast-doomed%"), what="no session of the dead is left")
    assert db.waiters(7) == []


def test_wait_leaves_no_errors_in_the_servers_log(db, stranger):
    run(stranger, "select pg_advisory_lock(7)")
    mark = db.server.log_size()
    with hf.Store(db.url()) as store:
        assert store.refusal(7, 300).status is Status.NOT_ACQUIRED
        assert store.refusal(7, 3500).status is Status.NOT_ACQUIRED
        waiter = begin_long_wait(store, 7, 3)
        run(stranger, "select pg_advisory_unlock(7)")
        waiter.result().end()
    complaints = [line for line in db.server.log(mark).splitlines()
                  if any(level in line for level in ("ERROR:", "FATAL:", "WARNING:"))]
    assert complaints == []


def test_store_that_is_closed_behind_an_interrupt_leaves_no_errors_in_the_servers_log(own_pg, own_db):
    """What its waits give back is on the way, and the server answers it when the store closes.

    The wait is the second in line, so that it sleeps or tries, and never queues in the server: a connection that
    is interrupted there is given up, and the server may well say so.
    """
    with contextlib.closing(own_db.connect()) as stranger, hf.Store(own_db.url()) as first:
        run(stranger, "select pg_advisory_lock(7)")
        before = begin_long_wait(first, 7)
        others = len(own_db.sessions())
        store = hf.Store(own_db.url())
        waiter = begin_long_wait(store, 7)
        mark = own_pg.log_size()
        with own_pg.frozen():
            store.interrupt()
            with pytest.raises(hf.HfError):
                waiter.result()
            closing = Background(store.close)
            stays(lambda: True, 0.3)
        closing.result()
        eventually(lambda: len(own_db.sessions()) <= others, what="the sessions of the store end")
        assert "FATAL:" not in own_pg.log(mark)
        run(stranger, "select pg_advisory_unlock(7)")
        before.result().end()


class Aim:
    """Limits in ms around the moment of the grant, whenever that comes on this machine."""

    def __init__(self, seed):
        self._chance = random.Random(seed)
        self._middle = 7

    def __iter__(self):
        return self

    def __next__(self):
        return self._chance.randint(1, round(2 * self._middle))

    def was(self, granted):
        self._middle = max(2, self._middle * 0.95) if granted else min(60, self._middle * 1.05)


def time_out_around_the_grant(db, aim, what, times, held):
    """Waits of about as long as it takes: each is granted, or nothing of ours is held (a condition on pg_locks)."""
    refused = granted = 0
    with contextlib.closing(db.connect(user="postgres")) as watcher, hf.Store(db.url()) as store, \
            queueing_strangers(db, 7, count=2, hold=0.004):
        for limit in itertools.islice(aim, times):
            try:
                store.acquire(what, limit).end()
                granted += 1
                aim.was(granted=True)
            except HfError as error:
                assert error.status is Status.NOT_ACQUIRED
                refused += 1
                aim.was(granted=False)
                assert run(watcher, "select count(*) from pg_locks l join pg_stat_activity a using (pid)"
                                    f" where l.locktype = 'advisory' and {held} and l.granted"
                                    " and a.application_name like 'holdfast%%'")[0][0] == 0
    assert refused > 20 and granted > 20, f"the aim was off: {refused} refused, {granted} granted"


def test_wait_that_times_out_around_the_grant_never_keeps_the_lock(db):
    time_out_around_the_grant(db, Aim(3), 7, 400, held="l.objid = 7")


def test_set_that_times_out_around_the_grant_never_keeps_a_part(db):
    time_out_around_the_grant(db, Aim(4), [6, 7, 8], 200, held="l.objsubid = 1")


class PeakOfSessions:
    """The most sessions of ours that were seen at once while the block ran."""

    def __init__(self, db):
        self.db = db
        self.most = 0

    def __enter__(self):
        self._done = threading.Event()
        self._watcher = Background(self._watch)
        return self

    def _watch(self):
        with contextlib.closing(self.db.connect(user="postgres")) as connection:
            while not self._done.is_set():
                count = run(connection, "select count(*) from pg_stat_activity where datname ="
                                        " current_database() and application_name like 'holdfast%%'")
                self.most = max(self.most, count[0][0])
                self._done.wait(0.005)

    def __exit__(self, *_):
        self._done.set()
        self._watcher.result()


def test_a_thousand_threads_on_one_label_use_four_connections(db):
    threading.stack_size(256 * 1024)
    tally, failures = [0], []
    with hf.Store(db.url()) as store, PeakOfSessions(db) as peak:
        first = store.acquire("job")

        def take():
            try:
                lock = store.acquire("job", FOREVER)
                tally[0] += 1
                lock.end()
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=take) for _ in range(1000)]
        for thread in threads:
            thread.start()
        threading.stack_size(0)
        stays(lambda: tally[0] == 0, 0.5)
        first.end()
        for thread in threads:
            thread.join(50)
    assert failures == []
    assert tally[0] == 1000
    assert 1 <= peak.most <= 4


def test_waits_beyond_the_pool_go_on_over_few_connections(db, stranger):
    keys = list(range(200, 220))
    for key in keys:
        run(stranger, "select pg_advisory_lock(%s)", key)
    with hf.Store(db.url(), max_waits=1) as store, PeakOfSessions(db) as peak:
        waiters = [Background(store.acquire, key, FOREVER) for key in keys]
        stays(lambda: all(waiter.running for waiter in waiters), LONG)
        run(stranger, "select pg_advisory_unlock_all()")
        for waiter in waiters:
            assert waiter.result(20).state is State.HELD
        assert sorted(key for key in keys if db.holders(key)) == keys
    assert peak.most <= 4


def test_uncontended_locks_share_one_session(db):
    with hf.Store(db.url()) as store, PeakOfSessions(db) as peak:
        locks = [Background(store.acquire, key).result() for key in range(50)]
        holders = {db.holders(key)[0] for key in range(50)}
        assert len(holders) == 1
        for lock in locks:
            lock.end()
    assert peak.most <= 2


@pytest.mark.parametrize("records", [False, True])
def test_taking_and_freeing_a_free_set_costs_one_statement_each(db, records):
    db.sql(f"alter database {db.name} set log_statement = 'all'")
    with hf.Store(db.url()) as store:
        if records:
            store.init()
        store.acquire(list(range(10, 60))).end()
        mark = db.server.log_size()
        lock = store.acquire(list(range(10, 60)))
        taken = statements_of("holdfast", db.server.log(mark))
        mark = db.server.log_size()
        lock.end()
        freed = statements_of("holdfast", db.server.log(mark))
    assert (len(taken), len(freed)) == (1, 1), (taken, freed)


def statements_of(application, log):
    return [line for line in log.splitlines()
            if application in line and (" execute " in line or " statement: " in line)]


def test_a_session_lock_taken_through_a_wait_is_a_session_lock(db, stranger):
    """The transaction that waited is over, and the lock is still there."""
    run(stranger, "select pg_advisory_lock(7)")
    with hf.Store(db.url()) as store:
        waiter = Background(store.acquire, 7, FOREVER)
        eventually(lambda: db.waiters(7))
        run(stranger, "select pg_advisory_unlock(7)")
        lock = waiter.result()
        holder, = db.holders(7)
        eventually(lambda: db.value(
            "select state = 'idle' and xact_start is null from pg_stat_activity where pid = %s", holder))
        assert db.holders(7) == [holder]
        lock.end()
        assert db.holders(7) == []


def test_waiting_for_a_stranger_names_its_application(db, stranger):
    run(stranger, "set application_name = 'nightly-batch'")
    run(stranger, "select pg_advisory_lock(7)")
    with hf.Store(db.url()) as store:
        error = store.refusal(7)
        assert "nightly-batch" in error.message
        assert str(stranger.info.backend_pid) in error.message


def test_refusal_does_not_break_without_rights_on_other_sessions(db):
    """pg_stat_activity hides what other roles run; the holder is still named by its pid."""
    with contextlib.closing(db.connect(user="postgres")) as stranger:
        run(stranger, "select pg_advisory_lock(7)")
        with hf.Store(db.url()) as store:
            error = store.refusal(7)
            assert error.status is Status.NOT_ACQUIRED
            assert str(stranger.info.backend_pid) in error.message


@pytest.mark.parametrize("records", [False, True])
def test_deadlock_of_any_order_waits_is_found(db, records):
    """Two processes hold one each and want the other's: PostgreSQL cannot see it, one must be told."""
    if records:
        hf.install(db.url())
    with Peer(db.url()) as one, Peer(db.url()) as two:
        one.begin("acquire", 1, thread="a").result()
        two.begin("acquire", 2, thread="a").result()
        first = one.begin("acquire", 2, FOREVER, flags=hf.ANY_ORDER, thread="a")
        second = two.begin("acquire", 1, FOREVER, flags=hf.ANY_ORDER, thread="a")
        outcome = eventually(lambda: [p for p in (first, second) if not p.running], 20)[0]
        with pytest.raises(HfError) as raised:
            outcome.result()
        assert raised.value.status is Status.DEADLOCK
        assert raised.value.hint


def test_lock_table_that_is_full_breaks_only_the_one_who_filled_it(own_pg):
    """53200 is reported, and the failed batch gives back what it took."""
    own_pg.extra_settings = "max_locks_per_transaction = 10\nmax_connections = 20\n"
    own_pg.restart()
    db = own_pg.create_database()
    with hf.Store(db.url(), max_keys=2**31 - 1) as store:
        error = store.refusal(list(range(100000)))
        assert error.status in (Status.DATABASE, Status.QUOTA)
        assert error.sqlstate == "53200"
        assert db.advisory_locks() == []
        store.acquire(1).end()


def test_default_quota_keeps_room_in_the_lock_table(db):
    with hf.Store(db.url()) as store:
        error = store.refusal(list(range(10000)))
        assert error.status is Status.QUOTA
        assert db.advisory_locks() == []


def test_null_key_is_never_locked(db):
    """The lock functions are STRICT; a pair or a key always reaches the server as a number."""
    with hf.Store(db.url()) as store:
        store.acquire([0, (0, 0)])
        assert sorted((row[2], row[3], row[4]) for row in db.advisory_locks()) == [(0, 0, 1), (0, 0, 2)]


def test_waiter_survives_the_end_of_its_waiting_session(db, stranger):
    """Whoever terminates a waiting backend may fail the wait, but never makes it hang or lie."""
    run(stranger, "select pg_advisory_lock(7)")
    with hf.Store(db.url()) as store:
        waiter = Background(store.acquire, 7, FOREVER)
        pid = eventually(lambda: db.waiters(7))[0]
        db.server.terminate(pid)
        eventually(lambda: not waiter.running or set(db.waiters(7)) - {pid}, what="it waits again, or has failed")
        run(stranger, "select pg_advisory_unlock(7)")
        try:
            lock = waiter.result()
        except HfError as error:
            assert error.status in (Status.UNREACHABLE, Status.DATABASE)
        else:
            assert lock.state is State.HELD
            assert db.holders(7)


def digit_key(label, slots):
    """The last of the keys that spell the number of slots: see slots.c."""
    text = b"holdfast semaphore d\0" + struct.pack("<qI", hf.derive(label), slots % 16)
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)


def test_a_digit_that_somebody_has_alone_is_waited_for_and_no_other_number_of_slots(db, stranger):
    run(stranger, f"select pg_advisory_lock({digit_key('job', 3)})")
    with hf.Store(db.url()) as store:
        error = store.refusal("job", slots=3)
        assert error.status is Status.NOT_ACQUIRED and "slots" not in error.message, error
        waiter = Background(store.acquire, "job", FOREVER, slots=3)
        stays(lambda: waiter.running, 1)
        run(stranger, f"select pg_advisory_unlock({digit_key('job', 3)})")
        waiter.result().end()


def test_interrupt_ends_the_wait_for_such_a_digit(db, stranger):
    run(stranger, f"select pg_advisory_lock({digit_key('job', 3)})")
    with hf.Store(db.url()) as store:
        waiter = Background(store.acquire, "job", FOREVER, slots=3)
        stays(lambda: waiter.running, 0.5)
        store.interrupt()
        with pytest.raises(HfError) as raised:
            waiter.result()
        assert raised.value.status is Status.INTERRUPTED

"""
A transaction that hf_transact reports as committed was applied once, one that it reports as failed
was not applied, however the line and the server fare. Only HF_IN_DOUBT may be either, and with the
schema's marker there is none.
"""

import contextlib
import itertools
import random
import threading

import pytest

import hf
import hf_tx
import servers
from awaiting import Background, eventually
from hf import Status
from hf_tx import Isolation
from wire import ABANDON, CUT, HOLD, MUTE, SILENCE, Message, WireProxy, once

LABEL = "Count:1"
KEY = hf.derive(LABEL)
DURABLE = "fsync = on\nfull_page_writes = on\n"


def create_tables(database):
    database.sql("create table counter (id int primary key, n int not null)", user="app")
    database.sql("insert into counter values (1, 0)", user="app")
    database.sql("create table applied (operation int not null)", user="app")


def install_schema(database):
    hf.install(database.url())


def increment(tx, operation=0):
    n = int(tx.value("select n from counter where id = 1"))
    tx.queue("insert into applied values ($1)", operation)
    tx.queue("update counter set n = $1 where id = 1", n + 1)


def state(database):
    """The counter, and how many increments there are rows of."""
    return database.sql("select n, (select count(*) from applied) from counter")[0]


# --- one cut at a chosen point ---------------------------------------------------------------------------

WAYS = ["pg15", "pg18", "pgbouncer"]


@pytest.fixture(scope="module", params=[f"{way}-{proof}" for way in WAYS for proof in ("marker", "xid")])
def place(request):
    """A database and the port to reach it."""
    way, _, proof = request.param.rpartition("-")
    server = request.getfixturevalue("pg18" if way == "pg18" else "pg15")
    database = server.create_database()
    create_tables(database)
    if proof == "marker":
        install_schema(database)
    yield database, request.getfixturevalue("transaction_pooler").port if way == "pgbouncer" else server.port
    database.drop()


@pytest.fixture
def cut_off(place):
    """A database, a store whose every word passes through a proxy, and that proxy."""
    database, port = place
    database.sql("truncate applied; update counter set n = 0")
    with WireProxy(port) as proxy:
        with hf.Store(database.url(host="127.0.0.1", port=proxy.port)) as store:
            hf_tx.transact(store, LABEL, lambda tx: tx.query("select 1"))  # connects
            yield database, store, proxy


def increment_with_rule(cut_off, rule, **options):
    database, store, proxy = cut_off
    proxy.rule = rule
    call = hf_tx.Call(store, LABEL, increment, **options)
    assert rule.hit.is_set(), "the point was not reached"
    assert call.raised is None
    return call


def test_cut_before_commit_is_forwarded_is_retried_and_applied_once(cut_off):
    call = increment_with_rule(cut_off, once(lambda message: message.is_commit, CUT))
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert state(cut_off[0]) == (1, 1)


def test_cut_after_commit_before_its_answer_is_reported_committed_without_a_retry(cut_off):
    call = increment_with_rule(cut_off, once(lambda message: message.is_commit, MUTE))
    assert (call.status, call.attempts) == (Status.OK, 1)
    assert state(cut_off[0]) == (1, 1)


CANCELLED = "do $$ begin raise sqlstate '57014'; end $$"


def test_a_question_about_a_commit_that_somebody_cancels_is_asked_again(cut_off):
    """Its commit was found, and what confirms it is cancelled: that is no doubt."""
    lost = once(lambda message: message.is_commit, MUTE)
    cancelled = once(lambda message: message.kind in "PQ" and "pg_logical_emit_message" in message.text,
                     Message.query(CANCELLED))

    def rule(line, message):
        return lost(line, message) or cancelled(line, message)

    rule.hit = cancelled.hit
    call = increment_with_rule(cut_off, rule)
    assert (call.status, call.attempts) == (Status.OK, 1)
    assert state(cut_off[0]) == (1, 1)


@pytest.mark.parametrize("point", ["lock", "keep", "hand over", "first statement", "sync"])
def test_cut_in_the_lock_message_is_retried_and_applied_once(cut_off, point):
    matches = {
        "lock": lambda message: message.is_lock,
        "keep": lambda message: message.kind in "PB" and
        ("keep" in message.text or "pg_advisory_lock(" in message.text),
        "hand over": lambda message: message.is_hand_over,
        "first statement": lambda message: message.kind == "P" and message.text.startswith("select n from"),
        "sync": lambda message: message.kind == "S",
    }
    call = increment_with_rule(cut_off, once(matches[point], CUT))
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert state(cut_off[0]) == (1, 1)
    eventually(lambda: not cut_off[0].advisory_locks(), what="the cut session's locks are gone")


def test_cut_after_the_lock_message_is_retried_and_applied_once(cut_off):
    """The labels are held and the first statement has run, but its answer is lost."""
    call = increment_with_rule(cut_off, once(lambda message: message.is_lock, MUTE))
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert state(cut_off[0]) == (1, 1)


def test_cut_before_commit_with_one_attempt_is_exhausted_and_not_applied(cut_off):
    call = increment_with_rule(cut_off, once(lambda message: message.is_commit, CUT), max_attempts=1)
    assert (call.status, call.attempts) == (Status.EXHAUSTED, 1)
    assert state(cut_off[0]) == (0, 0)


def test_a_session_that_is_given_up_at_the_deadline_keeps_no_label(cut_off):
    """Its answers do not come any more, and the server would keep it open."""
    database, store, proxy = cut_off
    proxy.rule = once(lambda message: "silent" in message.text, SILENCE)

    def body(tx):
        tx.query("insert into applied values (0)")
        tx.query("select 'silent'")

    call = hf_tx.Call(store, LABEL, body, deadline_ms=1500)
    assert call.status in (Status.EXHAUSTED, Status.NOT_ACQUIRED) and proxy.rule.hit.is_set()
    eventually(lambda: not database.advisory_locks(), what="the session that was given up is gone")
    assert state(database) == (0, 0)


def test_cut_after_the_commit_of_a_read_is_retried(cut_off):
    database, store, proxy = cut_off
    proxy.rule = once(lambda message: message.is_commit, MUTE)
    call = hf_tx.Call(store, LABEL, lambda tx: tx.value("select n from counter"), read_only=True)
    assert (call.status, call.attempts, call.value) == (Status.OK, 2, "0")


def test_conflict_found_by_a_commit_whose_answer_is_lost_is_retried(cut_off):
    """COMMIT was sent and answered, with a refusal that never arrives."""
    database, store, proxy = cut_off
    database.sql("create table once (n int unique deferrable initially deferred); insert into once values (0)")
    database.sql("grant all on once to app")

    def body(tx):
        increment(tx)
        tx.queue("insert into once values ($1)", tx.attempt - 1)

    proxy.rule = once(lambda message: message.is_commit, MUTE)
    call = hf_tx.Call(store, LABEL, body)
    database.sql("drop table once")
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert state(database) == (1, 1)


def test_backend_that_lives_on_is_ended_before_the_retry(cut_off):
    """The line is dead on the client's side only: the backend would hold the label for ever."""
    database, store, proxy = cut_off
    proxy.rule = once(lambda message: message.kind == "P" and message.text == "select 2", ABANDON)

    def body(tx):
        tx.query("select 1")
        tx.query("select 2")
        increment(tx)

    call = hf_tx.Call(store, LABEL, body, deadline_ms=20_000)
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert state(database) == (1, 1)


def test_backend_that_commit_never_reaches_is_ended_before_the_retry(cut_off):
    call = increment_with_rule(cut_off, once(lambda message: message.is_commit, ABANDON))
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert state(cut_off[0]) == (1, 1)


def test_commit_that_is_still_under_way_is_awaited(cut_off):
    """
    A deferred trigger makes COMMIT last; the line is cut as soon as it has been sent. The server shall not
    look for its client meanwhile, which it does after a second: it would end the commit.
    """
    database, store, proxy = cut_off
    database.sql("""
        create or replace function linger() returns trigger language plpgsql
            as $$ begin
                perform pg_catalog.set_config('client_connection_check_interval', '0', true);
                perform pg_catalog.pg_sleep(0.6);
                return null;
            end $$;
        create constraint trigger linger after insert on applied deferrable initially deferred
            for each row execute function linger()""")
    try:
        call = increment_with_rule(cut_off, cut_after_the_message_with_commit())
    finally:
        database.sql("drop trigger linger on applied")
    assert (call.status, call.attempts) == (Status.OK, 1)
    assert state(database) == (1, 1)


def cut_after_the_message_with_commit():
    def rule(line, message):
        if message.is_commit and not rule.hit.is_set():
            rule.hit.set()
            line.notes["doomed"] = True
        if line.notes.get("doomed") and message.kind == "S":
            line.server.sendall(message.raw)
            return CUT
        return None

    rule.hit = threading.Event()
    return rule


def test_failure_of_any_step_of_the_lock_message_leaves_no_lock(cut_off):
    """
    As a cancel does that hits just this step: the session lives on, with PgBouncer in the hands of
    strangers, and must not keep what it took.
    """
    database, store, proxy = cut_off
    pooled = store_is_pooled(store)
    for step in range(8 if pooled else 7):
        call = increment_with_rule(cut_off, spoil_step(step))
        assert (call.status, call.error.sqlstate) == (Status.DATABASE, b"42601"), step
        assert database.advisory_locks() == [], step
    proxy.rule = None
    assert hf_tx.Call(store, LABEL, increment, deadline_ms=20_000).status == Status.OK
    assert state(database) == (1, 1)


def store_is_pooled(store):
    return store.examine()["pooler"][0] != hf.Level.OK


def spoil_step(step):
    """The statement with this number, from BEGIN on, is replaced by one that fails."""
    def rule(line, message):
        if rule.hit.is_set():
            return None
        if message.kind == "P" and message.text.startswith("BEGIN"):
            line.notes["step"] = 0
        if line.notes.get("step") == step and message.kind in "PB":
            rule.hit.set()
            return Message.parse("spoilt by the test")
        if message.kind == "E" and "step" in line.notes:
            line.notes["step"] += 1
        return None

    rule.hit = threading.Event()
    return rule


# --- in doubt ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["marker", "xid"])
def mortal(request, template15):
    """A server that may die, its database, and whether it has the schema."""
    with servers.Postgres.copy_of(template15, f"mortal-{request.param}", DURABLE) as server:
        server.start()
        database = server.create_database()
        create_tables(database)
        if request.param == "marker":
            install_schema(database)
        yield server, database, request.param == "marker"


def test_commit_before_a_crash_is_known_by_its_marker_and_in_doubt_without(mortal):
    """
    The commit is done and durable, its answer is lost, and the server crashes before anybody asks:
    the status of a transaction id proves nothing any more.
    """
    server, database, marked = mortal
    with WireProxy(server.port) as proxy:
        with hf.Store(database.url(host="127.0.0.1", port=proxy.port)) as store:
            hf_tx.transact(store, LABEL, lambda tx: tx.query("select 1"))
            proxy.rule = crash_after_commit(server, database)
            call = Background(hf_tx.Call, store, LABEL, increment)
            assert proxy.rule.crashed.wait(30)
            server.start()
            done = call.result(60)
    assert done.raised is None
    assert done.attempts == 1
    assert done.status == (Status.OK if marked else Status.IN_DOUBT)
    if not marked:
        message = done.error.message.decode()
        assert database.value("select pg_xact_status(%s::text::xid8)", message.split()[1]) == "committed"
        assert "holdfast init" in done.error.hint.decode()
    assert state(database) == (1, 1)


def crash_after_commit(server, database):
    """Forwards COMMIT, waits until it is seen to be done, and kills the server."""
    def rule(line, message):
        if line.muted and message.kind == "S":
            line.server.sendall(message.raw)
            eventually(lambda: state(database) == (1, 1))
            server.kill9()
            rule.crashed.set()
            return CUT
        return HOLD if message.is_commit else None

    rule.crashed = threading.Event()
    return rule


def test_crash_before_commit_arrives_is_retried(mortal):
    server, database, _ = mortal
    with WireProxy(server.port) as proxy:
        with hf.Store(database.url(host="127.0.0.1", port=proxy.port)) as store:
            hf_tx.transact(store, LABEL, lambda tx: tx.query("select 1"))

            def rule(_line, message):
                if message.is_commit and not crashed.is_set():
                    server.kill9()
                    crashed.set()
                    return CUT
                return None

            crashed = threading.Event()
            proxy.rule = rule
            call = Background(hf_tx.Call, store, LABEL, increment)
            assert crashed.wait(30)
            server.start()
            done = call.result(60)
    assert done.raised is None
    assert (done.status, done.attempts) == (Status.OK, 2)
    assert state(database) == (1, 1)


# --- storms ------------------------------------------------------------------------------------------------

INCREMENTS = 2000
WORKERS = 6


class Storm:
    """
    Increments by several threads while all sorts of things happen to their connections, until
    enough are done. Each has a number of its own; one that failed is not done again.
    """

    def __init__(self, url):
        self.url = url
        self.numbers = itertools.count()
        self.guard = threading.Lock()
        self.outcomes = {}
        self.done = 0
        self.calm = threading.Event()

    def _work(self, store):
        while self.done < INCREMENTS:
            with self.guard:
                number = next(self.numbers)
            call = hf_tx.Call(store, LABEL, lambda tx: increment(tx, number), backoff_max_ms=100,
                              isolation=Isolation.READ_COMMITTED, max_attempts=50)
            assert call.raised is None or isinstance(call.raised, hf.HfError), call.raised
            with self.guard:
                self.outcomes[number] = call
                self.done += call.status in (Status.OK, Status.IN_DOUBT)

    def run(self, *troubles, disaster=lambda: None, timeout=150):
        """
        troubles are called again and again in threads of their own until all is done, disaster in
        this one: a server dies with the thread that started it.
        """
        def trouble(make):
            while not self.calm.is_set():
                make()

        def all_done():
            disaster()
            return not any(worker.running for worker in workers)

        with hf.Store(self.url, ping_interval_ms=1000, ping_deadline_ms=5000) as store:
            makers = [Background(trouble, make) for make in troubles]
            workers = [Background(self._work, store) for _ in range(WORKERS)]
            try:
                eventually(all_done, timeout)
            finally:
                self.calm.set()
            for one in [*workers, *makers]:
                one.result(60)

    def with_status(self, *statuses):
        return {number for number, call in self.outcomes.items() if call.status in statuses}

    def check(self, database, exact):
        """The heart of it: what was reported against what is there."""
        applied = [row[0] for row in database.sql("select operation from applied")]
        succeeded, doubtful = self.with_status(Status.OK), self.with_status(Status.IN_DOUBT)
        assert len(applied) == len(set(applied)), "something was applied twice"
        assert succeeded - set(applied) == set(), "reported as committed, and not there"
        assert set(applied) - succeeded - doubtful == set(), "there, and not reported as committed"
        counter = database.value("select n from counter")
        assert counter == len(applied)
        assert len(succeeded) <= counter <= len(succeeded) + len(doubtful)
        if exact:
            assert not doubtful
            assert counter == len(succeeded)
        assert len(succeeded) > INCREMENTS * 0.9
        others = self.outcomes.keys() - succeeded - doubtful
        for number in others:
            call = self.outcomes[number]
            away = call.status in (Status.UNREACHABLE, Status.CONFIG, Status.EXHAUSTED)
            assert away or call.error.sqlstate == b"57014", call.error.message
        assert any(call.attempts > 1 for call in self.outcomes.values()), "no storm at all"
        return doubtful


def random_cuts(seed, odds=0.04):
    """Cuts before COMMIT, after it is answered, right after it was sent, or inside the lock message."""
    dice, guard = random.Random(seed), threading.Lock()

    def rule(line, message):
        with guard:
            roll, other = dice.random(), dice.random()
        if line.notes.pop("cut after sync", False) and message.kind == "S":
            line.server.sendall(message.raw)
            return CUT
        if line.notes.get("countdown") is not None:
            line.notes["countdown"] -= 1
            if line.notes["countdown"] == 0:
                return CUT
        if message.is_commit and roll < odds:
            if other < 0.34:
                return CUT
            if other < 0.67:
                return MUTE
            line.notes["cut after sync"] = True
        if message.is_lock and "countdown" not in line.notes and roll < odds / 2:
            line.notes["countdown"] = 1 + int(other * 25)
        return None

    return rule


def signals(server, database, function, calm):
    """Cancels or terminates a random session of the store now and then."""
    def make():
        with contextlib.suppress(Exception):  # the server may be down
            server.sql(f"select {function}(pid) from pg_stat_activity where datname = %s and"
                       " backend_type = 'client backend' and application_name like 'holdfast%%'"
                       " and pid <> pg_backend_pid() order by random() limit 1", database.name)
        calm.wait(random.random() / 8)

    return make


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_storm_of_cuts_cancels_and_crashes(mortal):
    """2 000 increments; the server is killed four times on the way."""
    server, database, marked = mortal
    with WireProxy(server.port) as proxy:
        proxy.rule = random_cuts(seed=4711)
        storm = Storm(database.url(host="127.0.0.1", port=proxy.port))
        crashes = []

        def crash():
            due = INCREMENTS * (len(crashes) + 1) // 5
            if len(crashes) < 4 and storm.done >= due:
                server.kill9() if len(crashes) % 2 else server.kill9_postmaster()
                crashes.append(storm.done)
                server.start()

        storm.run(signals(server, database, "pg_cancel_backend", storm.calm),
                  signals(server, database, "pg_terminate_backend", storm.calm), disaster=crash)
        assert len(crashes) == 4
        storm.check(database, exact=marked)
        eventually(lambda: not database.advisory_locks())


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("marked", [True, False], ids=["marker", "xid"])
def test_storm_of_cuts_through_pgbouncer(pg15, transaction_pooler, marked):
    database = pg15.create_database()
    create_tables(database)
    if marked:
        install_schema(database)
    with WireProxy(transaction_pooler.port) as proxy:
        proxy.rule = random_cuts(seed=42)
        storm = Storm(database.url(host="127.0.0.1", port=proxy.port))

        def signal_servers(function):
            def make():
                pg15.sql(f"select {function}(pid) from pg_stat_activity where datname = %s and"
                         " backend_type = 'client backend' and pid <> pg_backend_pid()"
                         " order by random() limit 1", database.name)
                storm.calm.wait(random.random() / 8)

            return make

        storm.run(signal_servers("pg_cancel_backend"), signal_servers("pg_terminate_backend"))
        doubtful = storm.check(database, exact=True)
        assert not doubtful, "nothing crashed, so the transaction id is as good as the marker"
    database.drop()


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_storm_across_the_promotion_of_a_synchronous_standby(mortal):
    """
    Cuts only: whoever cancels or ends a backend that waits for the standby makes PostgreSQL report
    a commit that the standby may not have.
    """
    server, database, marked = mortal
    with server.make_standby(settings=DURABLE) as standby:
        server.sql("alter system set synchronous_standby_names = '*'")
        server.sql("select pg_reload_conf()")
        eventually(lambda: server.value("select count(*) from pg_stat_replication where sync_state = 'sync'"))
        with WireProxy(server.port) as old, WireProxy(standby.port) as new:
            old.rule, new.rule = random_cuts(seed=1), random_cuts(seed=2)
            storm = Storm(f"postgresql://app@127.0.0.1:{old.port},127.0.0.1:{new.port}/{database.name}")
            promoted = []

            def fail_over():
                if not promoted and storm.done >= INCREMENTS // 2:
                    server.kill9()
                    old.close()  # libpq goes on to the next host only if the first refuses
                    standby.promote()
                    promoted.append(True)

            storm.run(disaster=fail_over)
            assert promoted
            storm.check(servers.Database(standby, database.name), exact=marked)

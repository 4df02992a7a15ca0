"""holdfast ingest after it lost its session: the store alone says where it goes on."""

import contextlib
import json
import os
import signal

import pytest

from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_DATA
from ingesting import LOCK_KEY, PARTITION, World, on_servers
from ledgers import chain, ledger
from stellar_rpc import Change, Error
from stores import StoreKind
from strangers import run

RESET = ("ingest", "reset", "--confirm", "testnet", "--to")


class Pipe:
    """A source that gives each ledger once."""

    def __init__(self, path):
        self.path = path
        self.file = None
        os.mkfifo(path)

    def open(self):
        """Returns when the ingester, which has looked at the store by then, reads."""
        self.file = open(self.path, "w")

    def write(self, *given):
        for one in given:
            self.file.write(json.dumps(one) + "\n")
        self.file.flush()


@pytest.fixture
def pipe(tmp_path):
    made = Pipe(tmp_path / "pipe")
    yield made
    if made.file:
        made.file.close()


def lose_the_lock(world):
    world.kind.lose(LOCK_KEY)
    if not world.local:
        eventually(lambda: not world.kind.database.holders(LOCK_KEY))


def lost_after(world, last):
    """A live ingester that has lost its lock, with this ledger committed."""
    live = world.follow(chain(1, last))
    eventually(lambda: world.network.latest == last)
    lose_the_lock(world)
    return live


def lost_behind(world, pipe):
    """Likewise, with ledgers 1 to 6 from a pipe."""
    live = world.start("ingest", "--source", pipe.path)
    pipe.open()
    pipe.write(*chain(1, 6))
    eventually(lambda: world.network.latest == 6)
    lose_the_lock(world)
    return live


def assert_goes_on(world, live, last, **how):
    """It has all ledgers up to the last one, of one chain and in one range."""
    eventually(lambda: world.network.latest == last or live.process.poll() is not None, 40, f"ledger {last}")
    assert live.process.poll() is None, live.describe()
    world.network.assert_holds(chain(1, last, **how))
    assert (world.network.coverage(), world.network.oldest) == ([(1, last)], 1)


# --- the store went back ----------------------------------------------------------------------------


def test_after_a_reset_behind_its_back_it_reads_again_from_there(world):
    live = lost_after(world, 60)
    done = world(*RESET, 50)
    assert done.code == 0, done
    world.add(ledger(61))
    assert_goes_on(world, live, 61)


def test_after_a_reset_to_nothing_it_begins_with_the_source(world):
    live = lost_after(world, 6)
    assert world(*RESET, 0).code == 0
    world.add(ledger(7))
    assert_goes_on(world, live, 7)


def test_what_came_through_a_pipe_cannot_come_again_and_is_not_skipped(world, pipe):
    live = lost_behind(world, pipe)
    assert world(*RESET, 4).code == 0
    pipe.write(ledger(7))
    assert live.wait() == EXIT_DATA, live.describe()
    assert any("ledger 4" in line and "read once" in line for line in live.err), live.err
    world.network.assert_holds(chain(1, 4))
    assert world.network.coverage() == [(1, 4)]


def test_what_came_through_a_pipe_is_kept_where_it_still_follows(world, pipe):
    live = lost_behind(world, pipe)
    world.ingest(1, 8)
    pipe.write(*chain(7, 9))
    assert_goes_on(world, live, 9)


@on_servers
@pytest.mark.parametrize("options", [[], ["--standby"]])
def test_a_session_that_ends_as_soon_as_it_has_the_lock_is_replaced(world, options):
    world.ingest(1, 6)
    with world.open_reader("lock table ingest_testnet.ingest_coverage in access exclusive mode"):
        live = world.start("ingest", "--source", world.source(chain(1, 8), "more.ndjson"), "--follow",
                           *options)
        eventually(lambda: world.kind.database.holders(LOCK_KEY), 20, "the lock")
        lose_the_lock(world)
    assert_goes_on(world, live, 8)


@contextlib.contextmanager
def stopped(world):
    (pid,) = world.kind.database.holders(LOCK_KEY)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def locked_out(world):
    return world.open_reader("lock table ingest_testnet.ledgers in access exclusive mode")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("world", ["pg15"], indirect=True)
@pytest.mark.parametrize("silent, more", [(stopped, 1), (locked_out, 30)])  # the second one in a COPY
def test_a_session_that_falls_silent_in_a_transaction_is_told_and_given_up(world, silent, more):
    live = world.follow(chain(1, 6))
    eventually(lambda: world.network.latest == 6)
    with silent(world):
        world.add(*chain(7, 6 + more))
        live.await_line("trying again", "err", timeout=60)
    assert_goes_on(world, live, 6 + more)


def promote_behind(primary, standby):
    """The standby takes over without what the primary committed last."""
    primary.kill9()
    standby.promote()


@pytest.mark.timeout(120)
def test_a_standby_that_lagged_is_gone_on_with_where_it_stands(own_pg, own_db, holdfast, tmp_path):
    ports = [own_pg.port]
    with own_pg.make_standby() as standby:
        ports.append(standby.port)
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        kind = StoreKind("own", f"postgresql://app@{hosts}/{own_db.name}", own_db)
        world = World(kind, holdfast, tmp_path)
        live = world.follow(chain(1, 20))
        eventually(lambda: world.network.latest == 20)
        standby.stop_following(own_pg)
        world.add(*chain(21, 40))
        eventually(lambda: world.network.latest == 40)
        promote_behind(own_pg, standby)
        own_db.server = standby
        assert world.network.latest < 40
        world.add(ledger(41))
        assert_goes_on(world, live, 41)
        live.signal(signal.SIGTERM)
        assert live.wait() == 0


@pytest.mark.timeout(120)
def test_a_crash_that_forgets_commits_is_gone_on_with_where_the_server_stands(own_pg, own_db, holdfast, tmp_path):
    """synchronous_commit is off, and the WAL writer sleeps."""
    own_pg.stop()
    own_pg.extra_settings += "\nwal_writer_delay = 10s\nwal_writer_flush_after = 0\n"
    own_pg.start()
    world = World(StoreKind("own", own_db.url(), own_db), holdfast, tmp_path)
    world.ingest(1, 20)
    own_pg.sql("checkpoint")
    own_pg.sql(f"alter role app in database {own_db.name} set synchronous_commit = off")
    live = world.follow(chain(1, 20))
    world.add(*chain(21, 40))
    eventually(lambda: world.network.latest == 40)
    own_pg.kill9()
    own_pg.start()
    world.add(ledger(41))
    assert_goes_on(world, live, 41)


# --- beside other writers ---------------------------------------------------------------------------


def test_what_another_ingester_did_meanwhile_is_kept_and_gone_on_from(world):
    live = lost_after(world, 10)
    world.ingest(1, 20)
    world.add(*chain(11, 21))
    assert_goes_on(world, live, 21)


def test_with_a_standby_beside_it_losses_cost_no_ledger_whoever_goes_on(world):
    live = world.follow(chain(1, 10))
    standby = world.start("ingest", "--source", world.folder / "more.ndjson", "--follow", "--standby",
                          "--partition-ledgers", PARTITION)
    standby.await_line("waiting", "err")
    for last in (20, 30, 40):
        world.kind.lose(LOCK_KEY)
        world.add(*chain(last - 9, last))
        eventually(lambda: world.network.latest == last, 40, f"ledger {last}")  # noqa: B023 (called at once)
        world.network.assert_holds(chain(1, last))
    assert world.network.coverage() == [(1, 40)]
    assert None in (live.process.poll(), standby.process.poll()), (live.describe(), standby.describe())


def test_another_chain_that_was_written_meanwhile_stops_it_with_both_hashes(world):
    live = lost_after(world, 10)
    other = chain(11, 12, chain="other")
    other[0]["previous_hash"] = ledger(10)["hash"]
    world.ingest_these(chain(1, 10) + other)
    world.add(*chain(11, 13))
    assert live.wait() == EXIT_DATA, live.describe()
    assert any(other[1]["hash"] in line and ledger(12)["hash"] in line for line in live.err), live.err
    world.network.assert_holds(chain(1, 10) + other)


def test_the_same_number_of_another_chain_is_not_gone_on_from(world):
    """The store stands at the ledger that the ingester remembers, but it is another ledger."""
    live = lost_after(world, 10)
    assert world(*RESET, 9).code == 0
    other = ledger(10, chain="other", previous=ledger(9)["hash"])
    world.ingest_these(chain(1, 9) + [other])
    world.add(ledger(11, previous_hash=None))
    assert live.wait() == EXIT_DATA, live.describe()
    world.network.assert_holds(chain(1, 9) + [other])


@pytest.mark.parametrize("meanwhile", [
    ["update @ingest_store set value = '7' where key = 'latestLedgerCursor'"],
    ["update @ingest_store set value = '12' where key = 'latestLedgerCursor'"],
    ["delete from @ingest_coverage", "insert into @ingest_coverage values (1, 7)"],
])
def test_a_writer_without_the_lock_stops_it_and_nothing_is_skipped(world, meanwhile):
    live = world.follow(chain(1, 10))
    eventually(lambda: world.network.latest == 10)
    for statement in meanwhile:
        world.network.sql(statement)
    before = world.state()
    world.add(ledger(11))
    assert live.wait() not in (0, None), live.describe()
    assert [row for row in world.state()[2]] == list(range(1, 11))
    assert world.state()[0] == before[0]


@pytest.mark.parametrize("lacking", [
    [],
    ["delete from @transactions where ledger_number = 11"],
    ["delete from @transactions where ledger_number = 11 and application_order = 1"],
    ["delete from @ledgers where sequence = 11"],
], ids=["whole", "without transactions", "in part", "without its ledger"])
def test_the_next_ledger_written_without_the_lock_stops_it_and_what_it_advises_leads_on(world, lacking):
    world.ingest(1, 11)
    for statement in ("update @ingest_coverage set hi = 10",
                      "update @ingest_store set value = '10' where key = 'latestLedgerCursor'", *lacking):
        world.network.sql(statement)
    refused = world.ingest(1, 12, code=EXIT_DATA)
    assert "gaps --network testnet --repair" in refused.err, refused
    assert "ingest reset --network testnet --to 10" in refused.err, refused
    assert world.network.coverage() == [(1, 10)] and world.network.latest == 10
    assert world("gaps", "--repair").code == 0
    if lacking:
        world.ingest(1, 12, code=EXIT_DATA)
        assert world(*RESET, 10).code == 0
    world.ingest(1, 12)
    world.network.assert_holds(chain(1, 12))
    assert world.network.coverage() == [(1, 12)]


def test_a_ledger_that_was_changed_before_the_loss_is_not_gone_on_from(world):
    live = world.follow(chain(1, 10))
    eventually(lambda: world.network.latest == 10)
    world.network.sql("update @ledgers set hash = 'another' where sequence = 10")
    lose_the_lock(world)
    world.add(ledger(11, previous_hash=None))
    assert live.wait() == EXIT_DATA, live.describe()
    assert world.network.sequences() == list(range(1, 11))


@pytest.mark.parametrize("meanwhile", [
    "update @ledgers set hash = 'another' where sequence = 10",
    "delete from @ledgers where sequence = 10",
])
def test_the_first_commit_of_a_session_looks_at_the_hash_again(world, pipe, meanwhile):
    """Somebody without the lock changes the latest ledger after the session has looked at it."""
    world.ingest(1, 10)
    live = world.start("ingest", "--source", pipe.path)
    pipe.open()
    world.network.sql(meanwhile)
    pipe.write(ledger(11, previous_hash=None))
    assert live.wait() == 1, live.describe()
    assert 11 not in world.network.sequences() and world.network.coverage() == [(1, 10)]


# --- two things fail at once --------------------------------------------------------------------------


def test_a_bad_ledger_is_quarantined_although_the_session_is_lost_just_then(world):
    live = world.follow(chain(1, 10), "--on-bad", "quarantine")
    eventually(lambda: world.network.latest == 10)
    lose_the_lock(world)
    world.add("{", ledger(12))
    eventually(lambda: world.network.latest == 12 or live.process.poll() is not None)
    assert live.process.poll() is None, live.describe()
    assert world.network.quarantined() == [11]
    assert world.network.coverage() == [(1, 10), (12, 12)]


GATE = 99


@on_servers
def test_a_source_that_fails_for_good_ends_it_although_the_session_is_lost_just_then(world, rpc):
    """Ledger 21 is held up until the source has failed; ledger 22 ends the session, once."""
    rpc.close_ledgers(20)
    live = world.start("ingest", "--source", rpc.url_with(poll="20ms"))
    eventually(lambda: world.network.latest == rpc.latest)
    held, last = rpc.latest + 1, rpc.latest + 2
    database = world.kind.database
    database.sql("create sequence ingest_testnet.tries")
    database.sql(f"""
        create function ingest_testnet.disturb() returns trigger language plpgsql security definer as $$
        begin
            if new.sequence = {held} then perform pg_advisory_xact_lock({GATE}); end if;
            if new.sequence = {last} and nextval('ingest_testnet.tries') = 1 then
                perform pg_terminate_backend(pg_backend_pid());
            end if;
            return new;
        end $$""")
    database.sql("create trigger disturb before insert on ingest_testnet.ledgers"
                 " for each row execute function ingest_testnet.disturb()")
    with contextlib.closing(database.connect()) as gate:
        run(gate, "select pg_advisory_lock(%s)", GATE)
        rpc.fault("getLedgers", *[Change(only_the_first)] * 2, Error(-32600, "no more of this"))
        rpc.close_ledgers(5)
        eventually(lambda: rpc.asked("getLedgers")[-1]["startLedger"] == last + 1)
    assert live.wait() == EXIT_CONFIG, live.describe()
    assert "no more of this" in live.err[-1] and world.network.latest == last


def only_the_first(result):
    result["ledgers"] = result["ledgers"][:1]

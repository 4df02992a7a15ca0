"""What ingesters write down of themselves: the source's tip, the last commit, and how much they did."""

import signal
import time

import pytest

from awaiting import eventually, stays
from cli import EXIT_DATA
from ingesting import on_servers
from ledgers import chain, ledger
from stellar_rpc import Http, StellarRpc


def activity(world):
    return world.json("ingest", "status")["networks"][0]


def numbers(world, *names):
    one = activity(world)
    return tuple(one[name] for name in names)


def test_a_run_tells_tip_lag_time_and_count(world):
    before = int(time.time() * 1000)
    world.ingest(11, 300)
    one = activity(world)
    assert (one["source_tip"], one["lag_ledgers"], one["live_ledgers"]) == (300, 0, 290)
    assert before <= one["last_success_ms"] <= int(time.time() * 1000)
    assert one["backfill_ledgers"] is None
    assert "at 300, caught up" in world("ingest", "status").out


def test_runs_add_up_and_repeats_do_not_count(world):
    world.ingest(1, 20)
    world.ingest(10, 50)
    world.ingest(40, 50)
    assert numbers(world, "live_ledgers", "source_tip") == (50, 50)


def test_where_it_stopped_the_lag_shows(world):
    made = chain(1, 30)
    made[19] = '{"sequence": 20, "hash": 5}'
    world.ingest_these(made, code=EXIT_DATA)
    assert numbers(world, "latest", "source_tip", "lag_ledgers", "live_ledgers") == (19, 30, 11, 19)
    assert "at 30, 11 ledgers ahead" in world("ingest", "status").out


def test_a_source_that_cannot_tell_leaves_the_lag_unknown(world):
    world.ingest(1, 20)
    lines = world.source(chain(21, 25)).read_bytes()
    assert world("ingest", "--source", "-", input=lines).code == 0
    assert numbers(world, "latest", "source_tip", "lag_ledgers", "live_ledgers") == (25, None, None, 25)
    assert "source" not in world("ingest", "status").out


def test_backfill_counts_for_itself(world):
    world.ingest(2000, 2010)
    path = world.source(chain(1, 2010), "all.ndjson")
    assert world("ingest", "--backfill", "1-1999", "--source", path, "--workers", "3").code == 0
    assert numbers(world, "live_ledgers", "backfill_ledgers", "gaps") == (11, 1999, 0)
    assert world("ingest", "--backfill", "1-1999", "--source", path).code == 0
    assert numbers(world, "live_ledgers", "backfill_ledgers") == (11, 1999)


def test_a_burst_is_told_though_nothing_follows_it(world):
    live = world.follow(chain(1, 3))
    eventually(lambda: numbers(world, "live_ledgers") == (3,))
    for sequence in range(4, 9):
        world.add(ledger(sequence))
        eventually(lambda: world.network.latest == sequence)
    eventually(lambda: numbers(world, "live_ledgers", "source_tip", "lag_ledgers") == (8, 8, 0))
    live.signal(signal.SIGTERM)
    assert live.wait() == 0


def test_the_end_tells_what_was_left(world):
    """Also where it comes by a signal, right behind a commit that was not told."""
    live = world.follow(chain(1, 3))
    for sequence in range(4, 9):
        world.add(ledger(sequence))
    eventually(lambda: world.network.latest == 8)
    live.signal(signal.SIGTERM)
    assert live.wait() == 0
    assert numbers(world, "live_ledgers", "source_tip") == (8, 8)


def test_a_crash_loses_no_count(world):
    path = world.source(chain(1, 4000, transactions=1))
    for reached in (300, 1200, 2500):
        live = world.start("ingest", "--source", path, "--commit-every", "7", "--partition-ledgers", "1000")
        eventually(lambda: (world.network.latest or 0) > reached, 30)
        world.kind.kill9(live)
    assert world("ingest", "--source", path).code == 0
    assert numbers(world, "latest", "live_ledgers") == (4000, 4000)


def test_a_reset_forgets_and_a_step_back_goes_on_counting(world):
    world.ingest(1, 50)
    assert world("ingest", "reset", "--to", "30", "--confirm", "testnet").code == 0
    assert numbers(world, "latest", "live_ledgers", "lag_ledgers") == (30, 50, 20)
    world.ingest(30, 60)
    assert numbers(world, "latest", "live_ledgers") == (60, 80)
    assert world("ingest", "reset", "--to", "0", "--confirm", "testnet").code == 0
    assert numbers(world, "latest", "live_ledgers", "source_tip", "last_success_ms") == (None,) * 4


@pytest.mark.parametrize("garbage", ["x", "", "-5", "9" * 18, "9" * 30, "1e3"])
def test_garbage_in_the_rows_harms_nobody(world, garbage):
    world.ingest(50, 60)
    path = world.source(chain(1, 70), "all.ndjson")
    assert world("ingest", "--backfill", "40-49", "--source", path).code == 0
    world.network.sql("update @ingest_store set value = %s where key like 'holdfast.%%Ledgers'"
                      " or key in ('holdfast.sourceTip', 'holdfast.lastSuccess', 'holdfast.liveCountedTo')"
                      .replace("%%", "%" if world.local else "%%"), garbage)
    assert activity(world)["latest"] == 60
    assert world("ingest", "--backfill", "30-39", "--source", path).code == 0
    world.ingest(60, 65)
    one = activity(world)
    assert (one["latest"], one["source_tip"], one["lag_ledgers"]) == (65, 65, 0)
    assert one["live_ledgers"] >= 5 and one["last_success_ms"] > 0


def log_rows(world):
    """Each change of the rows, with its transaction and time."""
    world.kind.database.sql("""
        create table public.changes (key text, xact text, at float);
        grant insert on public.changes to public;
        create function public.note() returns trigger language plpgsql as $$ begin
            insert into public.changes values (new.key, pg_current_xact_id()::text,
                                               extract(epoch from clock_timestamp()));
            return new; end $$;
        create trigger note after insert or update on ingest_testnet.ingest_store
            for each row execute function public.note()""")


def changes(world, key):
    return world.kind.database.sql("select xact, at from public.changes where key = %s order by at", key)


@on_servers
@pytest.mark.alone  # it counts who writes the cursor
def test_it_rides_with_a_commit_and_at_most_once_a_second(world):
    world.ingest(1, 2)
    log_rows(world)
    path = world.source(chain(1, 2500, transactions=1))
    assert world("ingest", "--source", path, "--commit-every", "1", timeout=100).code == 0
    commits, told = changes(world, "latestLedgerCursor"), changes(world, "holdfast.sourceTip")
    assert len(commits) == 2498
    assert {xact for xact, _ in told} <= {xact for xact, _ in commits}
    times = [at for _, at in told]
    *spaced, _last = [later - earlier for earlier, later in zip(times, times[1:])]
    assert all(pause > 0.5 for pause in spaced), spaced  # the server may be late for one, not for all:
    assert sum(spaced) > 0.99 * len(spaced) - 0.5, spaced
    assert len(told) <= times[-1] - times[0] + 2
    assert told[-1][0] == commits[-1][0]


@on_servers
def test_live_and_backfill_write_rows_of_their_own(world):
    world.ingest(1000, 1010)
    log_rows(world)
    path = world.source(chain(1, 1020), "all.ndjson")
    assert world("ingest", "--backfill", "500-999", "--source", path, "--commit-every", "50").code == 0
    assert len(changes(world, "holdfast.backfillLedgers")) >= 10
    assert not changes(world, "holdfast.sourceTip") and not changes(world, "holdfast.liveLedgers")
    world.ingest(1010, 1015)
    before = len(changes(world, "holdfast.backfillLedgers"))
    assert changes(world, "holdfast.liveLedgers") and len(changes(world, "holdfast.backfillLedgers")) == before


@on_servers
def test_silence_writes_nothing(world):
    live = world.follow(chain(1, 3))
    eventually(lambda: numbers(world, "live_ledgers") == (3,))
    log_rows(world)
    stays(lambda: not changes(world, "holdfast.sourceTip"), 6, "no row is touched")
    live.signal(signal.SIGTERM)
    assert live.wait() == 0


def test_the_tip_is_what_the_source_last_said_though_nothing_comes(world):
    with StellarRpc() as rpc:
        rpc.close_ledgers(20, transactions=3)
        tip = rpc.latest
        live = world.start("ingest", "--source", rpc.url_with(poll="20ms"))
        eventually(lambda: world.network.latest == tip, 20)
        rpc.fault("getTransactions", Http(503), count=1000)
        rpc.close_ledgers(9, transactions=3)
        eventually(lambda: numbers(world, "source_tip") == (tip + 9,), 20)
        assert numbers(world, "latest", "lag_ledgers", "live_ledgers") == (tip, 9, 1)
        live.signal(signal.SIGTERM)
        assert live.wait() == 0

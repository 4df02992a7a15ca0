"""holdfast ingest --backfill: fills exactly what lacks, shared by workers and processes, whatever dies."""

import contextlib
import gzip
import pathlib
import re
import shutil
import signal
import sqlite3

import pytest

from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_DATA, EXIT_UNREACHABLE
from ingesting import on_servers
from ledgers import chain, digest, ledger

FAILED = 1  # some ranges could not be filled
CELL = 256


@pytest.fixture
def fill(world):
    """fill("1-100", ledgers, …) runs to the end; fill.start(…) goes on. All ledgers may stand in a path."""

    def words(window, source, options):
        path = world.source(source, "all.ndjson") if isinstance(source, list) else source
        what = ["--gaps"] if window is None else ["--backfill", window]
        return ["ingest", "--source", path, "--partition-ledgers", "1000", *what, *options]

    def run(window, source, *options, **how):
        return world(*words(window, source, options), **how)

    run.start = lambda window, source, *options, **how: world.start(*words(window, source, options), **how)
    return run


def filled(result):
    return int(re.search(r"filled (\d+) of", result.err).group(1))


def covered(world):
    return sum(hi - lo + 1 for lo, hi in world.network.coverage())


def joined(world):
    """Coverage as people see it: neighbours are one."""
    ranges = []
    for lo, hi in world.network.coverage():
        if ranges and ranges[-1][1] + 1 == lo:
            ranges[-1] = (ranges[-1][0], hi)
        else:
            ranges.append((lo, hi))
    return ranges


# --- the way it should go -----------------------------------------------------------------------------


def test_a_window_is_filled_exactly_and_oldest_follows_only_what_is_whole(world, fill):
    world.ingest(2001, 2100)
    done = fill("500-1999", chain(1, 2100))
    assert done.code == 0, done
    world.network.assert_holds(chain(500, 1999) + chain(2001, 2100))
    assert joined(world) == [(500, 1999), (2001, 2100)]
    assert (world.network.latest, world.network.oldest, world.own_row("wantedFrom")) == (2100, 2001, 500)
    assert fill("2000-2000", chain(1, 2100)).code == 0
    assert world.network.oldest == 500
    assert joined(world) == [(500, 2100)]


def test_nothing_is_filled_beyond_the_latest(world, fill):
    world.ingest(601, 700)
    done = fill("590-5000", chain(1, 900))
    assert done.code == 0, done
    world.network.assert_holds(chain(590, 700))
    assert world.network.latest == 700


def test_wanted_from_is_widened_and_never_narrowed(world, fill):
    world.ingest(51, 60)
    assert fill("20-30", chain(1, 60)).code == 0
    assert fill("40-45", chain(1, 60)).code == 0
    assert world.own_row("wantedFrom") == 20
    assert world.json("gaps")["gaps"] == [{"from": 31, "to": 39}, {"from": 46, "to": 50}]


def test_all_gaps_are_filled_and_nothing_besides(world, fill):
    world.ingest(901, 1000)
    for window in ("100-199", "400-449", "600-899"):
        assert fill(window, chain(1, 1000)).code == 0
    done = fill(None, chain(1, 1000))
    assert done.code == 0 and filled(done) == 351, done
    world.network.assert_holds(chain(100, 1000))
    assert world.json("gaps")["gaps"] == []


def test_what_is_there_is_not_fetched_again(world, fill, tmp_path):
    world.ingest(301, 400)
    assert fill("1-300", chain(1, 400)).code == 0
    before = world.state()
    done = fill("1-400", tmp_path / "no-such-source.ndjson")
    assert done.code == 0 and "nothing is missing" in done.err, done
    assert world.state() == before


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_any_number_of_workers_gives_the_same(world, fill, workers):
    world.ingest(3001, 3010)
    done = fill("7-3000", chain(1, 3010, transactions=1), "--workers", workers)
    assert done.code == 0, done
    world.network.assert_holds(chain(7, 3000, transactions=1) + chain(3001, 3010))
    assert world.network.oldest == 7


def test_a_compressed_file_serves_all_workers(world, fill, tmp_path):
    world.ingest(2501, 2510)
    plain = world.source(chain(1, 2510, transactions=1), "plain.ndjson")
    with open(plain, "rb") as source, gzip.open(tmp_path / "all.ndjson.gz", "wb", 1) as packed:
        shutil.copyfileobj(source, packed)
    done = fill("1-2500", tmp_path / "all.ndjson.gz", "--workers", 3)
    assert done.code == 0, done
    world.network.assert_holds(chain(1, 2500, transactions=1) + chain(2501, 2510))


def test_small_transactions_and_little_memory_give_the_same(world, fill):
    world.ingest(601, 610)
    done = fill("1-600", chain(1, 610), "--commit-every", 7, "--memory", 4)
    assert done.code == 0, done
    world.network.assert_holds(chain(1, 610))


def test_retention_is_respected(world, fill):
    world.ingest(901, 1000)
    world.network.sql("insert into @ingest_store (key, value) values ('holdfast.retentionFloor', '450')")
    done = fill("1-900", chain(1, 1000))
    assert done.code == 0, done
    world.network.assert_holds(chain(450, 1000))
    assert world.network.oldest == 450


# --- beside others ------------------------------------------------------------------------------------


def test_it_works_beside_a_running_live_ingester(world, fill):
    followed = world.source(chain(2001, 2010), "live.ndjson")
    live = world.start("ingest", "--source", followed, "--follow", "--partition-ledgers", "1000")
    eventually(lambda: world.network.latest == 2010)
    beside = fill.start("1-2000", world.source(chain(1, 2300), "all.ndjson"), "--workers", 2, "--commit-every", 50)
    for first in range(2011, 2301, 10):
        world.source(chain(first, first + 9), "live.ndjson", "a")
        eventually(lambda: world.network.latest == first + 9)
    assert beside.wait(60) == 0, beside.describe()
    assert live.process.poll() is None, live.describe()
    world.network.assert_holds(chain(1, 2300))
    assert joined(world) == [(1, 2300)] and world.network.oldest == 1
    live.signal(signal.SIGTERM)
    assert live.wait() == 0


def test_two_processes_share_the_work_and_none_is_done_twice(world, fill):
    mark = 0 if world.local else world.kind.database.server.log_size()
    world.ingest(6001, 6002)
    source = world.source(chain(1, 6002, transactions=0), "all.ndjson")
    slow = fill.start("1-6000", source, "--workers", 2, "--rate", 300)
    eventually(lambda: covered(world) > 2, 30, "the slow one has begun")
    fast = fill("1-6000", source, "--workers", 2, timeout=120)
    assert fast.code == 0, fast
    ended = slow.wait_all(120)
    assert ended.code == 0, ended
    assert filled(fast) > 0 and filled(ended) > 0
    assert filled(fast) + filled(ended) == 6000
    assert world.network.sequences() == list(range(1, 6003))
    if not world.local:
        database = world.kind.database
        assert "duplicate key" not in database.server.log(mark)
        inserted = ("select coalesce(sum(n_tup_ins), 0) from pg_stat_all_tables"
                    " where schemaname = 'ingest_testnet' and relname like 'ledgers%'")
        eventually(lambda: database.value(inserted) >= 6002, 30)
        assert database.value(inserted) == 6002


def test_a_cell_that_another_holds_is_left_for_last_and_waited_for(world, fill, holdfast):
    world.ingest(769, 770)
    holder = holdfast.at(world.kind.url).hold(f"holdfast:backfill:ingest_testnet:{300 // CELL}")
    backfill = fill.start("1-768", chain(1, 770))
    eventually(lambda: joined(world) == [(1, 255), (512, 770)], 30, "all but the held cell is filled")
    assert backfill.process.poll() is None
    assert world.network.oldest == 512
    holder.end()
    assert backfill.wait(30) == 0, backfill.describe()
    world.network.assert_holds(chain(1, 770))
    assert world.network.oldest == 1


def test_a_wait_for_another_ends_with_sigterm(world, fill, holdfast):
    world.ingest(257, 260)
    holdfast.at(world.kind.url).hold("holdfast:backfill:ingest_testnet:0")
    backfill = fill.start("1-255", chain(1, 260))
    eventually(lambda: world.own_row("wantedFrom") == 1)
    backfill.signal(signal.SIGTERM)
    assert backfill.wait() == 0, backfill.describe()
    assert joined(world) == [(257, 260)]


# --- whatever dies ------------------------------------------------------------------------------------


def test_kill_9_at_any_moment_loses_nothing_and_repeats_nothing(world, fill):
    world.ingest(2001, 2002)
    source = world.source(chain(1, 2002), "all.ndjson")
    for least in (2, 150, 400, 900, 1500):
        backfill = fill.start("1-2000", source, "--workers", 3, "--rate", 3000, "--commit-every", 20)
        eventually(lambda: covered(world) > least or backfill.process.poll() is not None, 30)
        world.kind.kill9(backfill)
        world.assert_coverage_is_true()
        assert world.network.oldest == joined(world)[-1][0]
    done = fill("1-2000", source)
    assert done.code == 0, done
    world.network.assert_holds(chain(1, 2002))
    assert joined(world) == [(1, 2002)] and world.network.oldest == 1


def test_sigterm_ends_it_with_success_and_the_next_run_does_the_rest(world, fill):
    world.ingest(2001, 2002)
    source = world.source(chain(1, 2002), "all.ndjson")
    backfill = fill.start("1-2000", source, "--rate", 200)
    eventually(lambda: covered(world) > 2, 30)
    backfill.signal(signal.SIGTERM)
    assert backfill.wait() == 0, backfill.describe()
    there = covered(world)
    assert there < 2002
    world.assert_coverage_is_true()
    done = fill("1-2000", source)
    assert done.code == 0 and filled(done) == 2002 - there, done
    world.network.assert_holds(chain(1, 2002))


@on_servers
def test_a_lost_session_costs_a_try_and_nothing_else(world, fill):
    world.ingest(1001, 1002)
    source = world.source(chain(1, 1002), "all.ndjson")
    backfill = fill.start("1-1000", source, "--rate", 400, "--commit-every", 20)
    eventually(lambda: covered(world) > 2, 30)
    for pid in {row[0] for row in world.kind.database.advisory_locks()}:
        world.kind.database.server.terminate(pid)
    assert backfill.wait(60) == 0, backfill.describe()
    world.network.assert_holds(chain(1, 1002))
    world.assert_coverage_is_true()


# --- what cannot be filled ----------------------------------------------------------------------------


def test_what_the_source_lacks_is_listed_and_not_claimed(world, fill):
    world.ingest(1001, 1010)
    done = fill("1-1000", chain(1, 299) + chain(311, 1010))
    assert done.code == FAILED, done
    assert "300-310" in done.err
    assert joined(world) == [(1, 299), (311, 1010)]
    assert world.network.oldest == 311
    world.network.assert_holds(chain(1, 299) + chain(311, 1010))
    assert fill(None, chain(1, 1010)).code == 0
    world.network.assert_holds(chain(1, 1010))
    assert world.network.oldest == 1


def test_what_lies_beyond_the_source_is_listed_and_the_rest_is_filled(world, fill):
    world.ingest(901, 910)
    assert fill("500-500", chain(1, 910)).code == 0
    done = fill("1-900", chain(200, 600))
    assert done.code == FAILED, done
    assert "1-199" in done.err and "601-900" in done.err
    assert joined(world) == [(200, 600), (901, 910)]


def test_a_source_that_is_away_fails_without_a_change(world, fill):
    world.ingest(101, 110)
    coverage = world.network.coverage()
    done = fill("1-100", "rpc+http://127.0.0.1:1", timeout=60)
    assert done.code == EXIT_UNREACHABLE, done
    assert world.network.coverage() == coverage


def test_a_bad_ledger_stops_it_and_nothing_of_the_ledger_is_there(world, fill):
    world.ingest(301, 310)
    done = fill("1-300", chain(1, 99) + ['{"sequence":100,"hash":'] + chain(101, 310), "--workers", 1)
    assert done.code == EXIT_DATA, done
    assert joined(world) == [(1, 99), (301, 310)]
    world.assert_coverage_is_true()


def test_a_bad_ledger_is_quarantined_when_asked_and_stays_a_gap_until_it_comes(world, fill):
    world.ingest(301, 310)
    broken = chain(1, 99) + ['{"sequence":100,"hash":'] + chain(101, 310)
    done = fill("1-300", broken, "--on-bad", "quarantine")
    assert done.code == 0, done
    assert world.network.quarantined() == [100]
    assert joined(world) == [(1, 99), (101, 310)] and world.network.oldest == 101
    assert fill(None, chain(1, 310)).code == 0
    assert world.network.quarantined() == [] and world.network.oldest == 1
    world.network.assert_holds(chain(1, 310))


@pytest.mark.parametrize("window", ["1-100", "50-99"])
def test_a_source_of_another_chain_is_refused_with_both_hashes(world, fill, window):
    world.ingest(101, 110)
    if window == "50-99":
        assert fill("100-100", chain(1, 110)).code == 0
    coverage, wanted = world.network.coverage(), world.own_row("wantedFrom")
    done = fill(window, chain(1, 110, chain="other"))
    behind = int(window.split("-")[1]) + 1
    assert done.code == EXIT_DATA, done
    assert digest("main", behind) in done.err and digest("other", behind) in done.err
    assert (world.network.coverage(), world.own_row("wantedFrom")) == (coverage, wanted)


@pytest.mark.parametrize("window, behind, within", [("1-100", 500, (1, 120)), (None, 901, (650, 800))])
def test_a_reset_network_is_not_filled_in_below_the_old_one(world, fill, window, behind, within):
    world.ingest(901, 1000)
    assert fill("500-600", chain(1, 1000)).code == 0
    coverage = world.network.coverage()
    done = fill(window, chain(1, 1000, chain="anew"))
    assert done.code == EXIT_DATA and digest("main", behind) in done.err and digest("anew", behind) in done.err, done
    for name in ("anew", "main"):  # without a ledger that is stored, they cannot be told apart
        done = fill(window, chain(*within, chain=name))
        assert done.code == EXIT_CONFIG and "nothing proves" in done.err, done
    assert world.network.coverage() == coverage
    assert fill(window, chain(1, 950)).code == 0
    world.assert_coverage_is_true()


@pytest.mark.parametrize("given", ["50 60", "49-51", "60-60"])
def test_a_neighbour_of_a_stored_ledger_proves_the_chain(world, fill, given):
    world.ingest(1, 100)
    world.network.sql("update @ingest_coverage set hi = 49")
    world.network.sql("insert into @ingest_coverage values (51, 59), (61, 100)")
    for table, column in (("ledgers", "sequence"), ("transactions", "ledger_number")):
        world.network.sql(f"delete from @{table} where {column} in (50, 60)")
    few = {"50 60": [50, 60], "49-51": [49, 50, 51], "60-60": [60]}[given]
    done = fill("50-60", [ledger(n, chain="other") for n in few])
    assert done.code == EXIT_DATA and "another chain" in done.err, done
    done = fill("50-60", [ledger(n) for n in few])
    assert filled(done) == len({50, 60} & set(few)), done
    world.assert_coverage_is_true()


def test_what_a_backfill_has_read_before_a_reset_is_not_written_after_it(world, fill):
    world.ingest(2001, 2010)
    running = fill.start("1-2000", chain(1, 2010, transactions=1), "--rate", 100, "--workers", 1)
    eventually(lambda: len(world.network.coverage()) > 1, 20, "its first commit")
    running.signal(signal.SIGSTOP)  # the next commit is a second away, and it has ledgers in memory
    done = world("ingest", "reset", "--to", 0, "--confirm", "testnet")
    assert done.code == 0, done
    anew = chain(1901, 2010, chain="anew")
    world.ingest_these(anew)
    running.signal(signal.SIGCONT)
    assert running.wait(30) == EXIT_DATA, running.describe()
    world.network.assert_holds(anew)
    assert world.network.coverage() == [(1901, 2010)]


def test_the_ledger_before_the_window_must_fit_as_well(world, fill):
    world.ingest(201, 210)
    assert fill("1-50", chain(1, 210)).code == 0
    foreign = chain(1, 60, chain="other")
    done = fill("51-60", foreign + chain(61, 210))
    assert done.code == EXIT_DATA, done
    assert digest("main", 50) in done.err and digest("other", 50) in done.err
    assert joined(world) == [(1, 50), (201, 210)]


def test_a_source_that_contradicts_itself_is_refused(world, fill):
    world.ingest(101, 110)
    done = fill("1-100", chain(1, 39) + [ledger(40, chain="other")] + chain(41, 110))
    assert done.code == EXIT_DATA, done
    assert digest("main", 39) in done.err and digest("other", 39) in done.err
    world.assert_coverage_is_true()


# --- rows that something else has written ---------------------------------------------------------------


@pytest.fixture
def uncovered(world):
    """Rows of 1 to 60 are there, of which 1 to 50 are not covered."""
    world.ingest(1, 60)
    world.network.sql("update @ingest_coverage set lo = 51")
    world.network.sql("update @ingest_store set value = '51' where key = 'oldestLedgerCursor'")


def test_rows_that_are_there_and_the_same_are_only_covered(world, fill, uncovered):
    world.network.sql("delete from @transactions where ledger_number between 10 and 14")
    world.network.sql("delete from @ledgers where sequence between 10 and 14")
    done = fill("1-50", chain(1, 60))
    assert done.code == 0, done
    world.network.assert_holds(chain(1, 60))
    assert joined(world) == [(1, 60)] and world.network.oldest == 1


def test_rows_of_another_ledger_stop_it_with_both_hashes(world, fill, uncovered):
    world.network.sql("update @ledgers set hash = 'abc' where sequence = 20")
    done = fill("1-50", chain(1, 60))
    assert done.code == EXIT_DATA, done
    assert "abc" in done.err and digest("main", 20) in done.err
    assert joined(world) == [(51, 60)]


def test_ledgers_that_are_there_in_part_are_written_again(world, fill, uncovered):
    world.network.sql("delete from @transactions where ledger_number = 20 and application_order = 2")
    world.network.sql("delete from @transactions where ledger_number = 30")
    world.network.sql("delete from @ledgers where sequence between 35 and 40")
    done = fill("1-50", chain(1, 60))
    assert done.code == 0 and "ledger 20 is there in part" in done.err, done
    world.network.assert_holds(chain(1, 60))
    assert joined(world) == [(1, 60)]


def test_what_the_store_has_lost_again_is_not_told_as_filled(world):
    """As on a standby that lagged and was promoted: the first cells are gone when the last one is filled."""
    world.ingest(601, 610)
    filling = world.start("ingest", "--backfill", "1-600", "--source", world.source(chain(1, 610)), "--workers", 1,
                          "--rate", 200)
    eventually(lambda: joined(world)[0][0] < 601 and len(joined(world)) > 1, 20, "a part of it is filled")
    lo, hi = joined(world)[0]
    for statement in (f"delete from @ingest_coverage where lo = {lo}", f"delete from @ledgers where sequence < {hi}",
                      f"delete from @transactions where ledger_number < {hi}"):
        world.network.sql(statement)
    assert filling.wait(40) == 1, filling.describe()
    assert any("not filled" in line and "has lost them" in line for line in filling.err), filling.err
    again = world("ingest", "--gaps", "--source", world.source(chain(1, 610)))
    assert again.code == 0, again
    world.network.assert_holds(chain(1, 610))


def test_what_a_repair_leaves_out_is_filled_again(world, fill):
    world.ingest(1, 60)
    world.network.sql("delete from @transactions where ledger_number in (7, 8) and application_order = 1")
    world.network.sql("delete from @ledgers where sequence = 30")
    repaired = world("gaps", "--repair")
    assert repaired.code == 0 and repaired.out.split() == ["7-8", "30-30"], repaired
    done = world("ingest", "--gaps", "--source", world.source(chain(1, 60)))
    assert done.code == 0, done
    world.network.assert_holds(chain(1, 60))
    assert joined(world) == [(1, 60)]


# --- many small gaps ------------------------------------------------------------------------------------


def perforate(world, last):
    """Ledgers 1 to last, of which the even ones are gone."""
    world.ingest(1, last)
    world.network.sql("delete from @ledgers where sequence & 1 = 0")
    world.network.sql("delete from @transactions where ledger_number & 1 = 0")
    perforate_coverage(world, last)


def perforate_coverage(world, last):
    world.network.sql("delete from @ingest_coverage")
    world.network.sql("insert into @ingest_coverage (lo, hi) values " +
                      ", ".join(f"({n}, {n})" for n in range(1, last + 1, 2)))
    world.network.sql(f"update @ingest_store set value = '{last}' where key = 'oldestLedgerCursor'")


@contextlib.contextmanager
def commits(world):
    """How many transactions write ledgers meanwhile."""
    seen = []
    if not world.local:
        yield seen
        seen += world.network.sql("select distinct xmin::text from @ledgers where sequence & 1 = 0")
        return
    path = pathlib.Path(world.kind.url.removeprefix("local:")) / "ingest_testnet.db"
    with contextlib.closing(sqlite3.connect(path)) as reader:
        reader.execute("pragma wal_checkpoint(truncate)")
        reader.execute("begin")
        reader.execute("select count(*) from ledgers").fetchall()  # as long as it reads, the log is kept
        yield seen
        log = path.with_name(path.name + "-wal").read_bytes()
        frame = 24 + int.from_bytes(log[8:12], "big")
        seen += [at for at in range(32, len(log), frame) if log[at + 4:at + 8] != bytes(4)]  # ends a transaction


def test_many_small_gaps_cost_few_transactions(world, fill):
    perforate(world, 1201)
    with commits(world) as seen:
        done = fill(None, chain(1, 1201), "--workers", "1")
    assert done.code == 0 and filled(done) == 600, done
    assert len(seen) <= 150, "one for each was 600; a batch that is not full within a second is committed as it is"
    world.network.assert_holds(chain(1, 1201))
    assert joined(world) == [(1, 1201)] and world.network.oldest == 1
    assert world.own_row("backfillLedgers") == 600


def test_what_lies_between_small_gaps_is_left_alone(world, fill):
    """Of the gaps some are there, one in part, and of one the transactions alone."""
    world.ingest(1, 61)
    for statement in ("delete from @transactions where ledger_number = 20 and application_order = 2",
                      "delete from @ledgers where sequence in (30, 40)",
                      "delete from @transactions where ledger_number in (40, 50)"):
        world.network.sql(statement)
    perforate_coverage(world, 61)
    done = fill(None, chain(1, 61))
    assert done.code == 0, done
    world.network.assert_holds(chain(1, 61))
    assert joined(world) == [(1, 61)]


def test_transactions_without_their_ledger_make_room_in_small_gaps_only(world, fill):
    world.ingest(1, 61)
    world.network.sql("delete from @ledgers where sequence & 1 = 0")
    perforate_coverage(world, 61)
    assert fill(None, chain(1, 61)).code == 0
    world.network.assert_holds(chain(1, 61))


def test_a_small_gap_among_others_must_fit_its_neighbours(world, fill):
    perforate(world, 61)
    made = chain(1, 61)
    made[29] = ledger(30, chain="other")
    done = fill(None, made)
    assert done.code == EXIT_DATA and digest("main", 29) in done.err, done
    assert world.network.coverage() == [(n, n) for n in range(1, 62, 2)]


@on_servers
@pytest.mark.parametrize("honours", [True, False], ids=["under-the-lock", "without-it"])
def test_coverage_that_goes_between_small_gaps_is_not_claimed(world, fill, honours):
    """Somebody takes ledger 31 away, which lies between two ledgers of one transaction."""
    perforate(world, 61)
    with world.kind.database.connect("postgres", autocommit=False) as stranger, stranger.cursor() as cursor:
        if honours:
            cursor.execute("select pg_advisory_xact_lock(('x' || left(encode(sha256("
                           "'holdfast:coverage:ingest_testnet'), 'hex'), 16))::bit(64)::bigint)")
        else:
            cursor.execute("select from ingest_testnet.ingest_coverage where lo = 31 for update")
        filling = fill.start(None, chain(1, 61), "--workers", "1")
        eventually(lambda: world.kind.database.sql("select 1 from pg_locks where not granted"), 20, "it waits for us")
        cursor.execute("delete from ingest_testnet.ingest_coverage where lo = 31")
        cursor.execute("delete from ingest_testnet.transactions where ledger_number = 31")
        cursor.execute("delete from ingest_testnet.ledgers where sequence = 31")
        stranger.commit()
    stranger.close()
    assert filling.wait(40) == 0, filling.describe()
    world.assert_coverage_is_true()
    assert fill(None, chain(1, 61)).code == 0
    world.network.assert_holds(chain(1, 61))
    assert joined(world) == [(1, 61)]


# --- refusals -----------------------------------------------------------------------------------------


def test_a_network_without_a_latest_ledger_is_refused(world, fill):
    done = fill("1-100", chain(1, 100))
    assert done.code == EXIT_CONFIG and "start the live ingester first" in done.err, done


def test_standard_input_is_refused(world, fill):
    world.ingest(11, 20)
    done = fill("1-10", "-")
    assert done.code == EXIT_CONFIG and "standard input" in done.err, done


def test_a_cursor_that_claims_more_than_coverage_is_refused(world, fill):
    world.ingest(11, 20)
    world.network.sql("update @ingest_store set value = '30' where key = 'latestLedgerCursor'")
    done = fill("1-10", chain(1, 40))
    assert done.code == EXIT_CONFIG and "adopt" in done.err, done
    assert joined(world) == [(11, 20)]

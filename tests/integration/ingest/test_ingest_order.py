"""What the operator wanted and the store lacks is a gap or an error, never "nothing new"."""

import gzip
import json

import pytest

from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_DATA
from ledgers import chain, ledger


def gaps(world):
    return [(gap["from"], gap["to"]) for gap in world.json("gaps")["gaps"]]


def folder_of(world, **files):
    path = world.folder / "folder"
    path.mkdir()
    for name, ledgers in files.items():
        world.source(ledgers, f"folder/{name}.ndjson")
    return path


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start, first", [(None, 1), (1, 1), (5, 5), (21, 21)])
def test_a_folder_is_read_in_the_order_of_its_ledgers(world, start, first):
    source = folder_of(world, a=chain(21, 30), b=chain(1, 20), c=[], d=chain(31, 40))
    done = world("ingest", "--source", source, *(["--start-ledger", start] if start else []))
    assert done.code == 0, done
    assert (world.network.coverage(), gaps(world)) == ([(first, 40)], [])


def test_a_gap_is_filled_from_a_folder_in_any_order(world):
    world.ingest(25, 30)
    source = folder_of(world, a=chain(21, 30), b=chain(1, 20))
    done = world("ingest", "--source", source, "--backfill", "1-30")
    assert done.code == 0, done
    assert (world.network.sequences(), gaps(world)) == (list(range(1, 31)), [])


@pytest.mark.parametrize("options", [(), ("--start-ledger", 5)])
def test_a_file_in_descending_order_is_refused(world, options):
    for _ in range(2):
        world.ingest_these(chain(1, 30)[::-1], *options, code=EXIT_CONFIG)
        assert not world.network.coverage()


def test_what_comes_too_late_is_told_and_becomes_a_gap(world):
    source = world.folder / "late.ndjson.gz"
    source.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in
                                             [*chain(21, 30), *chain(1, 20), *chain(31, 32)]).encode()))
    for _ in range(2):
        done = world("ingest", "--source", source)
        assert done.code == EXIT_DATA and "ledger 1 came after ledger 30" in done.err, done.err
        assert (world.network.coverage(), gaps(world)) == ([(21, 30)], [(1, 20)])


def put(world, ledgers, name):
    """Whole at once: one that is seen empty is read as it grows."""
    world.source(ledgers, name).rename(world.folder / "folder" / name)


def test_a_file_that_comes_late_is_named_and_what_it_has_is_a_gap(world):
    source = folder_of(world, m=chain(21, 30))
    with world.start("ingest", "--source", source, "--follow", "--start-ledger", 1) as live:
        live.await_line("ledgers 1-20 are missing", "err")
        put(world, chain(1, 20), "z.ndjson")
        live.await_line("z.ndjson comes late and is passed over", "err")
        put(world, chain(31, 40), "a.ndjson")
        eventually(lambda: world.network.coverage() == [(21, 40)])
        assert gaps(world) == [(1, 20)]
    done = world("ingest", "--source", source, "--gaps")
    assert (done.code, gaps(world)) == (0, []), done


def test_a_file_that_comes_before_the_one_that_is_next_ends_the_run(world):
    source = folder_of(world, a=chain(1, 10))
    with world.start("ingest", "--source", source, "--follow") as live:
        eventually(lambda: world.json("ingest", "status")["networks"])
        put(world, chain(21, 30), "c.ndjson")
        done = live.wait_all(30)
    assert done.code == EXIT_DATA and "jumps to ledger 21 where 11" in done.err, done
    world.source(chain(11, 20), "folder/z.ndjson")
    assert world("ingest", "--source", source).code == 0
    assert (world.network.coverage(), gaps(world)) == ([(1, 30)], [])


def test_ledgers_that_are_not_wanted_may_come_at_any_time(world):
    world.ingest(21, 30, "--start-ledger", 21)
    source = folder_of(world, a=chain(21, 30), b=chain(1, 20))
    assert "nothing new" in world("ingest", "--source", source).err
    assert gaps(world) == []


# --- what was wanted ------------------------------------------------------------------------------


def test_a_source_that_begins_after_the_start_leaves_a_gap(world):
    done = world.ingest(8, 30, "--start-ledger", 5)
    assert world.is_beside or "5-7" in done.err, done
    assert (world.own_row("wantedFrom"), gaps(world)) == (5, [(5, 7)])
    done = world("ingest", "--source", world.source(chain(1, 30)), "--gaps")
    assert (done.code, world.network.sequences(), gaps(world)) == (0, list(range(5, 31)), []), done


@pytest.mark.parametrize("start", [(), ("--start-ledger", 1)])
def test_the_first_and_the_last_ledger_in_quarantine_are_gaps(world, start):
    bad = [ledger(n, closed_at="yesterday") for n in (1, 2, 10)]
    world.ingest_these([*bad[:2], *chain(3, 9), bad[2]], "--on-bad", "quarantine", *start)
    assert (world.network.quarantined(), gaps(world)) == ([1, 2, 10], [(1, 2), (10, 10)])
    assert world.json("ingest", "status")["networks"][0]["missing"] == 3
    done = world("ingest", "--source", world.source(chain(1, 10)), "--gaps")
    assert (done.code, gaps(world)) == (0, [(10, 10)]), done
    world.ingest(1, 10)
    assert (world.network.sequences(), gaps(world), world.network.quarantined()) == (list(range(1, 11)), [], [])


def test_a_bad_line_is_charged_to_no_other_ledger(world):
    lines = [*chain(1, 3), "not json", *chain(5, 9)]
    world.ingest_these(lines, "--on-bad", "quarantine")
    for last in (9, 10):
        world.ingest_these([*lines, *chain(10, last)])
        assert (world.network.quarantined(), gaps(world)) == ([4], [(4, 4)])
    world.ingest_these([*lines, ledger(10), "garbage", *chain(11, 12)], "--on-bad", "quarantine")
    assert (world.network.quarantined(), world.network.latest) == ([4], 12)


def test_without_a_number_before_it_a_bad_line_stops_even_quarantine(world):
    done = world.ingest_these(["garbage", ledger(1)], "--on-bad", "quarantine", code=EXIT_DATA)
    assert "--on-bad" not in done.err, done

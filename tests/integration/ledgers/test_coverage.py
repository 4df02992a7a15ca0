"""Coverage: exact and disjoint, whoever adds at once; driven through network_driver."""

import contextlib
import random

import pytest

from awaiting import Background, eventually
from hf_network import Driver, Refused, joined

ADDERS, EACH = 8, 60


@pytest.fixture
def server(db):
    """PostgreSQL alone: where two transactions are open at once."""
    with Driver(db.url()) as driver:
        driver("install")
    return db


@pytest.fixture
def two(server):
    with Driver(server.url()) as one, Driver(server.url()) as other:
        yield one, other


def rows(network):
    return [(int(lo), int(hi)) for lo, hi in network.sql("select lo, hi from @ingest_coverage order by lo")]


def blocked(database):
    return database.value("select count(*) from pg_locks where not granted")


@pytest.mark.parametrize("added, stored", [
    ([(5, 9)], [(5, 9)]),
    ([(5, 9), (5, 9)], [(5, 9)]),
    ([(5, 9), (7, 8)], [(5, 9)]),
    ([(5, 9), (10, 12)], [(5, 12)]),
    ([(5, 9), (8, 12)], [(5, 12)]),
    ([(5, 9), (20, 30), (10, 19)], [(5, 19), (20, 30)]),  # the last row keeps its start
    ([(5, 9), (20, 30), (1, 40)], [(1, 19), (20, 40)]),
    ([(5, 9), (20, 30), (1, 25)], [(1, 19), (20, 30)]),
    ([(5, 9), (20, 30), (40, 50), (8, 22)], [(5, 30), (40, 50)]),
    ([(5, 9), (20, 30), (40, 50), (1, 19)], [(1, 30), (40, 50)]),
    ([(5, 9), (20, 30), (40, 50), (1, 4)], [(1, 9), (40, 50), (20, 30)]),
    ([(5, 9), (20, 30), (40, 50), (25, 60)], [(5, 9), (20, 39), (40, 60)]),
    ([(5, 9), (20, 30), (40, 50), (31, 39)], [(5, 9), (20, 39), (40, 50)]),
    ([(0, 0), (2, 2), (1, 1)], [(0, 1), (2, 2)]),
    ([(2**40, 2**40 + 5)], [(2**40, 2**40 + 5)]),
])
def test_what_is_added_is_there_as_few_rows(driver, network, added, stored):
    for first, last in added:
        driver("add", first, last)
    assert rows(network) == sorted(stored)
    assert driver.coverage() == joined(added)


@pytest.mark.usefixtures("strangers")
def test_any_series_of_ranges_gives_their_union(driver, network):
    draw, model = random.Random(11), []
    for _ in range(150):
        first = draw.randint(1, 400)
        model.append((first, first + draw.randint(0, 25)))
        driver("add", *model[-1])
    assert driver.coverage() == joined(model)
    stored = rows(network)
    assert joined(stored) == joined(model)
    assert len(stored) <= len(joined(model)) + 1


@pytest.mark.parametrize("first, last", [(5, 4), (-1, 5), (1, 2**63 - 1)])
def test_what_is_no_range_is_refused(driver, first, last):
    with pytest.raises(Refused, match="HF_INVALID.*is no range"):
        driver("add", first, last)


def test_reading_a_window_gives_the_part_in_it(driver):
    for first, last in [(5, 9), (20, 30), (40, 50)]:
        driver("add", first, last)
    assert driver.ranges("read", 7, 45) == [(7, 9), (20, 30), (40, 45)]
    assert driver.ranges("read", 10, 19) == []
    assert driver.ranges("read", 30, 30) == [(30, 30)]


def test_rows_that_overlap_are_reported_with_the_remedy(driver, network):
    driver("add", 5, 9)
    network.sql("insert into @ingest_coverage (lo, hi) values (8, 12)")
    for command in (("read", 1, 100), ("last",), ("add", 1, 20)):
        with pytest.raises(Refused, match="HF_BAD_DATA.*8-12 overlaps|HF_BAD_DATA.*5-9 overlaps"):
            driver(*command)


# --- the live ingester's step --------------------------------------------------------------------------


def test_the_last_range_grows(driver):
    driver("add", 5, 9)
    driver("extend", 5, 9, 12)
    driver("extend", 5, 12, 13)
    assert driver.coverage() == [(5, 13)]


@pytest.mark.parametrize("step", [(5, 8, 12), (5, 10, 12), (6, 8, 12), (1, 4, 12)])
def test_a_range_that_ends_elsewhere_does_not_grow(driver, step):
    driver("add", 5, 9)
    with pytest.raises(Refused, match="HF_CURSOR"):
        driver("extend", *step)
    assert driver.coverage() == [(5, 9)]


def test_a_range_grows_over_no_other(driver):
    driver("add", 5, 9)
    driver("add", 12, 15)
    with pytest.raises(Refused, match="HF_CURSOR"):
        driver("extend", 5, 9, 12)
    driver("extend", 5, 9, 11)
    assert driver.coverage() == [(5, 15)]


def test_a_range_whose_start_was_clipped_grows_nevertheless(driver, network):
    driver("add", 5, 20)
    driver("clip", 10, 0)
    driver("extend", 5, 20, 21)
    assert rows(network) == [(10, 21)]


def test_the_last_run_joins_neighbours(driver, network):
    assert driver("last") == []
    driver("add", 1, 3)
    driver("add", 200, 205)
    network.sql("delete from @ingest_coverage")
    for first in range(10, 200, 2):  # more than are read at once
        network.sql("insert into @ingest_coverage (lo, hi) values ($1, $2)", first, first + 1)
    assert driver("last") == ["10-199", "198"]
    network.sql("delete from @ingest_coverage where lo = 100")
    assert driver("last") == ["102-199", "198"]


@pytest.mark.parametrize("floor, ceiling, left", [
    (0, 0, [(5, 9), (20, 30), (40, 50)]), (5, 0, [(5, 9), (20, 30), (40, 50)]), (9, 0, [(9, 9), (20, 30), (40, 50)]),
    (10, 0, [(20, 30), (40, 50)]), (25, 0, [(25, 30), (40, 50)]), (51, 0, []), (0, 45, [(5, 9), (20, 30), (40, 45)]),
    (0, 40, [(5, 9), (20, 30), (40, 40)]), (0, 39, [(5, 9), (20, 30)]), (22, 25, [(22, 25)]), (0, 4, [])])
def test_clipping_leaves_what_is_between(driver, floor, ceiling, left):
    for first, last in [(5, 9), (20, 30), (40, 50)]:
        driver("add", first, last)
    driver("clip", floor, ceiling)
    assert driver.coverage() == left


# --- at once -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("strangers")
def test_many_who_add_overlapping_ranges_leave_their_union(recorded, driver, network):
    added = []
    with contextlib.ExitStack() as stack:
        drivers = [stack.enter_context(Driver(recorded.url)) for _ in range(ADDERS)]
        calls = [Background(one.ranges, "storm", seed, EACH, 300, 30) for seed, one in enumerate(drivers)]
        for call in calls:
            added += call.result(120)
    assert len(added) == ADDERS * EACH
    stored = rows(network)
    assert all(before[1] < after[0] for before, after in zip(stored, stored[1:])), stored
    assert joined(stored) == joined(added)


@pytest.mark.usefixtures("strangers")
def test_a_range_that_grows_among_many_who_add_overlaps_with_none(recorded, driver, network):
    """They add in its way, which no backfill does: it stops there, and nothing is claimed twice."""
    driver("add", 1, 1)
    added = [(1, 1)]
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(Driver(recorded.url))
        drivers = [stack.enter_context(Driver(recorded.url)) for _ in range(4)]
        calls = [Background(live.ranges, "live", 1, 400, 3)]
        calls += [Background(one.ranges, "storm", seed, 40, 2000, 4) for seed, one in enumerate(drivers)]
        for call in calls:
            added += call.result(120)
    stored = rows(network)
    assert all(before[1] < after[0] for before, after in zip(stored, stored[1:])), stored
    assert joined(stored) == joined(added)


def answer_after_commit(server, writer, waiter, *words):
    """The waiter asks while the writer's transaction is open: it waits, and is answered after the commit."""
    waiter.send(*words)
    eventually(lambda: blocked(server))
    writer("commit")
    return waiter.answer()


def test_the_second_who_adds_waits_and_merges_with_the_first(server, two):
    one, other = two
    one("begin")
    one("add", 10, 20)
    answer_after_commit(server, one, other, "add", 15, 30)
    assert other.coverage() == [(10, 30)]


def test_a_rollback_leaves_nothing_of_it(server, two):
    one, other = two
    one("begin")
    one("add", 10, 20)
    with pytest.raises(Refused, match="rolled back"):
        one("rollback")
    other("add", 15, 30)
    assert other.coverage() == [(15, 30)]


def test_a_backfill_next_to_the_live_range_does_not_wait_for_it(server, two):
    live, backfill = two
    live("add", 100, 200)
    live("begin")
    live("extend", 100, 200, 201)
    backfill("add", 50, 99)  # would not return
    live("commit")
    assert live.coverage() == [(50, 201)]
    assert live("last") == ["50-201", "100"]


def test_the_live_range_does_not_wait_for_a_backfill(server, two):
    live, backfill = two
    live("add", 100, 200)
    backfill("begin")
    backfill("add", 50, 99)
    live("extend", 100, 200, 201)
    backfill("commit")
    assert live.coverage() == [(50, 201)]


def test_a_range_begun_right_above_a_range_that_grows_is_met(server, two):
    """The hole that reading alone leaves: each looks before the other has committed."""
    live, other = two
    live("add", 100, 200)
    live("begin")
    live("extend", 100, 200, 210)
    answer_after_commit(server, live, other, "add", 205, 220)
    assert other.coverage() == [(100, 220)]


def test_a_range_does_not_grow_over_one_that_was_begun_meanwhile(server, two):
    live, other = two
    live("add", 100, 200)
    other("begin")
    other("add", 205, 220)
    with pytest.raises(Refused, match="HF_CURSOR"):
        answer_after_commit(server, other, live, "extend", 100, 200, 210)
    assert other.coverage() == [(100, 200), (205, 220)]


def test_clipping_waits_for_who_adds(server, two):
    one, other = two
    one("begin")
    one("add", 10, 20)
    answer_after_commit(server, one, other, "clip", 15, 0)
    assert other.coverage() == [(15, 20)]

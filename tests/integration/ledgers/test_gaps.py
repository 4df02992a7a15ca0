"""Gaps, and what coverage and data say of one another: the library and `holdfast gaps`."""

import csv
import json

import pytest

import cli
import hf
from awaiting import eventually
from hf import HfError, Status
from hf_network import LATEST, OLDEST, RETENTION_FLOOR, WANTED_FROM, Driver, Network, fill

LABEL = ("wallet-backend-ingest-testnet", hf.Derivation.FNV1A64)


def vectors():
    with open(hf.ROOT / "tests/vectors/gaps.tsv", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if row and not row[0].startswith("#")]
    assert len(rows) == 6
    return [[parse(present), parse(window)[0], parse(gaps)] for present, window, gaps in rows]


def parse(text):
    """"100-102,105" → [(100, 102), (105, 105)]"""
    parts = [part.split("-") for part in text.split(",") if part]
    return [(int(part[0]), int(part[-1])) for part in parts]


@pytest.fixture
def driver(driver):
    driver("ensure", 0, 9999, 1000)
    return driver


@pytest.fixture
def gaps(holdfast, recorded):
    return lambda *words: holdfast("gaps", "--network", "testnet", *words, "--url", recorded.url)


@pytest.mark.parametrize("present, window, expected", vectors())
def test_vectors_hold(driver, network, present, window, expected):
    for first, last in present:
        driver("add", first, last)
    assert network.gaps(*window) == expected


def test_without_a_wish_gaps_are_between_the_first_that_is_known_and_the_latest(driver, network):
    driver("add", 10, 19)
    driver("add", 30, 39)
    assert network.gaps() == [(20, 29)]
    network.set(LATEST, 45)
    network.set(OLDEST, 5)
    assert network.gaps() == [(5, 9), (20, 29), (40, 45)]


def test_gaps_begin_where_the_operator_wants_and_retention_keeps(driver, network):
    driver("add", 30, 39)
    network.set(LATEST, 39)
    network.set(OLDEST, 30)
    driver("put", WANTED_FROM, 10)
    assert network.gaps() == [(10, 29)]
    driver("put", RETENTION_FLOOR, 20)
    assert network.gaps() == [(20, 29)]
    driver("put", WANTED_FROM, 25)
    assert network.gaps() == [(25, 29)]


def test_a_window_is_taken_at_its_word(driver, network):
    driver("add", 30, 39)
    network.set(LATEST, 39)
    driver("put", RETENTION_FLOOR, 20)
    assert network.gaps(5, 50) == [(5, 29), (40, 50)]
    assert network.gaps(35) == []
    assert network.gaps(0, 45) == [(40, 45)]


def test_nothing_ingested_has_no_gaps_but_in_a_window(recorded, network):
    assert network.gaps() == []
    assert network.gaps(5, 9) == [(5, 9)]


def test_cursors_of_their_own_names(recorded, driver):
    with recorded.open() as store, Network(store, latest_cursor="tip", oldest_cursor="start") as network:
        driver("add", 10, 19)
        network.set("tip", 25)
        network.set("start", 8)
        assert network.gaps() == [(8, 9), (20, 25)]


@pytest.mark.parametrize("window", [(5, 4), (-1, 5), (1, -5)])
def test_a_window_that_makes_no_sense_is_refused(network, window):
    with pytest.raises(HfError) as refused:
        network.gaps(*window)
    assert refused.value.status == Status.INVALID


def test_cursors_without_coverage_are_a_store_to_adopt(network):
    network.set(LATEST, 100)
    with pytest.raises(HfError) as refused:
        network.gaps()
    assert refused.value.status == Status.CONFIG
    assert "holdfast ingest adopt --network testnet" in refused.value.hint


def test_ledgers_without_transactions_are_no_gaps(driver, network, gaps):
    fill(network, range(1, 6), transactions=0)
    driver("add", 1, 5)
    result = gaps("--verify")
    assert (result.code, result.out) == (0, "")


def test_quarantined_ledgers_are_gaps(driver, network):
    driver("add", 1, 4)
    network.sql("insert into @ingest_quarantine (sequence, reason, source, line) values (5, 'no hash', 'f:1', '{}')")
    driver("add", 6, 9)
    assert network.gaps() == [(5, 5)]


def test_what_is_below_a_ledger_in_quarantine_above_the_latest_is_no_gap_yet(driver, network):
    driver("add", 0, 4)
    for sequence in (7, 9):
        network.sql("insert into @ingest_quarantine (sequence, reason, source, line)"
                    f" values ({sequence}, 'no hash', 'f:1', '{{}}')")
    assert network.gaps() == [(7, 7), (9, 9)]


# --- the command --------------------------------------------------------------------------------------


def test_the_command_prints_a_range_a_line(driver, gaps):
    for first, last in [(100, 100), (105, 105), (110, 110)]:
        driver("add", first, last)
    result = gaps()
    assert (result.code, result.out) == (0, "101-104\n106-109\n")
    assert gaps("--from", "104", "--to", "106").out == "104-104\n106-106\n"


def test_the_command_speaks_json(driver, gaps):
    driver("add", 100, 100)
    driver("add", 105, 105)
    assert json.loads(gaps("--json").out) == {"network": "testnet", "gaps": [{"from": 101, "to": 104}]}
    assert json.loads(gaps("--json", "--to", "100").out) == {"network": "testnet", "gaps": []}


def test_no_gaps_is_said_to_people_only(driver, gaps):
    driver("add", 1, 5)
    result = gaps()
    assert (result.code, result.out) == (0, "") and "no gaps" in result.err


@pytest.mark.parametrize("words", [[], ["--verify"], ["--repair"], ["--from", "1", "--to", "9"]])
def test_a_network_that_is_not_there_is_no_network_without_gaps(holdfast, driver, recorded, words):
    result = holdfast("gaps", "--network", "testnte", *words, "--url", recorded.url)
    assert (result.code, result.out) == (cli.EXIT_CONFIG, "") and "no network testnte" in result.err, result


@pytest.mark.parametrize("words", [["--from", "0"], ["--from", "x"], ["--from", "5", "--to", "4"], ["x"],
                                   ["--to", "2147483648"]])
def test_wrong_words_are_a_usage_error(gaps, words):
    assert gaps(*words).code == cli.EXIT_USAGE


# --- data and coverage ----------------------------------------------------------------------------------


@pytest.fixture
def agreeing(driver, network):
    fill(network, range(100, 121), transactions=2)
    driver("add", 100, 120)
    network.set(LATEST, 120)
    network.set(OLDEST, 100)
    return network


def test_what_agrees_is_verified_with_exit_0(agreeing, gaps):
    result = gaps("--verify")
    assert (result.code, result.out) == (0, "")
    assert json.loads(gaps("--verify", "--json").out) == {
        "network": "testnet", "gaps": [], "missing": [], "incomplete": [], "uncovered": []}


def test_every_disagreement_is_reported_with_exit_1(driver, agreeing, gaps):
    agreeing.sql("delete from @ledgers where sequence in (103, 104)")
    agreeing.sql("delete from @transactions where to_id = $1", 110 << 32 | 1 << 12)
    fill(agreeing, [130, 131, 140])
    result = gaps("--verify")
    assert result.code == 1
    assert sorted(result.out.splitlines()) == [
        "103-104  covered but not there", "110-110  there without all its transactions",
        "130-131  there but not covered", "140-140  there but not covered"]
    assert json.loads(gaps("--verify", "--json").out) == {
        "network": "testnet", "gaps": [], "missing": [{"from": 103, "to": 104}],
        "incomplete": [{"from": 110, "to": 110}],
        "uncovered": [{"from": 130, "to": 131}, {"from": 140, "to": 140}]}


def test_the_window_bounds_what_is_verified(agreeing, gaps):
    agreeing.sql("delete from @ledgers where sequence in (103, 110)")
    assert gaps("--verify", "--to", "105").out == "103-103  covered but not there\n"
    assert gaps("--verify", "--from", "111").out == ""


def test_more_transactions_than_a_ledger_states_are_reported(agreeing, gaps):
    agreeing.sql("update @ledgers set transaction_count = 1 where sequence = 105")
    assert gaps("--verify").out == "105-105  there without all its transactions\n"


def test_repair_makes_coverage_what_the_data_says(driver, agreeing, gaps):
    agreeing.sql("delete from @ledgers where sequence in (103, 104)")
    agreeing.sql("delete from @transactions where to_id = $1", 110 << 32 | 1 << 12)
    fill(agreeing, [130])
    result = gaps("--repair")
    assert (result.code, result.out) == (0, "103-104\n110-110\n121-129\n")
    assert driver.coverage() == [(100, 102), (105, 109), (111, 120), (130, 130)]
    assert (agreeing.get(LATEST), agreeing.get(OLDEST)) == (130, 130)
    assert gaps("--verify").out.splitlines()[0] == "110-110  there without all its transactions"


def test_repair_leaves_cursors_that_agree(driver, agreeing, gaps):
    agreeing.sql("delete from @ingest_coverage")
    result = gaps("--repair")
    assert result.code == 0 and "21 ledgers in 1 ranges" in result.err and "cursor" not in result.err
    assert driver.coverage() == [(100, 120)]


def test_repair_lets_the_cursors_follow_and_says_so(agreeing, gaps):
    agreeing.sql("delete from @ledgers where sequence in (110, 120)")
    result = gaps("--repair")
    assert "latest ledger is at 119 now" in result.err and "oldest ledger is at 111 now" in result.err
    assert (agreeing.get(LATEST), agreeing.get(OLDEST)) == (119, 111)


def test_repair_cures_rows_that_overlap(driver, agreeing, gaps):
    agreeing.sql("insert into @ingest_coverage (lo, hi) values (110, 130)")
    assert gaps().code == cli.EXIT_DATA
    assert gaps("--repair").code == 0
    assert driver.coverage() == [(100, 120)]


def test_repair_claims_nothing_below_the_retention_floor(driver, agreeing, gaps):
    driver("put", RETENTION_FLOOR, 110)
    gaps("--repair")
    assert driver.coverage() == [(110, 120)]


def test_repair_without_data_leaves_the_cursors(driver, agreeing, gaps):
    agreeing.sql("delete from @ledgers")
    assert gaps("--repair").code == 0
    assert driver.coverage() == [] and agreeing.get(LATEST) == 120


def test_repair_is_refused_while_an_ingester_runs(recorded, driver, agreeing, gaps):
    agreeing.sql("delete from @ingest_coverage")
    with recorded.open(application="the ingester") as store, store.acquire(LABEL):
        result = gaps("--repair")
        assert result.code == cli.EXIT_NOT_ACQUIRED
        assert "wallet-backend-ingest-testnet" in result.err and "the ingester" in result.err
        assert driver.coverage() == []
    assert gaps("--repair").code == 0


def test_the_network_has_the_lock_of_existing_ingesters():
    assert hf.derive(*LABEL) == -8622139916493065622


def test_verifying_and_repairing_go_through_many_pieces(driver, network, gaps):
    """More ledgers than one statement looks at, with wide gaps between."""
    driver("ensure", 0, 2**31 - 1, 2**30)
    for first, last in [(1, 20000), (50000, 50010), (2**31 - 10, 2**31 - 1)]:
        network.sql("insert into @ledgers (sequence, hash, closed_at, transaction_count) with recursive n (i) as"
                    " (select cast($1 as bigint) union all select i + 1 from n where i < $2)"
                    " select i, 'h', '2024-01-01T00:00:00Z', 0 from n", first, last)
    result = gaps("--verify")
    assert result.out.splitlines() == ["1-20000  there but not covered", "50000-50010  there but not covered",
                                       "2147483638-2147483647  there but not covered"]
    gaps("--repair")
    assert driver.coverage() == [(1, 20000), (50000, 50010), (2**31 - 10, 2**31 - 1)]
    assert gaps("--verify").code == 0


def test_verify_without_tables_says_what_creates_them(network, gaps):
    network.set(LATEST, 5)
    result = gaps("--verify")
    assert result.code == cli.EXIT_CONFIG and "holdfast ingest adopt" in result.err


def test_repair_waits_for_a_backfill_that_is_committing(db, holdfast):
    with hf.Store(db.url()) as store, Network(store) as network, Driver(db.url()) as backfill:
        backfill("install")
        backfill("ensure", 0, 999, 1000)
        fill(network, [5])
        backfill("begin")
        backfill("add", 7, 9)
        repair = holdfast.start("gaps", "--network", "testnet", "--repair", "--url", db.url())
        eventually(lambda: db.value("select count(*) from pg_locks where not granted"))
        backfill("commit")
        assert repair.wait() == 0
        assert backfill.coverage() == [(5, 5)]

"""Stellar RPC as a source: what a server can do wrong, and what comes of it."""

import json

import pytest

from awaiting import stays
from source_reader import Reader, check_ledger, check_read
from stellar_rpc import (CLOSE_TIME, GENESIS, METHODS, Body, Change, Cut, Drop, Error, Fine, Http, Stall, StellarRpc,
                         toid)

MEGABYTE = 1024 * 1024


# --- failures that pass -----------------------------------------------------------------------------

PASSING = {
    "429": Http(429), "500": Http(500), "502": Http(502, b"<html>"), "503": Http(503), "504": Http(504),
    "408": Http(408),
    "-32001": Error(-32001, "request exceeded processing limit threshold"), "-32003": Error(-32003),
    "-32603": Error(-32603), "-32098": Error(-32098),
    "cut": Cut(), "cut before the body": Cut(0),
    "no JSON": Body(b"<html>hello</html>"), "empty": Body(b""), "half JSON": Body(b'{"jsonrpc":"2.0",'),
    "invalid UTF-8": Body(b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}'),
    "another id": Body(b'{"jsonrpc":"2.0","id":999,"result":{}}'),
    "no result": Body(b'{"jsonrpc":"2.0","id":1}'), "an array": Body(b"[]"),
    "claims less": Body(b'{"jsonrpc":"2.0","id":1,"result":{}}', length=10),
    "a result of nothing": Change(lambda result: {}),
    "an error without a code": Body(b'{"jsonrpc":"2.0","id":1,"error":{}}'),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_failure_that_passes_is_told_and_loses_nothing(rpc, method, fault):
    rpc.close_ledgers(9)
    rpc.fault(method, fault)
    with Reader(rpc.url) as reader:
        answer = reader.fails("HF_UNREACHABLE", rpc.url_with(), method)
        assert "\n" not in answer["message"]
        check_read(rpc, reader, GENESIS, 10)


@pytest.mark.parametrize("method", ["getLedgers", "getTransactions"])
def test_failures_at_every_second_request_do_not_stop_it(rpc, method):
    """Each request that succeeds leads on, so that a rate limit only slows it down."""
    rpc.close_ledgers(1, transactions=900)
    rpc.close_ledgers(5)
    rpc.fault(method, Http(429), Fine(), count=50)
    failures, sequence = 0, GENESIS
    with Reader(rpc.url) as reader:
        while sequence <= rpc.latest:
            answer = reader.next()
            if answer["status"] == "HF_OK":
                assert answer["ledger"]["sequence"] == sequence
                check_ledger(rpc, answer["ledger"])
                sequence += 1
            else:
                assert answer["status"] == "HF_UNREACHABLE"
                failures += 1
    assert failures * 2 == len(rpc.asked(method))


def test_nobody_at_the_address_may_pass():
    with StellarRpc() as rpc:
        url = rpc.url
    with Reader(url) as reader:
        reader.fails("HF_UNREACHABLE", "getNetwork")
        assert reader.extent()["status"] == "HF_UNREACHABLE"


def test_a_host_that_does_not_exist_may_pass():
    with Reader("rpc+http://nobody.invalid") as reader:
        reader.fails("HF_UNREACHABLE", "nobody.invalid")


def test_a_server_that_comes_back_is_used(rpc, reader):
    check_read(rpc, reader, GENESIS, GENESIS)
    connections = rpc.connections
    rpc.fault("getLedgers", Drop(), Drop())
    reader.seek(5)
    reader.fails("HF_UNREACHABLE")
    check_read(rpc, reader, 5, 11)
    assert rpc.connections > connections


def test_a_connection_that_the_server_closed_in_between_is_opened_again_unseen(rpc, reader):
    check_read(rpc, reader, GENESIS, GENESIS)
    rpc.fault("getHealth", Drop())
    reader.seek(5)
    check_read(rpc, reader, 5, 11)


def test_one_connection_serves_all_requests(rpc, reader):
    check_read(rpc, reader, GENESIS, 11)
    assert rpc.connections == 1


def test_an_unhealthy_server_may_pass(rpc, reader):
    rpc.unhealthy = "latency (1m) since last known ledger closed is too high"
    reader.fails("HF_UNREACHABLE", "latency (1m)", "-32603")
    rpc.unhealthy = None
    check_read(rpc, reader, GENESIS, 11)


def test_an_empty_server_may_fill(rpc):
    with Reader(rpc.url) as reader:
        reader.fails("HF_UNREACHABLE", "DB is empty")
        assert reader.extent()["status"] == "HF_UNREACHABLE"
        rpc.close_ledgers(1)
        check_read(rpc, reader, GENESIS, GENESIS)


def test_the_pause_that_a_busy_server_asks_for_is_kept(rpc, reader):
    rpc.fault("getHealth", Http(429, retry_after=600))
    reader.fails("HF_UNREACHABLE", "429", "a pause of 600 s")
    before = len(rpc.requests)
    waiting = reader.begin_next()
    stays(lambda: waiting.running and len(rpc.requests) == before, 0.3, "nothing is asked")
    reader.stop()
    assert waiting.result()["status"] == "HF_INTERRUPTED"


def test_after_the_pause_it_goes_on(rpc, reader):
    rpc.fault("getHealth", Http(503, retry_after=1))
    reader.fails("HF_UNREACHABLE", "503", "a pause of 1 s")
    check_read(rpc, reader, GENESIS, 11)


def test_a_server_that_sends_nothing_more_is_given_up(rpc):
    rpc.close_ledgers(3)
    rpc.fault("getLedgers", Stall())
    with Reader(rpc.url_with(timeout="3s")) as reader:
        reader.fails("HF_UNREACHABLE", "getLedgers")
        check_read(rpc, reader, GENESIS, 4)


# --- failures that stay -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410])
def test_what_the_server_refuses_at_first_is_a_wrong_url_and_later_is_tried_again(rpc, reader, status):
    rpc.fault("getNetwork", Http(status))
    reader.fails("HF_CONFIG", f"HTTP {status}", "check the")
    check_read(rpc, reader, GENESIS, 11)
    rpc.fault("getHealth", Http(status))
    reader.fails("HF_UNREACHABLE", f"HTTP {status}", "check the")


@pytest.mark.parametrize("code", [-32600, -32601, -32602])
def test_a_request_that_the_server_does_not_know_is_not_tried_again(rpc, reader, code):
    rpc.fault("getLedgers", Error(code, "what is that"))
    reader.fails("HF_CONFIG", "what is that", str(code))


def test_a_server_that_gives_xdr_only_is_refused(rpc, reader):
    rpc.xdr_only = True
    reader.fails("HF_CONFIG", "XDR instead of JSON", "xdrFormat")


def test_messages_of_the_server_cannot_break_the_line(rpc, reader):
    rpc.fault("getHealth", Error(-32603, "two\nlines\x1b[31m" + "x" * 5000))
    answer = reader.fails("HF_UNREACHABLE", r"two\nlines")
    assert "\n" not in answer["message"] and "\x1b" not in answer["message"]


# --- pages ------------------------------------------------------------------------------------------


def limits(rpc, method):
    return [each["pagination"]["limit"] for each in rpc.asked(method)]


def test_small_ledgers_are_asked_for_in_growing_pages(rpc):
    rpc.close_ledgers(300, transactions=0)
    with Reader(rpc.url) as reader:
        reader.ledgers(300)
    asked = limits(rpc, "getLedgers")
    assert asked[0] == 5
    assert asked == sorted(asked) and 50 < asked[-1] <= 200


def pad_ledgers(rpc, size):
    """Every ledger that it gives is larger by so much."""
    padding = "p" * size

    def grow(result):
        for each in result["ledgers"]:
            each["padding"] = padding

    rpc.fault("getLedgers", Change(grow), count=50)


def test_large_ledgers_are_asked_for_in_pages_of_8_megabytes(rpc):
    rpc.close_ledgers(12, transactions=0)
    pad_ledgers(rpc, 3 * MEGABYTE)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 13)
    assert limits(rpc, "getLedgers")[:4] == [5, 2, 2, 2]


def test_large_transactions_are_asked_for_in_pages_of_8_megabytes(rpc):
    rpc.close_ledgers(1, transactions=200, padding=200_000)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, GENESIS)
    assert limits(rpc, "getTransactions")[:2] == [100, 50] and limits(rpc, "getTransactions")[-1] < 50


def test_a_page_beyond_64_megabytes_is_left_and_asked_for_in_halves(rpc):
    rpc.close_ledgers(4, transactions=0)
    pad_ledgers(rpc, 20 * MEGABYTE)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 5)
    assert limits(rpc, "getLedgers")[:3] == [5, 2, 1]


def test_a_request_beyond_the_limit_of_the_server_is_halved(rpc):
    rpc.close_ledgers(3, transactions=2)
    rpc.fault("getLedgers", Error(-32001, "request exceeded processing limit threshold"), Http(504))
    with Reader(rpc.url) as reader:
        reader.fails("HF_UNREACHABLE", "-32001")
        reader.fails("HF_UNREACHABLE", "504")
        check_read(rpc, reader, GENESIS, 4)
    assert limits(rpc, "getLedgers")[:3] == [5, 2, 1]


def test_a_server_that_allows_smaller_pages_only_gets_them(rpc):
    rpc.most = 3
    rpc.close_ledgers(4, transactions=10)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 5)


def test_a_ledger_beyond_the_limit_is_bad_and_the_next_one_follows(rpc):
    rpc.close_ledgers(1, transactions=2)
    rpc.close_ledgers(1, transactions=5, padding=40_000)
    rpc.close_ledgers(1, transactions=2)
    with Reader(rpc.url, line_max=100_000) as reader:
        check_read(rpc, reader, 2, 2)
        bad = reader.fails("HF_BAD_DATA", "ledger 3", "larger than 100000 bytes")["bad"]
        assert (bad["sequence"], bad["where"]) == (3, "getTransactions from 3")
        check_read(rpc, reader, 4, 4)


def test_a_ledger_with_an_answer_beyond_all_bounds_is_bad_and_the_next_one_follows(rpc):
    rpc.close_ledgers(3, transactions=1)

    def grow(result):
        for each in result["ledgers"]:
            if each["sequence"] == 3:
                each["padding"] = "p" * (65 * MEGABYTE)

    rpc.fault("getLedgers", Change(grow), count=20)
    with Reader(rpc.url, line_max=100_000) as reader:
        check_read(rpc, reader, 2, 2)
        bad = reader.fails("HF_BAD_DATA", f"larger than {64 * MEGABYTE} bytes")["bad"]
        assert (bad["sequence"], bad["where"]) == (3, "getLedgers from 3")
        check_read(rpc, reader, 4, 4)


# --- quirks -----------------------------------------------------------------------------------------


def test_swapped_envelope_and_meta_are_stored_under_their_right_names(rpc):
    rpc.swaps_envelope = True
    rpc.close_ledgers(3, transactions=3)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 4)


@pytest.mark.parametrize("text_numbers", [True, False])
def test_numbers_may_be_strings_and_strings_numbers(rpc, text_numbers):
    rpc.text_numbers = text_numbers
    rpc.close_ledgers(3)
    with Reader(rpc.url) as reader:
        assert reader.extent() == {"status": "HF_OK", "oldest": 2, "latest": 4}
        check_read(rpc, reader, GENESIS, 4)


def test_compressed_answers_are_read(rpc, reader):
    rpc.compresses = True
    check_read(rpc, reader, GENESIS, 11)


def test_values_of_contracts_that_nest_deep_come_through(rpc, reader):
    deep = "void"
    for _ in range(100):
        deep = {"map": [{"key": {"u32": 1}, "val": deep}]}
    rpc.fault("getTransactions", Change(lambda result: result["transactions"][0].update(deep=deep)))
    assert reader.ledger()["transactions"][0]["body"]["deep"] == deep


def test_a_fee_of_64_bits_fits(rpc, reader):
    rpc.fault("getTransactions", Change(lambda result: result["transactions"][0]["resultJson"].update(
        fee_charged=str(2**63 - 1))))
    assert reader.ledger()["transactions"][0]["fee"] == 2**63 - 1


# --- bad ledgers ------------------------------------------------------------------------------------


def change_first(field, **changes):
    def change(result):
        for name, value in changes.items():
            if value is None:
                del result[field][0][name]
            else:
                result[field][0][name] = value

    return Change(change)


BAD_LEDGERS = {
    "no hash": dict(hash=None), "a hash of numbers": dict(hash=17), "an empty hash": dict(hash=""),
    "a long hash": dict(hash="a" * 129), "an escaped hash": dict(hash="a\n"),
    "no sequence": dict(sequence=None), "sequence 0": dict(sequence=0), "half a sequence": dict(sequence=2.5),
    "a sequence beyond 31 bits": dict(sequence=2**31), "no time": dict(ledgerCloseTime=None),
    "another time": dict(ledgerCloseTime="2024-01-01T00:00:00Z"),
    "a time beyond all": dict(ledgerCloseTime=2**63 - 1), "no header": dict(headerJson=None),
    "a header without the link": dict(headerJson={"header": {}}), "a header of text": dict(headerJson="v0"),
    "a header of another ledger": dict(headerJson={"header": {"previous_ledger_hash": "0" * 64, "ledger_seq": 6}}),
}


@pytest.mark.parametrize("changes", BAD_LEDGERS.values(), ids=BAD_LEDGERS.keys())
def test_a_bad_ledger_is_told_with_its_bytes_and_the_next_one_follows(rpc, reader, changes):
    check_read(rpc, reader, 2, 3)
    reader.seek(5)
    rpc.fault("getLedgers", change_first("ledgers", **changes))
    bad = reader.fails("HF_BAD_DATA", "ledger 5")["bad"]
    assert (bad["sequence"], bad["where"]) == (5, "getLedgers from 5")
    assert "ledgerCloseTime" in json.loads(bad["bytes"]) or "ledgerCloseTime" in changes
    check_read(rpc, reader, 6, 11)


BAD_TRANSACTIONS = {
    "no hash": dict(txHash=None), "an escaped hash": dict(txHash='a"b'), "no status": dict(status=None),
    "no order": dict(applicationOrder=None), "order 0": dict(applicationOrder=0),
    "order 2": dict(applicationOrder=2), "order 2^20": dict(applicationOrder=2**20),
    "no ledger": dict(ledger=None), "a fee of words": dict(resultJson={"fee_charged": "much"}),
    "a fee beyond 64 bits": dict(resultJson={"fee_charged": str(2**63)}),
}


@pytest.mark.parametrize("changes", BAD_TRANSACTIONS.values(), ids=BAD_TRANSACTIONS.keys())
def test_a_bad_transaction_is_told_with_its_bytes_and_the_next_ledger_follows(rpc, reader, changes):
    reader.seek(5)
    rpc.fault("getTransactions", change_first("transactions", **changes))
    bad = reader.fails("HF_BAD_DATA", "ledger 5")["bad"]
    assert (bad["sequence"], bad["where"]) == (5, "getTransactions from 5")
    assert json.loads(bad["bytes"])["createdAt"] == CLOSE_TIME + 25
    check_read(rpc, reader, 6, 11)


CONTRADICTIONS = {
    "another hash": ("getTransactions", change_first("transactions", txHash="0" * 64), "hashes"),
    "one fewer in getLedgers": ("getLedgers", Change(lambda result: result["ledgers"][0]["metadataJson"]["v1"][
        "tx_processing"].pop() and None), "more than the 1"),
}


@pytest.mark.parametrize("sequence", [5, 11], ids=["behind the tip", "at the tip"])
@pytest.mark.parametrize("method, fault, said", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_server_that_contradicts_itself_is_told_and_the_next_ledger_follows(rpc, reader, method, fault, said, sequence):
    reader.seek(sequence)
    rpc.fault(method, fault)
    bad = reader.fails("HF_BAD_DATA", f"ledger {sequence}", said)["bad"]
    assert bad["sequence"] == sequence
    rpc.close_ledgers(2)
    check_read(rpc, reader, sequence + 1, 13)


def test_a_hash_that_two_transactions_share_is_bad_and_the_next_ledger_follows(rpc, reader):
    rpc.fault("getTransactions", Change(lambda result: result["transactions"][1].update(
        txHash=result["transactions"][0]["txHash"])))
    bad = reader.fails("HF_BAD_DATA", "ledger 2", "two transactions have the hash")["bad"]
    assert bad["sequence"] == 2 and rpc.ledger(2).transactions[0].hash in bad["bytes"]
    check_read(rpc, reader, 3, 11)


def test_a_page_that_does_not_start_where_asked_may_pass(rpc, reader):
    rpc.fault("getLedgers", Change(lambda result: result["ledgers"].pop(0) and None))
    reader.fails("HF_UNREACHABLE", "gave ledger 3 when asked for 2")
    check_read(rpc, reader, GENESIS, 11)


def test_a_page_with_a_hole_is_used_up_to_it(rpc, reader):
    rpc.fault("getLedgers", Change(lambda result: result["ledgers"].pop(2) and None))
    check_read(rpc, reader, GENESIS, 11)
    assert [each["startLedger"] for each in rpc.asked("getLedgers")][:2] == [2, 4]


def test_a_page_without_ledgers_may_pass(rpc, reader):
    rpc.fault("getLedgers", Change(lambda result: result.update(ledgers=[])))
    reader.fails("HF_UNREACHABLE", "no ledger from 2")
    check_read(rpc, reader, GENESIS, 11)


@pytest.mark.parametrize("index", [0, 1, 5])
def test_missing_transactions_are_missed(rpc, reader, index):
    rpc.fault("getTransactions", Change(lambda result: result.update(
        transactions=result["transactions"][:index], cursor="0" if index == 0 else str(toid(2, index, 1)))),
        Change(lambda result: result.update(transactions=[], cursor="0")))
    delivered = []
    while len(delivered) < 10:
        answer = reader.next()
        if answer["status"] == "HF_OK":
            check_ledger(rpc, answer["ledger"])
            delivered.append(answer["ledger"]["sequence"])
        else:
            assert answer["status"] == "HF_UNREACHABLE", answer
            assert "transactions of ledger" in answer["message"], answer
    assert delivered == list(range(2, 12))


def test_a_replayed_page_is_not_taken_twice(rpc):
    rpc.close_ledgers(1, transactions=150)
    rpc.close_ledgers(1, transactions=3)
    first = []
    rpc.fault("getTransactions", Change(lambda result: first.append(json.loads(json.dumps(result)))),
              Change(lambda result: first[0]))
    with Reader(rpc.url) as reader:
        reader.fails("HF_BAD_DATA", "transaction 1 follows transaction 100")
        check_read(rpc, reader, 3, 3)


def test_a_cursor_that_another_server_does_not_know_starts_the_ledger_over(rpc):
    rpc.close_ledgers(1, transactions=250)
    rpc.fault("getTransactions", Fine(), Error(-32602, "database does not contain metadata for ledger: 2"))
    with Reader(rpc.url) as reader:
        reader.fails("HF_UNREACHABLE", "cursor")
        check_read(rpc, reader, GENESIS, GENESIS)

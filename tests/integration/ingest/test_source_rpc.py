"""Stellar RPC as a source of ledgers, against a server that replays the protocol."""

import json
import subprocess
import threading

import pytest

from awaiting import eventually
from source_reader import Reader, check_ledger, check_read
from stellar_rpc import GENESIS, METHODS, Body, Change, Cut, Http, Stall, StellarRpc


# --- ledgers ----------------------------------------------------------------------------------------


def test_each_ledger_comes_whole_with_its_chain_link_and_its_transactions(rpc, reader):
    check_read(rpc, reader, GENESIS, 11)


def test_a_ledger_knows_the_tip_of_the_server(rpc, reader):
    assert reader.ledger()["tip"] == 11


def test_without_a_seek_the_first_is_the_oldest_that_the_server_has(rpc):
    rpc.close_ledgers(10)
    rpc.forget_before(5)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, 5, 11)


def test_ledgers_without_transactions_come_without_and_are_not_asked_for(rpc):
    rpc.close_ledgers(8, transactions=0)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 9)
    assert rpc.asked("getTransactions") == []


def test_a_ledger_larger_than_a_page_is_put_together(rpc):
    rpc.close_ledgers(1, transactions=450)
    rpc.close_ledgers(1, transactions=0)
    rpc.close_ledgers(1, transactions=401)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 4)
    assert all(each["pagination"]["limit"] <= 200 for each in rpc.asked("getTransactions"))


def test_no_transaction_is_asked_for_twice(rpc):
    rpc.close_ledgers(12, transactions=37)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 13)
    pages = rpc.asked("getTransactions")
    assert sum(each["pagination"]["limit"] for each in pages) == 12 * 37 + 1  # would be one too many


def test_the_cursor_of_getledgers_is_never_used(rpc, reader):
    check_read(rpc, reader, GENESIS, 11)
    assert all("cursor" not in each["pagination"] for each in rpc.asked("getLedgers"))


def test_the_body_is_the_item_byte_for_byte(rpc):
    rpc.close_ledgers(1, transactions=1)
    known = rpc.ledger(2).transactions[0].hash.encode()
    odd = b'{ "status":"SUCCESS" ,"txHash":"' + known + b'","applicationOrder":1,"ledger":2,"x":[1.50,"\\u00e9\\u0000"]}'
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"transactions":[' + odd + b'],"latestLedger":2,"cursor":"9"}}'
    # getNetwork, getHealth and getLedgers come first.
    rpc.fault("getTransactions", Body(answer % 4))
    with Reader(rpc.url) as reader:
        transaction, = reader.ledger()["transactions"]
    assert transaction["body"] == json.loads(odd)
    assert transaction["hash"] == known.decode()
    assert "fee" not in transaction


# --- following --------------------------------------------------------------------------------------


def test_the_next_ledger_is_awaited_at_the_tip(rpc, reader):
    check_read(rpc, reader, GENESIS, 11)
    waiting = reader.begin_next()
    polls = len(rpc.asked("getHealth"))
    eventually(lambda: len(rpc.asked("getHealth")) > polls + 2, what="it looks again and again")
    assert waiting.running
    rpc.close_ledgers(1)
    check_ledger(rpc, waiting.result()["ledger"])


def test_a_server_behind_the_same_address_that_lags_is_waited_for(rpc, reader):
    check_read(rpc, reader, GENESIS, 11)
    rpc.close_ledgers(3)
    rpc.latest_of["getLedgers"] = 9
    waiting = reader.begin_next()
    eventually(lambda: len(rpc.asked("getLedgers")) > 5, what="it asks again and again")
    assert waiting.running
    del rpc.latest_of["getLedgers"]
    check_ledger(rpc, waiting.result()["ledger"])
    check_read(rpc, reader, 13, 14)


def test_a_latest_ledger_that_goes_backwards_is_no_reset(rpc, reader):
    check_read(rpc, reader, GENESIS, 11)
    rpc.latest_of["getHealth"] = 8
    waiting = reader.begin_next()
    polls = len(rpc.asked("getHealth"))
    eventually(lambda: len(rpc.asked("getHealth")) > polls + 2, what="it looks again and again")
    assert waiting.running and reader.notes == []
    rpc.close_ledgers(1)
    del rpc.latest_of["getHealth"]
    check_ledger(rpc, waiting.result()["ledger"])


def test_transactions_of_a_server_that_lags_are_not_taken_for_all(rpc, reader):
    rpc.latest_of["getTransactions"] = 1
    reader.fails("HF_UNREACHABLE", "at ledger 1, behind 2")
    del rpc.latest_of["getTransactions"]
    check_read(rpc, reader, GENESIS, 11)


@pytest.mark.parametrize("has_meta", [True, False], ids=["counted", "not counted"])
def test_an_empty_page_of_a_server_that_lags_is_not_taken_for_the_end(rpc, reader, has_meta):
    rpc.has_meta = has_meta
    rpc.fault("getTransactions", Change(lambda result: result.update(
        transactions=[], latestLedger=1, cursor="0")))
    reader.fails("HF_UNREACHABLE", "at ledger 1, behind 2")
    check_read(rpc, reader, GENESIS, 11)


def test_a_ledger_is_whole_without_the_count_in_the_meta_too(rpc):
    rpc.has_meta = False
    rpc.close_ledgers(3, transactions=2)
    rpc.close_ledgers(2, transactions=0)
    rpc.close_ledgers(1, transactions=230)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 7)


def test_a_reset_is_waited_through_with_a_warning_and_shows_in_the_chain(rpc):
    rpc.close_ledgers(100, transactions=0)
    with Reader(rpc.url) as reader:
        check_read(rpc, reader, GENESIS, 101)
        last = rpc.ledger(101).hash
        rpc.reset()
        rpc.close_ledgers(3, transactions=0)
        waiting = reader.begin_next()
        eventually(lambda: reader.notes, what="the warning")
        assert "waiting for ledger 102, but the server is at 4" in reader.notes[0]
        assert waiting.running
        rpc.close_ledgers(120, transactions=0)
        ledger = waiting.result()["ledger"]
        assert ledger["sequence"] == 102 and ledger["previous_hash"] != last
        assert len(reader.notes) == 1


def test_seek_goes_anywhere(rpc, reader):
    for sequence in (9, 3, 4, 4, 11, 2):
        reader.seek(sequence)
        assert reader.ledger()["sequence"] == sequence


def test_seek_to_where_it_is_costs_nothing(rpc, reader):
    check_read(rpc, reader, 2, 3)
    before = len(rpc.requests)
    reader.seek(4)
    check_read(rpc, reader, 4, 5)
    assert [method for method, _ in rpc.requests[before:] if method == "getLedgers"] == []


@pytest.mark.parametrize("sequence", [0, -1, 2**31, 2**63 - 1])
def test_seek_to_no_ledger_is_refused(reader, sequence):
    assert reader.seek(sequence)["status"] == "HF_CONFIG"


def test_extent_is_the_window_of_the_server(rpc, reader):
    rpc.forget_before(5)
    assert reader.extent() == {"status": "HF_OK", "oldest": 5, "latest": 11}


def test_too_old_is_a_permanent_gap(rpc, reader):
    rpc.forget_before(6)
    reader.fails("HF_CONFIG", "permanent gap", "ledger 2 is wanted", "still has is 6")


def test_a_window_that_moves_past_the_reader_is_a_permanent_gap(rpc, reader):
    check_read(rpc, reader, GENESIS, 3)
    rpc.close_ledgers(40)
    reader.seek(4)
    assert reader.extent()["latest"] == 51
    rpc.forget_before(20)
    answers = [reader.next() for _ in range(5)]
    gap = next(each for each in answers if each["status"] != "HF_OK")
    assert gap["status"] == "HF_CONFIG" and "permanent gap" in gap["message"], gap
    assert "still has is 20" in gap["message"]


# --- the network ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pubnet", "testnet", "futurenet"])
def test_the_three_networks_are_known_by_their_passphrase(name):
    with StellarRpc(name) as rpc:
        rpc.close_ledgers(1)
        with Reader(rpc.url, name) as reader:
            check_read(rpc, reader, GENESIS, GENESIS)


def test_a_server_of_another_network_is_refused_by_both_names(rpc):
    rpc.close_ledgers(1)
    with Reader(rpc.url, "pubnet") as reader:
        reader.fails("HF_CONFIG", "Test SDF Network ; September 2015",
                     "Public Global Stellar Network ; September 2015")
        assert reader.extent()["status"] == "HF_CONFIG"
    assert {method for method, _ in rpc.requests} == {"getNetwork"}


def test_another_network_needs_its_passphrase(rpc):
    with Reader(rpc.url, "local") as reader:
        assert reader.opened["status"] == "HF_CONFIG"
        assert "passphrase of network local" in reader.opened["message"]


def test_a_passphrase_of_ones_own_is_compared_without_its_escapes():
    passphrase = 'Ours & "theirs" ; \\ März 2020'
    with StellarRpc(passphrase) as rpc:
        rpc.close_ledgers(1)
        with Reader(rpc.url_with(passphrase=passphrase), "local") as reader:
            check_read(rpc, reader, GENESIS, GENESIS)
        with Reader(rpc.url_with(passphrase=passphrase + "!"), "local") as reader:
            reader.fails("HF_CONFIG", passphrase)


def test_the_network_is_checked_again_after_a_lost_connection(rpc, reader):
    check_read(rpc, reader, GENESIS, 3)
    reader.seek(9)
    rpc.passphrase = "Another Network"
    rpc.fault("getHealth", Cut())
    reader.fails("HF_UNREACHABLE")
    reader.fails("HF_CONFIG", "Another Network")


# --- stopping ---------------------------------------------------------------------------------------


def test_stop_ends_the_wait_at_the_tip(rpc):
    rpc.close_ledgers(1)
    with Reader(rpc.url_with(poll="1h")) as reader:
        check_read(rpc, reader, GENESIS, GENESIS)
        polls = len(rpc.asked("getHealth"))
        waiting = reader.begin_next()
        eventually(lambda: len(rpc.asked("getHealth")) > polls, what="it waits")
        reader.stop()
        assert waiting.result()["status"] == "HF_INTERRUPTED"


@pytest.mark.parametrize("method", METHODS)
def test_stop_ends_a_transfer(rpc, method):
    rpc.close_ledgers(1)
    stall = Stall()
    rpc.fault(method, stall)
    with Reader(rpc.url) as reader:
        waiting = reader.begin_next()
        assert stall.reached.wait(20)
        reader.stop()
        assert waiting.result()["status"] == "HF_INTERRUPTED"
        assert reader.next()["status"] == "HF_INTERRUPTED"


# --- the address ------------------------------------------------------------------------------------


def test_user_and_password_are_sent_and_not_told(rpc):
    rpc.close_ledgers(1)
    with Reader(rpc.url_with(user="ada:lovel%40ce", path="/v1/secret-key?token=x")) as reader:
        assert reader.name == f"rpc+http://127.0.0.1:{rpc.port}/…"
        rpc.fault("getNetwork", Http(401))
        message = reader.fails("HF_CONFIG", "user")["message"]
        check_read(rpc, reader, GENESIS, GENESIS)
    assert rpc.headers[0]["Authorization"] == "Basic YWRhOmxvdmVsQGNl"
    assert not any(secret in message for secret in ("ada", "lovel", "secret-key", "token"))


@pytest.mark.parametrize("spec", [
    "rpc+http://", "rpc+ftp://h/", "rpc+http://us er:secret@h", "rpc+http://h:99999/", "rpc+http://[::1",
    "rpc+http://h/#speed=3", "rpc+http://h/#poll=", "rpc+http://h/#poll=soon", "rpc+http://h/#timeout=10ms",
    "rpc+http://h/#passphrase", "rpc+http://h/#passphrase=a%00b", "rpc+http://h/#passphrase=other",
    "rpc+http://h/#ca=a&ca=b"])
def test_an_address_that_makes_no_sense_is_refused_without_its_password(spec):
    with Reader(spec) as reader:
        assert reader.opened["status"] == "HF_CONFIG"
        assert "secret" not in reader.opened["message"]


def test_a_redirect_on_the_same_host_is_followed_with_the_request(rpc, reader):
    rpc.fault("getNetwork", Http(307, location="/moved"))
    check_read(rpc, reader, GENESIS, 11)
    assert len(rpc.asked("getNetwork")) == 2


def test_a_redirect_to_another_host_is_refused(rpc, reader):
    with StellarRpc() as other:
        other.close_ledgers(10)
        rpc.fault("getNetwork", Http(308, location=f"http://127.0.0.1:{other.port}/"))
        reader.fails("HF_CONFIG", "HTTP 308", "redirects")
        assert other.requests == []


def test_redirects_in_a_circle_end(rpc, reader):
    rpc.fault("getNetwork", Http(307, location="/"), count=50)
    reader.fails("HF_CONFIG", "HTTP 307")
    assert len(rpc.asked("getNetwork")) < 10


# --- TLS --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", folder / "key.pem", "-out", folder / "certificate.pem", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True)
    return folder / "certificate.pem", folder / "key.pem"


def test_a_certificate_that_is_trusted_is_accepted(certificate):
    with StellarRpc(tls=certificate) as rpc:
        rpc.close_ledgers(3)
        with Reader(rpc.url_with(host="localhost", ca=certificate[0])) as reader:
            check_read(rpc, reader, GENESIS, 4)


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate):
    with StellarRpc(tls=certificate) as rpc:
        with Reader(rpc.url_with(host="localhost")) as reader:
            reader.fails("HF_CONFIG", "certificate")
        assert rpc.requests == []


def test_a_certificate_of_another_host_is_refused(certificate):
    with StellarRpc(tls=certificate) as rpc:
        with Reader(rpc.url_with(ca=certificate[0])) as reader:
            reader.fails("HF_CONFIG", "127.0.0.1")
        assert rpc.requests == []


# --- several ----------------------------------------------------------------------------------------


def test_several_readers_share_a_server(rpc):
    rpc.close_ledgers(60, transactions=3)
    failures = []

    def read(first):
        with Reader(rpc.url) as reader:
            reader.seek(first)
            for sequence in range(first, first + 20):
                ledger = reader.ledger()
                if ledger["sequence"] != sequence:
                    failures.append((sequence, ledger["sequence"]))

    threads = [threading.Thread(target=read, args=(first,)) for first in (2, 22, 42)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []

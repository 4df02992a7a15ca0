"""Cursors: the library on every store, and `holdfast cursor`."""

import csv
import json
import random
import re

import pytest

import cli
import hf
import hf_network
from awaiting import Background, eventually
from hf import HfError, Status
from hf_network import LATEST, Network

VECTORS = hf.ROOT / "tests/vectors"


@pytest.fixture
def network(store):
    with Network(store) as opened:
        yield opened


def refusal(call, *arguments):
    with pytest.raises(HfError) as caught:
        call(*arguments)
    return caught.value


def vectors():
    with open(VECTORS / "cursors.tsv", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if row and not row[0].startswith("#")]
    assert len(rows) == 9
    return rows


def apply(network, operation, argument):
    swap = re.match(r"swap (\d+)→(\d+)", operation)
    if swap:
        return network.swap(LATEST, int(swap[1]), int(swap[2]))
    return {"set-min": network.set_min, "advance": network.advance}[operation](LATEST, argument)


@pytest.mark.parametrize("operation, stored, argument, result, after", vectors())
def test_vectors_hold(network, operation, stored, argument, result, after):
    if stored != "(none)":
        network.set(LATEST, int(stored))
    if result == "ok":
        apply(network, operation, int(argument))
    else:
        error = refusal(apply, network, operation, int(argument))
        assert error.status == Status.CURSOR
        assert result.removeprefix("refused").removeprefix(": ") in error.message
    assert network.get(LATEST) == (None if after == "(none)" else int(after))


def test_missing_is_not_zero(network):
    assert network.get(LATEST) is None
    network.set(LATEST, 0)
    assert network.get(LATEST) == 0


def test_reading_creates_nothing(kind, store, network, tmp_path):
    assert network.get(LATEST) is None and network.list() == {} and network.gaps() == []
    if kind.local:
        assert not list((tmp_path / "state").glob("ingest*"))
    else:
        assert kind.database.value("select count(*) from pg_namespace where nspname like 'ingest%'") == 0


@pytest.mark.parametrize("change", ["set_min", "advance"])
def test_a_change_before_anything_was_set_is_refused_and_creates_no_row(network, change):
    error = refusal(getattr(network, change), LATEST, 5)
    assert error.status == Status.CURSOR and "not initialised" in error.message
    assert "holdfast cursor set" in error.hint
    assert network.get(LATEST) is None


@pytest.mark.parametrize("value", [2**31, 2**32 + 1, 2**53 + 1, 2**63 - 1, -1, -2**63])
def test_values_of_64_bits(network, value):
    network.set(LATEST, value)
    assert network.get(LATEST) == value
    network.set(LATEST, 2**40)
    network.set_min(LATEST, value)
    assert network.get(LATEST) == min(value, 2**40)


def test_the_first_number_has_no_predecessor(network):
    network.set(LATEST, 1)
    assert refusal(network.advance, LATEST, -2**63).status == Status.INVALID


GARBAGE = [" 99", "99 ", "0x1", "abc", "99.0", "", "+99", "9223372036854775808", "1e3", "\n5", "--5", "9" * 400]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_an_error_that_names_the_row(network, garbage):
    network.set(LATEST, 1)
    network.sql("update @ingest_store set value = $1", garbage)
    for change in (lambda: network.get(LATEST), lambda: network.set_min(LATEST, 0), lambda: network.advance(LATEST, 2),
                   lambda: network.swap(LATEST, 1, 2)):
        error = refusal(change)
        assert error.status == Status.BAD_DATA
        assert "ingest_testnet.ingest_store" in error.message and f"'{LATEST}'" in error.message
        assert garbage.strip()[:20] in error.message
    assert network.sql("select value from @ingest_store") == [[garbage]]


def test_garbage_can_be_set_right(network):
    network.set(LATEST, 1)
    network.sql("update @ingest_store set value = 'x'")
    network.set(LATEST, 7)
    assert network.get(LATEST) == 7


def test_zeros_in_front_count_as_a_number(network):
    network.set(LATEST, 1)
    network.sql("update @ingest_store set value = '0099'")
    assert network.get(LATEST) == 99
    network.advance(LATEST, 100)
    assert network.sql("select value from @ingest_store") == [["100"]]


def test_the_list_has_every_row_with_a_number(network):
    for name, value in {"b": 2, "a": 1, "Z": 3}.items():
        network.set(name, value)
    network.sql("insert into @ingest_store (key, value) values ('version', 'v1.2')")
    assert list(network.list().items()) == [("Z", 3), ("a", 1), ("b", 2)]


def test_rows_of_others_stay_as_they_are(network):
    network.set(LATEST, 1)
    network.sql("insert into @ingest_store (key, value) values ('protocol', 'x y')")
    network.set(LATEST, 2)
    network.set_min(LATEST, 1)
    assert network.sql("select value from @ingest_store where key = 'protocol'") == [["x y"]]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 128])
def test_names_that_no_cursor_may_have(network, name):
    assert refusal(network.set, name, 1).status == Status.INVALID
    assert refusal(network.get, name).status == Status.INVALID


@pytest.mark.parametrize("name", ["naïve 光标", "it's", 'quo"te', "x" * 127, "%s@x"])
def test_names_may_be_any_text(network, name):
    network.set(name, 5)
    network.advance(name, 6)
    assert network.list() == {name: 6}


def test_rows_of_holdfast_itself_are_not_set_by_hand(network):
    error = refusal(network.set, hf_network.WANTED_FROM, 1)
    assert error.status == Status.INVALID and "Holdfast's own" in error.message
    assert network.get(hf_network.WANTED_FROM) is None


@pytest.mark.parametrize("options", [
    {"name": ""}, {"name": "Testnet"}, {"name": "-x"}, {"name": "a b"}, {"name": "x" * 41}, {"name": "a'b"},
    {"name": 'a"b'}, {"name": "a.b"}, {"schema": ""}, {"schema": "holdfast"}, {"schema": "pg_x"},
    {"schema": "information_schema"}, {"schema": 'x"y'}, {"schema": "x" * 64}, {"schema": "../x"},
    {"latest_cursor": ""}, {"latest_cursor": "oldestLedgerCursor"}, {"oldest_cursor": "holdfast.x"}])
def test_names_that_no_network_may_have(store, options):
    assert refusal(lambda: Network(store, **options)).status == Status.INVALID


@pytest.mark.parametrize("name", ["pubnet", "my-net_2", "0", "x" * 40])
def test_networks_do_not_touch_one_another(store, name):
    with Network(store, name) as one, Network(store, "other") as other:
        one.set(LATEST, 1)
        assert other.get(LATEST) is None
        other.set(LATEST, 2)
        assert one.get(LATEST) == 1


def test_a_schema_of_another_name(store):
    with Network(store, schema="Adopted-1") as adopted, Network(store) as plain:
        adopted.set(LATEST, 1)
        assert plain.get(LATEST) is None and adopted.get(LATEST) == 1


def many(kind, count, body):
    """body(network, i) at once in as many threads."""
    with kind.open() as store:
        with Network(store) as network:
            for call in [Background(body, network, i) for i in range(count)]:
                call.result(60)


@pytest.mark.usefixtures("strangers")
def test_the_smallest_of_many_set_mins_wins(kind, network):
    for start in (500, 1000):
        network.set(LATEST, start)
        values = random.Random(start).sample(range(1, 900), 40)
        many(kind, 40, lambda shared, i: shared.set_min(LATEST, values[i]))
        assert network.get(LATEST) == min([*values, start])


@pytest.mark.usefixtures("strangers")
def test_one_of_many_advances_succeeds(kind, network):
    network.set(LATEST, 99)
    outcomes = []

    def advance(shared, _):
        try:
            shared.advance(LATEST, 100)
            outcomes.append("ok")
        except HfError as error:
            outcomes.append(error.message.partition(": ")[2])

    many(kind, 20, advance)
    assert sorted(outcomes) == ["ledger 100 is already ingested"] * 19 + ["ok"]


@pytest.mark.usefixtures("strangers")
def test_many_first_sets_at_once_make_one_table_and_one_row(kind, network):
    many(kind, 12, lambda shared, i: shared.set(LATEST, i))
    assert network.get(LATEST) in range(12)
    assert network.sql("select count(*) from @ingest_store") == [["1"]]


def test_set_min_waits_for_a_transaction_in_the_way_and_sees_what_it_wrote(db):
    with hf.Store(db.url()) as store, Network(store) as network, hf_network.Driver(db.url()) as other:
        network.set(LATEST, 1000)
        other("begin")
        other("move", LATEST, 1000, 300)
        call = Background(network.set_min, LATEST, 500)
        eventually(lambda: db.value("select count(*) from pg_locks where not granted"))
        other("commit")
        call.result()
        assert network.get(LATEST) == 300


# --- adopted tables -----------------------------------------------------------------------------------


@pytest.fixture
def adopted(db):
    """What an older deployment has: varchar, a column of its own, a row of its own."""
    db.sql("create schema ingest_testnet; create table ingest_testnet.ingest_store"
           " (key varchar(255) not null primary key, value varchar(255) not null, at timestamptz default now());"
           " insert into ingest_testnet.ingest_store values ('latestLedgerCursor', '41'), ('note', 'keep');"
           " grant usage on schema ingest_testnet to app; grant all on ingest_testnet.ingest_store to app")
    return db


def test_an_adopted_store_works_and_keeps_its_types(adopted):
    with hf.Store(adopted.url()) as store, Network(store) as network:
        network.advance(LATEST, 42)
        network.set("oldestLedgerCursor", 7)
        network.set_min("oldestLedgerCursor", 5)
        assert network.list() == {LATEST: 42, "oldestLedgerCursor": 5}
    types = adopted.sql("select data_type from information_schema.columns where table_schema = 'ingest_testnet'"
                        " order by ordinal_position")
    assert types == [("character varying",), ("character varying",), ("timestamp with time zone",)]
    assert adopted.value("select value from ingest_testnet.ingest_store where key = 'note'") == "keep"


def test_an_adopted_store_needs_no_right_to_create(adopted):
    adopted.sql("revoke create on database " + adopted.name + " from app; revoke create on schema public from public")
    with hf.Store(adopted.url()) as store, Network(store) as network:
        network.set(LATEST, 50)
        assert network.get(LATEST) == 50


def test_null_in_an_adopted_store_is_an_error_that_names_the_row(adopted):
    adopted.sql("alter table ingest_testnet.ingest_store alter value drop not null;"
                " update ingest_testnet.ingest_store set value = null where key = 'latestLedgerCursor'")
    with hf.Store(adopted.url()) as store, Network(store) as network:
        error = refusal(network.get, LATEST)
        assert error.status == Status.BAD_DATA and "holds NULL" in error.message and LATEST in error.message


def test_a_store_without_a_key_is_refused_with_the_remedy(adopted):
    adopted.sql("alter table ingest_testnet.ingest_store drop constraint ingest_store_pkey")
    with hf.Store(adopted.url()) as store, Network(store) as network:
        error = refusal(network.set, LATEST, 42)
        assert error.status == Status.CONFIG and "no unique key" in error.message
        assert error.hint == 'ALTER TABLE "ingest_testnet".ingest_store ADD PRIMARY KEY (key)'
        adopted.sql(error.hint)
        network.set(LATEST, 42)


def test_a_key_that_is_there_twice_is_an_error(adopted):
    adopted.sql("alter table ingest_testnet.ingest_store drop constraint ingest_store_pkey;"
                " insert into ingest_testnet.ingest_store values ('latestLedgerCursor', '41')")
    with hf.Store(adopted.url()) as store, Network(store) as network:
        for change in (lambda: network.get(LATEST), lambda: network.advance(LATEST, 42)):
            error = refusal(change)
            assert error.status == Status.BAD_DATA and "more than once" in error.message
    assert adopted.value("select count(*) from ingest_testnet.ingest_store where value = '41'") == 2


# --- the command --------------------------------------------------------------------------------------


@pytest.fixture
def cursor(holdfast, recorded):
    return lambda word, *rest: holdfast("cursor", word, "--network", "testnet", *rest, "--url", recorded.url)


def test_get_prints_the_bare_number(cursor):
    assert cursor("set", LATEST, 2**33).out == ""
    result = cursor("get", LATEST)
    assert (result.code, result.out, result.err) == (0, "8589934592\n", "")


def test_get_of_a_missing_cursor_exits_with_1(cursor):
    result = cursor("get", LATEST)
    assert (result.code, result.out) == (1, "")
    assert "not initialised" in result.err


@pytest.mark.parametrize("operation, stored, argument, result, after", vectors())
def test_the_command_holds_the_vectors(cursor, operation, stored, argument, result, after):
    if stored != "(none)":
        assert cursor("set", LATEST, stored).code == 0
    swap = re.match(r"(swap) (\d+)→(\d+)", operation)
    done = cursor(*([swap[1], LATEST, swap[2], swap[3]] if swap else [operation, LATEST, argument]))
    assert done.code == (0 if result == "ok" else 1)
    if result != "ok":
        assert result.removeprefix("refused").removeprefix(": ") in done.err
    assert cursor("get", LATEST).out.strip() == ("" if after == "(none)" else after)


def test_the_command_lists_cursors(cursor):
    cursor("set", "b", 20)
    cursor("set", "a", 1)
    lines = cursor("list").out.splitlines()
    assert [line.split() for line in lines] == [["NAME", "VALUE"], ["a", "1"], ["b", "20"]]


def test_the_command_speaks_json(cursor):
    assert json.loads(cursor("set", "a", 5, "--json").out) == {"network": "testnet", "name": "a", "value": 5}
    assert json.loads(cursor("set-min", "a", 9, "--json").out)["value"] == 5
    assert json.loads(cursor("list", "--json").out) == {"network": "testnet", "cursors": [{"name": "a", "value": 5}]}
    refused = cursor("advance", "a", 9, "--json")
    assert (refused.code, refused.out) == (1, "")
    assert json.loads(refused.err)["error"]["status"] == "HF_CURSOR"


def test_another_schema(cursor):
    cursor("set", "a", 5, "--schema", "elsewhere")
    assert cursor("get", "a").code == 1
    assert cursor("get", "a", "--schema", "elsewhere").out == "5\n"


@pytest.mark.parametrize("words", [
    [], ["get"], ["get", "a", "b"], ["set", "a"], ["set", "a", "x"], ["set", "a", "1.5"], ["set", "a", ""],
    ["set", "a", "9223372036854775808"], ["swap", "a", "1"], ["list", "a"], ["put", "a", "1"], ["set", "", "1"]])
def test_wrong_words_are_a_usage_error(holdfast, words):
    result = holdfast("cursor", *words, "--network", "testnet")
    assert (result.code, result.out) == (cli.EXIT_USAGE, ""), result


def test_the_network_must_be_named(holdfast):
    result = holdfast("cursor", "list")
    assert result.code == cli.EXIT_USAGE and "--network" in result.err


def test_a_network_with_a_name_that_cannot_be(holdfast):
    result = holdfast("cursor", "list", "--network", "Test Net")
    assert result.code == cli.EXIT_USAGE and "Test Net" in result.err


def test_garbage_exits_as_bad_data(cursor, recorded):
    cursor("set", LATEST, 5)
    with recorded.open() as store, Network(store) as network:
        network.sql("update @ingest_store set value = 'x'")
    result = cursor("get", LATEST)
    assert result.code == cli.EXIT_DATA and "holds 'x'" in result.err

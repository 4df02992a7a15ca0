"""holdfast.key(): the same keys as the library's, computed by the server."""

import json
import random

import pytest

import hf
from sql_session import sessions

DERIVATIONS = {d.name.lower().replace("_", "-"): d for d in hf.Derivation}
COMPUTED = [name for name in DERIVATIONS if name != "minted"]
BOUNDS = [(0x01, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)]  # by size in UTF-8
EDGES = ["", "a", "x" * 9, "x" * 10, "é" * 9, "deadbeefdeadbeef", "deadbeef,deadbeef", "DEADBEEF-deadbeef", "-5", "007",
         "+1", " 1", "-", "0x1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "0" * 31 + "1",
         "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
LONG = ["x" * hf.LABEL_MAX, "🔒" * (hf.LABEL_MAX // 4), "x" * (hf.LABEL_MAX + 1)]


def random_labels(count):
    chance = random.Random(5)
    for _ in range(count):
        size = chance.choice([1, 3, 8, 9, 12, 13, 20, 55, 56, 57, 63, 64, 65, 119, 120])  # around the blocks of hashes
        yield "".join(chr(chance.randrange(*chance.choice(BOUNDS))) for _ in range(size))


def vectors(file):
    header, *lines = (hf.ROOT / "tests/vectors" / file).read_text().splitlines()
    names = header.split("\t")[1:]
    for line in lines:
        label, *keys = line.split("\t")
        for name, key in zip(names, keys):
            yield json.loads(label), name, key


def as_vector(name, key):
    """Both numbers of a pair, as the vectors have them."""
    if name not in ("with-advisory-lock", "distributedlock-ascii"):
        return str(key)
    return ",".join(str(int.from_bytes(half, "big", signed=True))
                    for half in (key.to_bytes(8, "big", signed=True)[:4], key.to_bytes(8, "big", signed=True)[4:]))


def of_library(label, name):
    try:
        return hf.derive(label, DERIVATIONS[name])
    except hf.HfError as error:
        assert error.status is hf.Status.INVALID
        return None


@pytest.fixture
def of_server(recorded_db):
    with sessions(recorded_db, 1) as (session,):
        session("""create function pg_temp.key_or_null(label text, derivation text) returns bigint language plpgsql as
                   $$ begin return holdfast.key(label, derivation);
                      exception when invalid_parameter_value then return null; end $$""")
        yield lambda label, name: session.value("select pg_temp.key_or_null(%s, %s)", label, name)


@pytest.mark.parametrize("file", ["keys.tsv", "library_keys.tsv"])
def test_known_answers(of_server, file):
    for label, name, key in vectors(file):
        found = of_server(label, name)
        assert ("-" if found is None else as_vector(name, found)) == key, (label, name)


@pytest.mark.parametrize("name", DERIVATIONS)
def test_key_is_that_of_the_library_or_both_refuse(of_server, name):
    for label in [*EDGES, *LONG, *random_labels(100)]:
        assert of_server(label, name) == of_library(label, name), (name, label[:40], len(label))


def test_default_is_sha256(recorded_db):
    assert recorded_db.value("select holdfast.key('a')") == hf.derive("a")


def test_what_has_no_key_is_refused_with_the_reason(recorded_db):
    with sessions(recorded_db, 1) as (session,):
        unknown = session.refused("22023", "select holdfast.key('a', 'SHA256')")
        assert all(name in unknown for name in COMPUTED)
        assert "table_id" in session.refused("22023", "select holdfast.key('a.b', 'minted')")
        assert "65536" in session.refused("22023", "select holdfast.key(repeat('x', 65537))")
        session.refused("22004", "select holdfast.key(null)")
        session.refused("22004", "select holdfast.key('a', null)")


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_keys_do_not_depend_on_the_encoding_of_the_database(pg, encoding):
    """Those of PostgreSQL's own functions would, and are refused."""
    db = pg.create_database(f"encoding '{encoding}' locale 'C' template template0")
    hf.install(db.url())
    call = "select holdfast.key(convert_from(%s, 'UTF8'), %s)"
    with sessions(db, 1) as (session,):
        for label in ("12345", "longer than nine", "予約" if encoding == "EUC_JP" else "Zürich"):
            for name in COMPUTED:
                key = of_library(label, name)
                if name.startswith("hashtext") and not label.isascii() and encoding != "SQL_ASCII":
                    assert encoding in session.refused("22023", call, label.encode(), name)
                elif key is not None:
                    assert session.value(call, label.encode(), name) == key, (label, name)
    db.drop()


def test_collations_do_not_change_a_key(recorded_db):
    recorded_db.sql("create collation public.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    for name in COMPUTED:
        if of_library("Zürich-12345", name) is not None:
            assert recorded_db.value('select holdfast.key(%s collate public.loose, %s collate public.loose)',
                                     "Zürich-12345", name) == of_library("Zürich-12345", name)


def test_keys_can_be_indexed_and_computed_in_parallel(recorded_db):
    assert recorded_db.sql("select provolatile, proparallel from pg_proc where proname = 'key'"
                           " and pronamespace = 'holdfast'::regnamespace") == [("i", "s")]
    recorded_db.sql("create table public.jobs (label text);"
                    "create index on public.jobs (holdfast.key(label, 'fnv1a32-js'))")


def test_no_function_of_the_schema_can_be_led_astray_by_a_search_path(recorded_db):
    loose = recorded_db.sql("select proname from pg_proc where pronamespace = 'holdfast'::regnamespace"
                            " and not exists (select from unnest(proconfig) c where c like 'search_path=%%')", ())
    assert loose == [("schema_version",)]
    recorded_db.sql("create function public.sha256(bytea) returns bytea language sql as $$ select '\\x00'::bytea $$;"
                    "create function public.pg_advisory_xact_lock(bigint) returns void language sql as ''")
    with sessions(recorded_db, 1, user="postgres") as (session,):
        session("set search_path = public, pg_catalog; begin")
        assert session.value("select holdfast.key('a')") == hf.derive("a")
        session("select holdfast.serialize('a')")
        assert recorded_db.holders(hf.derive("a")) == [session.pid]
        session("commit")

"""`holdfast key`: the same numbers as the vectors and as a live server."""

import contextlib
import json
import random

import pytest

import hf
from cli import EXIT_DATA, EXIT_USAGE

VECTORS = hf.ROOT / "tests/vectors/keys.tsv"
DERIVATIONS = ["sha256", "fnv1a64", "fnv1a32", "fnv1a32-js", "hashtext", "hashtextextended"]


def vectors():
    lines = VECTORS.read_text().splitlines()
    names = lines[0].split("\t")[1:]
    for line in lines[1:]:
        label, *keys = line.split("\t")
        yield json.loads(label), dict(zip(names, map(int, keys)))


def random_labels(count, seed=1):
    chance = random.Random(seed)
    alphabet = "abcXYZ 0:/-_äß東予🔒é\\'\"%"
    for _ in range(count):
        yield "".join(chance.choices(alphabet, k=chance.choice([1, 2, 3, 7, 11, 12, 13, 24, 25, 100, 999])))


@pytest.mark.parametrize("derivation", DERIVATIONS)
def test_keys_equal_the_vectors(holdfast, derivation):
    expected = [(label, keys[derivation]) for label, keys in vectors() if label]
    done = holdfast("key", "--as", derivation, *[label for label, _ in expected])
    assert [int(line) for line in done.out.splitlines()] == [key for _, key in expected]
    for label, keys in vectors():
        assert hf.derive(label, hf.Derivation[derivation.upper().replace("-", "_")]) == keys[derivation]


def test_keys_of_libraries_equal_the_vectors(holdfast):
    lines = (hf.ROOT / "tests/vectors/library_keys.tsv").read_text().splitlines()
    for column, derivation in enumerate(lines[0].split("\t")[1:], 1):
        wanted = [(json.loads(line.split("\t")[0]), line.split("\t")[column]) for line in lines[1:]]
        wanted = [(label, key) for label, key in wanted if label and key != "-"]
        done = holdfast("key", "--as", derivation, *[label for label, _ in wanted])
        assert done.out.splitlines() == [key for _, key in wanted]


@pytest.mark.parametrize("derivation, label", [
    ("distributedlock-ascii", "ten-letters"), ("distributedlock-ascii", "ä"), ("distributedlock-hash", "short"),
    ("distributedlock-hash", "deadbeefdeadbeef"), ("distributedlock-hash", "deadbeef,deadbeef")])
def test_what_distributedlock_takes_in_the_other_way_is_refused(holdfast, derivation, label):
    done = holdfast("key", "--as", derivation, label)
    assert (done.code, done.out) == (EXIT_USAGE, "") and "use " in done.err


@pytest.mark.parametrize("derivation, call", [
    ("md5", "('x' || left(md5(%s), 16))::bit(64)::bigint"),
    ("hashtext", "hashtext(%s)::bigint"),
    ("hashtextextended", "hashtextextended(%s, 0)"),
    ("sha256", "('x' || left(encode(sha256(convert_to(%s, 'UTF8')), 'hex'), 16))::bit(64)::bigint"),
])
def test_keys_equal_the_live_servers(holdfast, db, derivation, call):
    labels = list(random_labels(500))
    with contextlib.closing(db.connect()) as connection, connection.cursor() as cursor:
        def of_server(label):
            cursor.execute(f"select {call}", (label,))
            return cursor.fetchone()[0]

        expected = [of_server(label) for label in labels]
    done = holdfast("key", "--as", derivation, "--", *labels)
    assert [int(line) for line in done.out.splitlines()] == expected


def test_bare_number_and_nothing_else(holdfast):
    done = holdfast("key", "--as", "sha256", "a")
    assert (done.code, done.out, done.err) == (0, "-3848465438864589366\n", "")


def test_table_shows_every_derivation(holdfast):
    done = holdfast("key", "foobar")
    assert done.code == 0
    for derivation, key in vectors_of("foobar").items():
        assert any(derivation in line.split() and str(key) in line for line in done.out.splitlines())


def vectors_of(wanted):
    return next(keys for label, keys in vectors() if label == wanted)


@pytest.mark.parametrize("label", ["foobar", "Zürich", "quote'd", 'double"', "back\\slash", "emoji:🔒"])
def test_json_is_valid_and_its_sql_takes_the_lock(holdfast, db, label):
    done = holdfast("key", "--json", label)
    keys = json.loads(done.out)["keys"]
    assert {entry["derivation"] for entry in keys} >= set(DERIVATIONS)
    with contextlib.closing(db.connect()) as connection, connection.cursor() as cursor:
        for entry in keys:
            if entry["key"] is None:
                continue
            assert entry["label"] == label
            assert entry["key"] % 2**64 == entry["classid"] << 32 | entry["objid"]
            cursor.execute(entry["sql"])
            (_, _, classid, objid, objsubid), = db.advisory_locks()
            assert (classid, objid, objsubid) == (entry["classid"], entry["objid"], 2 if entry["pair"] else 1)
            cursor.execute("select pg_advisory_unlock_all()")


def test_decode_goes_back(holdfast):
    chance = random.Random(2)
    for key in [0, -1, 2**63 - 1, -(2**63)] + [chance.randrange(-(2**63), 2**63) for _ in range(20)]:
        classid, objid = key % 2**64 >> 32, key % 2**32
        assert holdfast("key", "--decode", classid, objid).out == f"{key}\n"


def test_decode_is_what_pg_locks_shows(holdfast, db):
    with hf.Store(db.url()) as store:
        lock = store.acquire("nightly")
        (_, _, classid, objid, _), = db.advisory_locks()
        assert int(holdfast("key", "--decode", classid, objid).out) == lock.key


@pytest.mark.parametrize("arguments", [
    ["--decode", "1"], ["--decode", "1", "2", "3"], ["--decode", "-1", "2"],
    ["--decode", "4294967296", "0"], ["--decode", "x", "0"], [], [""], ["--as", "nonsense", "a"],
    ["--as", "fixed", "12x"], ["--as", "minted", "a"], ["x" * 65537],
    ["nightly\n"], ["--as", "sha256", "nightly\x07"]])
def test_bad_input_is_refused(holdfast, arguments):
    done = holdfast("key", *arguments)
    assert done.code in (EXIT_USAGE, EXIT_DATA)
    assert done.out == ""
    assert done.err.startswith("error: ") and "\nhint: " in done.err


def test_invalid_utf8_has_no_javascript_key(holdfast):
    done = holdfast("key", "--as", "fnv1a32-js", b"\xff\xfe")
    assert done.code in (EXIT_USAGE, EXIT_DATA)
    assert "UTF-8" in done.err
    assert holdfast("key", "--as", "fnv1a64", b"\xff\xfe").code == 0
    shown = holdfast("key", b"\xff\xfe")
    assert shown.code == 0 and "sha256" in shown.out


def test_key_needs_no_store(holdfast):
    done = holdfast("key", "--as", "sha256", "a", env={"HOLDFAST_URL": "postgresql://127.0.0.1:1/x"})
    assert done.code == 0

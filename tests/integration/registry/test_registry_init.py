"""holdfast registry init: a first registry, and the schema that editors read."""

import contextlib
import json

import jsonschema
import pytest
import yaml

import hf
import hf_registry
from cli import EXIT_CONFIG, EXIT_USAGE

SCHEMA = json.loads((hf.ROOT / "contrib/schema/locks.schema.json").read_text())
SOURCE = """
def work(cur, tenant):
    cur.execute("SELECT pg_advisory_xact_lock(hashtext('booking:' || %s))", (tenant,))
    cur.execute("SELECT pg_advisory_lock(42424242)")
    cur.execute("SELECT pg_try_advisory_lock(7, 12)")
    cur.execute("SELECT pg_advisory_lock(%s)", (compute(),))
    cur.execute("SELECT pg_advisory_lock(9, hashtext('job:' || %s))", (tenant,))
"""


def validate(registry):
    jsonschema.Draft202012Validator(SCHEMA).validate(registry)


@pytest.fixture
def init(holdfast, tmp_path):
    """The locks of a first registry by name, after every check that there is."""

    def run(*arguments, url=None):
        command = holdfast.at(url) if url else holdfast
        done = command("registry", "init", *arguments, cwd=tmp_path, env={"HOLDFAST_REGISTRY": ""})
        assert done.code == 0, done
        run.text, run.err = done.out, done.err
        registry = yaml.safe_load(done.out)
        validate(registry)
        (tmp_path / "first.yaml").write_text(done.out)
        checked = holdfast("registry", "check", "--json", "first.yaml", cwd=tmp_path)
        assert json.loads(checked.out)["counts"]["errors"] == 0
        return {lock["name"]: lock for lock in registry["locks"]}

    return run


def test_the_source_gives_its_locks_and_tells_what_it_does_not(init, tmp_path, holdfast):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/work.py").write_text(SOURCE)
    (tmp_path / "src/other.py").write_text('cur.execute("SELECT pg_advisory_lock(42424242)")\n')
    locks = init("src")
    assert {name: lock["key"] for name, lock in locks.items()} == {
        "booking": {"pattern": "booking:{a}", "as": "hashtext"},
        "lock-42424242": {"fixed": 42424242}, "lock-7-12": {"pair": [7, 12]}}
    assert locks["booking"]["lifetime"] == "transaction"
    assert sorted(locks["lock-42424242"]["source"]) == ["src/other.py", "src/work.py"]
    assert "2 places of the source are not in the registry" in init.err
    assert "src/work.py:6" in init.text and "src/work.py:7" in init.text
    uses = json.loads(holdfast("registry", "lint", "--list", "--json", "--registry", "first.yaml", "src",
                               cwd=tmp_path).out)["uses"]
    assert {use["line"] for use in uses if use["outcome"] == "registered"} == {1, 3, 4, 5}


def test_the_store_gives_what_is_held_and_recorded(init, recorded):
    with recorded.open() as store:
        store.acquire("Report:nightly")
        store.acquire(42424242)
        store.acquire("holdfast:append:4711")  # nobody's to register
        locks = init("--store", url=recorded.url)
    assert locks["report-nightly"]["key"] == {"pattern": "Report:nightly", "as": "sha256"}
    assert {"fixed": 42424242} in [lock["key"] for lock in locks.values()]
    assert len(locks) == 2


def test_strangers_are_named_by_the_programs_that_are_known(init, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(72707369), pg_advisory_lock(1, -2)")
        locks = init("--store", url=db.url())
    assert locks["prisma-migrate"]["key"] == {"fixed": 72707369}
    assert {"pair": [1, -2]} in [lock["key"] for lock in locks.values()]


def test_a_registry_that_is_there_is_not_replaced(holdfast, tmp_path):
    (tmp_path / "a.py").write_text(SOURCE)
    assert holdfast("registry", "init", "-o", "locks.yaml", "a.py", cwd=tmp_path).code == 0
    before = (tmp_path / "locks.yaml").read_text()
    assert before.startswith("# yaml-language-server: $schema=/")
    done = holdfast("registry", "init", "-o", "locks.yaml", "a.py", cwd=tmp_path)
    assert done.code != 0 and "not replaced" in done.err
    assert (tmp_path / "locks.yaml").read_text() == before


def test_nothing_to_look_at_is_wrong_usage(holdfast, tmp_path):
    assert holdfast("registry", "init", cwd=tmp_path).code == EXIT_USAGE


# --- the schema -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((hf.ROOT / "tests/registry").glob("*.yaml")), ids=lambda path: path.name)
def test_samples_fit_the_schema(path):
    validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("lock", [
    "name: a, key: { fixed: 42424242 }, kye: 1", "name: a", "key: { fixed: 5 }", "name: 'a b', key: { fixed: 5 }",
    "name: a, key: { fixed: 5, pair: [1, 2] }", "name: a, key: { pair: [1] }", "name: a, key: { pair: [1, 4294967296] }",
    "name: a, key: { pattern: x, as: md4 }", "name: a, key: { fixed: '5' }", "name: a, key: { fixed: 5 }, lifetime: ever",
    "name: a, key: { fixed: 5 }, expected: 0",
])
def test_what_the_schema_refuses_check_refuses(holdfast, tmp_path, lock):
    path = hf_registry.write(tmp_path, [lock])
    with pytest.raises(jsonschema.ValidationError):
        validate(yaml.safe_load(path.read_text()))
    assert holdfast("registry", "check", path).code in (1, EXIT_CONFIG)


def test_the_schema_has_every_derivation(holdfast):
    names = SCHEMA["$defs"]["key"]["oneOf"][2]["properties"]["as"]["enum"]
    keys = json.loads(holdfast("key", "--json", "abc", env={"HOLDFAST_REGISTRY": ""}).out)["keys"]
    assert set(names) == {key["derivation"] for key in keys} | {"minted"}


def test_a_label_whose_hash_the_source_does_not_tell_is_marked(init, tmp_path):
    (tmp_path / "a.py").write_text(
        'cur.execute("SELECT pg_advisory_lock(%s)", [int(hashlib.md5(b"nightly").hexdigest()[:15], 16)])\n')
    init("a.py")
    assert "a.py:1: pg_advisory_lock; check 'as': the source does not tell how it is hashed" in init.text

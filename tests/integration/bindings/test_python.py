"""The suite of the Python binding, in a process of its own for each kind of store."""

import os
import subprocess
import sys

import pytest

import cli
import hf
from hf_tx import transact

BINDING = hf.ROOT / "bindings" / "python"
EXAMPLES = hf.ROOT / "examples" / "python"
KINDS = ["local", "pg15", "pg18", "pgbouncer-transaction"]


def environment(**variables):
    given = {**os.environ, "PYTHONPATH": str(BINDING), "PYTHONFAULTHANDLER": "1",
             "HOLDFAST_LIBRARY": hf.built("src/lib/libholdfast.so"), "HOLDFAST_COMMAND": cli.program(), **variables}
    return {name: value for name, value in given.items() if not name.startswith("PYTEST_")}


def run(*command, **variables):
    done = subprocess.run(command, cwd=BINDING, env=environment(**variables), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{done.stdout[-20000:]}\n{done.stderr[-5000:]}"


@pytest.fixture(params=KINDS)
def place(request):
    """What the suite must know of its store. PostgreSQL 15 is used plain, the others have the schema."""
    if request.param == "local":
        yield {}
        return
    server = request.getfixturevalue("pg18" if request.param == "pg18" else "pg15")
    database = server.create_database()
    variables = {"HOLDFAST_TEST_URL": database.url(), "HOLDFAST_TEST_ADMIN": database.url(user="postgres")}
    if request.param != "pg15":
        hf.install(database.url())
    if request.param == "pgbouncer-transaction":
        pooler = request.getfixturevalue("transaction_pooler")
        variables.update(HOLDFAST_TEST_URL=pooler.url(database.name), HOLDFAST_TEST_POOLED="1")
    yield variables
    database.drop(expect_no_locks=False)


@pytest.mark.timeout(300)
def test_the_suite_passes(place):
    run(sys.executable, "-m", "pytest", "tests", "-q", **place)


def test_the_types_are_right():
    run("mypy", "--strict", "--python-version", "3.9", "--cache-dir", str(hf.BUILD / "mypy"), "holdfast",
        *map(str, EXAMPLES.glob("*.py")))


# --- the examples ---------------------------------------------------------------------------------------


@pytest.fixture(name="start")
def made_start(recorded, tmp_path):
    """Starts an example; its environment names the store."""
    def start(name, *args):
        example = EXAMPLES / f"{name}.py"
        assert len(example.read_text(encoding="utf-8").splitlines()) < 60
        return subprocess.Popen([sys.executable, example, *map(str, args)], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment(HOLDFAST_URL=recorded.url))

    return start


def outputs(*running):
    return [(*process.communicate(timeout=60), process.returncode) for process in running]


def test_transfers_lose_nothing(start, recorded):
    tables = ("create table account (name text primary key, balance int not null)",
              "insert into account values ('alice', 100), ('bob', 0)")
    with recorded.open() as store:
        transact(store, None, lambda tx: [tx.query(statement) for statement in tables])
        ends = outputs(*[start("transfer_funds", "alice", "bob", 5) for _ in range(4)],
                       *[start("transfer_funds", "bob", "alice", 0) for _ in range(2)])
        assert ends == [("", "", 0)] * 6
        assert outputs(start("transfer_funds", "alice", "bob", 81)) == [("", "alice cannot pay 81\n", 1)]
        balances = transact(store, None, lambda tx: list(tx.query("select name, balance from account order by 1")))
        assert [tuple(row) for row in balances] == [("alice", "80"), ("bob", "20")]


def test_blocks_of_a_shared_table_do_not_mix(start, tmp_path):
    ends = outputs(*[start("table_insert_lock", "events", "events.txt", *(f"{writer}{batch}" for batch in range(3)))
                     for writer in "abc"])
    assert ends == [("", "", 0)] * 3
    lines = [line.split() for line in (tmp_path / "events.txt").read_text().splitlines()]
    assert len({key for key, _ in lines}) == 1 and len(lines) == 9 * 50
    blocks = [row.split("-")[0] for _, row in lines]
    assert sum(1 for one, two in zip(blocks, blocks[1:]) if one != two) == 8

"""The suite of the Python binding, in a process of its own for each kind of store."""

import os
import subprocess
import sys

import pytest

import cli
import hf

BINDING = hf.ROOT / "bindings" / "python"
KINDS = ["local", "pg15", "pg18", "pgbouncer-transaction"]


def run(*command, **variables):
    environment = {**os.environ, "PYTHONPATH": str(BINDING), "PYTHONFAULTHANDLER": "1",
                   "HOLDFAST_LIBRARY": hf.built("src/lib/libholdfast.so"),
                   "HOLDFAST_COMMAND": cli.program(), **variables}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=BINDING, env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, f"{done.stdout[-20000:]}\n{done.stderr[-5000:]}"
    return done.stdout


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


def test_the_suite_passes(place):
    run(sys.executable, "-m", "pytest", "tests", "-q", **place)


def test_the_types_are_right():
    run("mypy", "--strict", "--python-version", "3.9", "--cache-dir", str(hf.BUILD / "mypy"), "holdfast")

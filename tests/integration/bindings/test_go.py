"""The Go binding: its own suite, in its own runner, on each kind of store."""

import subprocess

import pytest

import hf
from go_tool import BINDING, NO_SANITIZER, go
from stores import new_kind, new_tx_kind

pytestmark = [
    NO_SANITIZER,
    pytest.mark.xdist_group("go"),  # what one builds, the others use
    pytest.mark.timeout(600),  # building it for the first time builds Go's own packages, too
]


def run_suite(kind, tests, folder=BINDING):
    admin = "" if kind.local else kind.database.url(user="postgres")
    go("test", "-race", "-count=1", "-run", tests, ".", folder=folder, HOLDFAST_TEST_URL=kind.url,
       HOLDFAST_TEST_ADMIN_URL=admin)


@pytest.mark.parametrize("name, schema", [("local", False), ("pg15", False), ("pg18", True)])
def test_its_suite_passes(request, tmp_path, name, schema):
    with new_kind(request, tmp_path, name, schema) as kind:
        run_suite(kind, ".")


def test_its_transactions_pass_through_a_transaction_pooler(request, tmp_path):
    """Which refuses session locks, so the rest of the suite is not for it."""
    with new_tx_kind(request, tmp_path, "pgbouncer-transaction") as kind:
        run_suite(kind, "^TestTx")


@pytest.mark.parametrize("name", ["pg15", "pg18", "pgbouncer-transaction"])
def test_its_lock_on_transactions_of_database_sql(request, tmp_path, name):
    with new_tx_kind(request, tmp_path, name) as kind:
        run_suite(kind, ".", BINDING / "sqltest")


@pytest.mark.parametrize("name", ["pg15", "pg18"])
def test_its_lock_on_transactions_of_pgx(request, tmp_path, name):
    """Debian's pgx names its own packages by GOPATH: so is the binding, for once."""
    for package, folder in (("holdfast", BINDING), ("pgxtest", BINDING / "pgxtest")):
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / package).symlink_to(folder)
    with new_tx_kind(request, tmp_path, name) as kind:
        go("test", "-count=1", "pgxtest", folder=tmp_path, HOLDFAST_TEST_URL=kind.url, GO111MODULE="off", GOFLAGS="",
           GOPATH=f"{tmp_path}:/usr/share/gocode")
    assert subprocess.check_output(["gofmt", "-l", "."], cwd=BINDING / "pgxtest", text=True) == ""


@pytest.mark.parametrize("folder", ["bindings/go", "bindings/go/sqltest", "examples/go", "bench/languages/go",
                                    "tests/integration/bindings/holders/go"])
def test_it_is_vetted_and_formatted(folder):
    go("vet", "./...", folder=hf.ROOT / folder)
    assert subprocess.check_output(["gofmt", "-l", "."], cwd=hf.ROOT / folder, text=True) == ""

"""The Go binding: its own suite, in its own runner, on each kind of store."""

import os
import subprocess

import pytest

import cli
import hf
import sanitizers
from stores import new_kind, new_tx_kind

GO = hf.ROOT / "bindings/go"

pytestmark = [
    pytest.mark.skipif(sanitizers.KIND in ("address", "thread"),
                       reason="a program of Go does not load a library that is built with a sanitizer"),
    pytest.mark.xdist_group("go"),  # what one builds, the others use
    pytest.mark.timeout(600),  # building it for the first time builds Go's own packages, too
]


def environment(**more):
    build = hf.BUILD
    return {**os.environ, "PKG_CONFIG_PATH": str(build / "meson-uninstalled"), "LD_LIBRARY_PATH": str(build / "src/lib"),
            "GOCACHE": str(build / "go"), "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local",
            "HOLDFAST_COMMAND": str(cli.program()), **more}


def go(*args, folder=GO, **env):
    done = subprocess.run(["go", *map(str, args)], cwd=folder, env=environment(**env), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"go {' '.join(map(str, args))}\n{done.stdout}"
    return done.stdout


def run_suite(kind, tests):
    admin = "" if kind.local else kind.database.url(user="postgres")
    go("test", "-race", "-count=1", "-run", tests, ".", HOLDFAST_TEST_URL=kind.url, HOLDFAST_TEST_ADMIN_URL=admin)


@pytest.mark.parametrize("name, schema", [("local", False), ("pg15", False), ("pg18", True)])
def test_its_suite_passes(request, tmp_path, name, schema):
    with new_kind(request, tmp_path, name, schema) as kind:
        run_suite(kind, ".")


def test_its_transactions_pass_through_a_transaction_pooler(request, tmp_path):
    """Which refuses session locks, so the rest of the suite is not for it."""
    with new_tx_kind(request, tmp_path, "pgbouncer-transaction") as kind:
        run_suite(kind, "^TestTx")


@pytest.mark.parametrize("folder", ["bindings/go"])
def test_it_is_vetted_and_formatted(folder):
    go("vet", "./...", folder=hf.ROOT / folder)
    assert subprocess.check_output(["gofmt", "-l", "."], cwd=hf.ROOT / folder, text=True) == ""

"""The suite of the Node binding, in processes of its own for each kind of store, on the package as it is installed."""

import os
import shutil
import subprocess

import pytest

import cli
import hf
import sanitizers

BINDING = hf.ROOT / "bindings" / "node"
EXAMPLES = hf.ROOT / "examples"
MODULES = hf.ROOT / ".deps" / "node" / "node_modules"
KINDS = ["local", "pg15", "pg18", "pgbouncer-transaction"]

pytestmark = pytest.mark.skipif(bool(sanitizers.FLAGS), reason="Node has no runtime of a sanitizer")


@pytest.fixture(scope="session", name="project")
def made_project(tmp_path_factory):
    """The folder of a program that has installed the package, with the tests and the examples beside it."""
    assert MODULES.is_dir(), f"{MODULES} is missing; make deps installs it"
    folder = tmp_path_factory.mktemp("node")
    package = folder / "node_modules" / "holdfast"
    package.mkdir(parents=True)
    for module in MODULES.iterdir():
        if module.name != ".package-lock.json":
            (folder / "node_modules" / module.name).symlink_to(module)
    addon = subprocess.run(["node", "-p", "process.platform + '-' + process.arch"], check=True, capture_output=True,
                           text=True).stdout.strip()
    subprocess.run([BINDING / "build", package / "prebuilds" / addon / "holdfast.node"], check=True,
                   env={**os.environ, "CFLAGS": "-Werror"})
    shutil.copy(BINDING / "package.json", package)
    shutil.copytree(BINDING / "lib", package / "lib")
    shutil.copytree(BINDING / "test", folder / "test")
    for example in EXAMPLES.glob("*.ts"):
        shutil.copy(example, folder)
    return folder


def run(folder, *command, **variables):
    environment = {**os.environ, "HOLDFAST_LIBRARY": hf.built("src/lib/libholdfast.so"), "HOLDFAST_COMMAND": cli.program(),
                   **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, f"{done.stdout[-20000:]}\n{done.stderr[-5000:]}"
    return done.stdout


@pytest.fixture(params=KINDS, name="place")
def made_place(request):
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
    database.drop()


def test_the_suite_passes(project, place):
    tests = sorted(str(path) for path in (project / "test").glob("*.test.js"))
    run(project, "node", "--test", *tests, **place)

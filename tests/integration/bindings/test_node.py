"""The suite of the Node binding, in processes of its own for each kind of store, on the package as it is installed."""

import os
import shutil
import subprocess

import pytest

import cli
import hf
import sanitizers
from hf_tx import transact

BINDING = hf.ROOT / "bindings" / "node"
EXAMPLES = hf.ROOT / "examples" / "node"
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
    # Its client is one in WebAssembly; naming engines keeps the program from fetching some.
    subprocess.run(["node", folder / "node_modules/prisma/build/index.js", "generate", "--schema", "test/schema.prisma"],
                   cwd=folder, check=True, capture_output=True,
                   env={**os.environ, "PRISMA_SCHEMA_ENGINE_BINARY": "/bin/true", "PRISMA_QUERY_ENGINE_LIBRARY": "/bin/true",
                        "CHECKPOINT_DISABLE": "1"})
    for example in EXAMPLES.glob("*.ts"):
        assert len(example.read_text(encoding="utf-8").splitlines()) < 60
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


@pytest.fixture(scope="session", name="compiled")
def made_compiled(project):
    """The TypeScript beside the package, checked strictly."""
    run(project, "node_modules/typescript/bin/tsc", "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes",
        "--target", "es2022", "--lib", "es2022,esnext.disposable", "--module", "node16", "--types", "node", "--outDir", "out",
        "test/types.ts", *(path.name for path in project.glob("*.ts")))
    return project / "out"


def test_the_types_are_right_and_a_lock_ends_with_its_scope(compiled, tmp_path):
    [program] = compiled.rglob("types.js")
    assert run(compiled, "node", program, f"local:{tmp_path / 'state'}") == "released\n"


# --- the examples ---------------------------------------------------------------------------------------


@pytest.fixture(name="start")
def made_start(compiled, recorded):
    """Starts an example; its environment names the store."""
    tables = ("create table booking (tenant text, day text, room text)", "create table session (expires int not null)",
              "insert into session values (1), (2), (200)")
    with recorded.open() as store:
        transact(store, None, lambda tx: [tx.query(statement) for statement in tables])

    def start(name, *args):
        return subprocess.Popen(["node", compiled / f"{name}.js", *map(str, args)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={**os.environ, "HOLDFAST_URL": recorded.url,
                                                             "HOLDFAST_LIBRARY": hf.built("src/lib/libholdfast.so")})

    return start


def outputs(*running):
    return [(process.communicate(timeout=60), process.returncode) for process in running]


def test_a_room_is_booked_once_a_day(start):
    ends = outputs(*[start("booking", "tenant-7", "2026-01-15", "blue") for _ in range(4)],
                   start("booking", "tenant-7", "2026-01-16", "blue"))
    assert sorted(ends[:4]) == [(("booked\n", ""), 0)] + [(("taken\n", ""), 1)] * 3
    assert ends[4] == (("booked\n", ""), 0)


def test_the_scheduler_cleans_in_one_instance(start, recorded):
    with recorded.open() as store, store.acquire("Cleanup:sessions"):
        [((out, err), code)] = outputs(start("cleanup_scheduler", 3600, 1))
        assert (code, err) == (0, "") and out.startswith("skipped: "), out
    ends = outputs(*[start("cleanup_scheduler", 3600, 1) for _ in range(3)])
    assert all(code == 0 for _, code in ends), ends
    assert sum(out.startswith("cleaned 2 with token ") for (out, _), _ in ends) == 1, ends

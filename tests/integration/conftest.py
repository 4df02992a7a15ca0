import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import cli
import cluster
import hf
import sanitizers
import servers
from counting import COUNTER
from stores import StoreKind, new_kind, new_tx_kind

pytest_plugins = ["appending_beside", "appending", "ingesting"]  # their fixtures

if "PYTEST_XDIST_WORKER" in os.environ:
    sanitizers.keep_from_servers(hf.BUILD)

OTHERS = servers.OTHERS
SERVERS = OTHERS or ["pg15", "pg18"]

FOREIGN_SETTINGS = ("PG", "HOLDFAST_", "DATABASE_URL", "XDG_STATE_HOME", "NOTIFY_SOCKET", "MAKE", "MFLAGS")


@pytest.fixture(scope="session", autouse=True)
def clean_environment():
    for name in [n for n in os.environ if n.startswith(FOREIGN_SETTINGS) and n != "HOLDFAST_BUILD"]:
        del os.environ[name]
    os.environ["NO_COLOR"] = "1"
    servers.hear_ignored_signals()


def pytest_sessionstart(session):
    """Commands look for a registry in the folders above their own: hundreds of tests would meet a stranger's."""
    strays = [folder / "locks.yaml" for folder in pathlib.Path(tempfile.gettempdir(), "x").parents
              if (folder / "locks.yaml").exists()]
    if strays:
        pytest.exit(f"{strays[0]} is in the way: a registry above the folders of the tests; move it away", 2)


# --- logs of the servers, on failure ----------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    item.log_marks = {server: server.log_size() for server in servers.running}
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in servers.running:
            text = server.log(getattr(item, "log_marks", {}).get(server, 0))
            if text:
                report.sections.append((f"log of {server.name}", text[-20000:]))


# --- servers ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def template15():
    template = servers.Postgres.template(servers.postgres15_home(), "pg15")
    yield template
    template.close()


@pytest.fixture(scope="session")
def template18():
    home = servers.postgres18_home()
    template = servers.Postgres.template(home, "pg18")
    yield template
    template.close()
    shutil.rmtree(home.parent, ignore_errors=True)


@pytest.fixture(scope="session")
def pg15(template15):
    with servers.Postgres.copy_of(template15, "pg15") as server:
        yield server.start()


@pytest.fixture(scope="session")
def pg18(template18):
    with servers.Postgres.copy_of(template18, "pg18") as server:
        yield server.start()


@pytest.fixture(scope="session", name="other_templates")
def made_other_templates():
    """By version: those that only `make test-versions` asks for."""
    made = {}
    yield made
    for template in made.values():
        template.close()
        shutil.rmtree(template.home.parent, ignore_errors=True)


def other_version(version):
    """The fixtures of a server of that version."""
    @pytest.fixture(scope="session", name=f"template{version}")
    def template(other_templates):
        home = servers.npm_home(f".deps/postgres-{version}", f"pg{version}", "make test-versions")
        other_templates[version] = servers.Postgres.template(home, f"pg{version}")
        return other_templates[version]

    @pytest.fixture(scope="session", name=f"pg{version}")
    def server(request):
        with servers.Postgres.copy_of(request.getfixturevalue(f"template{version}"), f"pg{version}") as made:
            yield made.start()

    return template, server


template14, pg14 = other_version("14")
template16, pg16 = other_version("16")
template17, pg17 = other_version("17")


@pytest.fixture(scope="session")
def session_pooler(pg15):
    with servers.PgBouncer(pg15, "session") as pooler:
        yield pooler.start()


@pytest.fixture(scope="session")
def transaction_pooler(pg15):
    with servers.PgBouncer(pg15, "transaction", pool_size=5) as pooler:
        yield pooler.start()


@pytest.fixture(params=SERVERS)
def pg(request):
    """Each PostgreSQL in turn, shared by all tests: nothing may be changed that others could see."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def db(pg):
    database = pg.create_database()
    yield database
    database.drop()


@pytest.fixture
def db15(pg15):
    database = pg15.create_database()
    yield database
    database.drop()


@pytest.fixture
def recorded_db(db):
    """With the schema."""
    hf.install(db.url())
    return db


@pytest.fixture
def conn(db):
    """A connection of libpq, to be lent."""
    with hf.PGconn(db.url()) as opened:
        yield opened


@pytest.fixture(params=[name.removeprefix("pg") for name in SERVERS])
def own_pg(request):
    """A server that the test may crash, freeze and reconfigure."""
    template = request.getfixturevalue(f"template{request.param}")
    with servers.Postgres.copy_of(template, f"own-pg{request.param}") as server:
        yield server.start()


@pytest.fixture
def own_db(own_pg):
    return own_pg.create_database()


@pytest.fixture(scope="session")
def started_cluster():
    with cluster.Cluster(synchronous=True) as started:
        yield started


@pytest.fixture
def patroni(started_cluster):
    """
    Two servers under Patroni, the standby synchronous, for a test to break. It takes seconds to
    start and to mend: the tests that use it are one xdist_group, so that one process does it.
    """
    return started_cluster.heal()


@pytest.fixture
def patroni_db(patroni):
    return patroni.create_database()


# --- stores of every kind -----------------------------------------------------------------------------

# PostgreSQL 15 is used plain, 18 with the schema, so that each path of the library has its turn.
STORE_KINDS = OTHERS or ["local", "pg15", "pg18", "pgbouncer-session"]


@pytest.fixture(params=STORE_KINDS)
def kind(request, tmp_path):
    name = request.param
    if name == "local":
        yield StoreKind(name, f"local:{tmp_path / 'state'}")
        return
    server = request.getfixturevalue("pg15" if name == "pgbouncer-session" else name)
    database = server.create_database()
    if name == "pgbouncer-session":
        pooler = request.getfixturevalue("session_pooler")
        yield StoreKind(name, pooler.url(database.name), database, session_pool=True)
    else:
        if name != "pg15":
            hf.install(database.url())
        yield StoreKind(name, database.url(), database)
    database.drop()


@pytest.fixture
def store_url(kind):
    return kind.url


@pytest.fixture
def store(kind):
    with kind.open() as opened:
        yield opened


@pytest.fixture
def other(kind):
    """A second store in the same process."""
    with kind.open() as opened:
        yield opened


@pytest.fixture
def peer(kind):
    """Another process with a store of its own."""
    with kind.peer() as process:
        yield process


@pytest.fixture(params=OTHERS or ["local", "pg15", "pg18"])
def recorded(request, tmp_path):
    """Stores with tokens, holders and labels on record."""
    with new_kind(request, tmp_path, request.param, schema=True) as made:
        yield made


# Where a transaction contract runs: PostgreSQL 15 plain, 18 and the pooler's 15 with the schema.
TX_SERVERS = OTHERS or ["pg15", "pg18", "pgbouncer-transaction"]


@pytest.fixture(params=OTHERS or ["local", *TX_SERVERS])
def tx_kind(request, tmp_path):
    """
    Has one table: counter (id int primary key, n int not null), with the row (1, 0).
    """
    with new_tx_kind(request, tmp_path, request.param) as made:
        yield made


@pytest.fixture(params=TX_SERVERS)
def tx_server(request, tmp_path):
    """The same without the local store."""
    with new_tx_kind(request, tmp_path, request.param) as made:
        yield made


@pytest.fixture(scope="session")
def tx_databases(request):
    """
    By kind, made once and emptied for each test, which takes a tenth of the time. They go with their
    servers, which may have started later than this and so end before it.
    """
    made = {}

    def empty(name):
        if name not in made:
            server = "pg15" if name == "pgbouncer-transaction" else name
            made[name] = request.getfixturevalue(server).create_database()
            if name != "pg15":
                hf.install(made[name].url())
        database = made[name]
        database.sql(f"alter database {database.name} reset all")
        database.sql("drop schema public cascade; drop schema if exists side cascade;"
                     " create schema public authorization app")
        if name != "pg15":
            database.sql("truncate holdfast.commits")
        for statement in COUNTER:
            database.sql(statement, user="app")
        return database

    return empty


# --- the command --------------------------------------------------------------------------------------


@pytest.fixture
def holdfast(tmp_path):
    """Runs the command with a state folder of its own unless a url is given."""
    command = cli.Holdfast(state_home=tmp_path / "xdg")
    yield command
    command.end_all()


@pytest.fixture(scope="session")
def unprivileged():
    """
    The prefix that runs a command without root's right to read and write everything. It stays our
    own user, who can reach the build also under a folder that is closed to others, such as /root.
    """
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] if os.geteuid() == 0 else []


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Builds a program of programs/ against the library and gives its path."""
    folder, done = tmp_path_factory.mktemp("programs"), {}

    def build(source):
        if source not in done:
            program = folder / pathlib.Path(source).stem
            library = pathlib.Path(hf.lib()._name)
            subprocess.run(
                ["c++" if source.endswith(".cpp") else "cc", "-g", "-pthread", *sanitizers.FLAGS,
                 f"-I{hf.ROOT / 'include'}", hf.PROGRAMS / source, library,
                 f"-Wl,-rpath,{library.parent}", "-o", program], check=True)
            done[source] = str(program)
        return done[source]

    return build

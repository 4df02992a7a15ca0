"""
The suite of the Python binding, for one store:

    HOLDFAST_TEST_URL       the store; without one, a local folder
    HOLDFAST_TEST_ADMIN     on PostgreSQL: the database itself, as a user who may end sessions
    HOLDFAST_TEST_POOLED    the url leads through a pooler in transaction mode: no session locks
    HOLDFAST_COMMAND        the holdfast command
    HOLDFAST_LIBRARY        libholdfast
"""

import os
import pathlib
import subprocess
import time
import uuid

import psycopg2
import pytest

import holdfast

URL = os.environ.get("HOLDFAST_TEST_URL")
ADMIN = os.environ.get("HOLDFAST_TEST_ADMIN")
POOLED = bool(os.environ.get("HOLDFAST_TEST_POOLED"))
COMMAND = os.environ.get("HOLDFAST_COMMAND", "holdfast")
NOT_ACQUIRED = 75

session_locks = pytest.mark.skipif(POOLED, reason="a pooler in transaction mode has no session locks")
on_server = pytest.mark.skipif(not ADMIN, reason="about a server")


def eventually(predicate, timeout=20.0):
    deadline = time.monotonic() + timeout
    while not predicate():
        assert time.monotonic() < deadline, f"not within {timeout} s: {predicate}"
        time.sleep(0.005)


class Command:
    """The C command on the same store."""

    def __init__(self, url):
        self.url = url

    def _arguments(self, label):
        return [COMMAND, "run", "-n", "--url", self.url, "--unregistered", label, "--"]

    def can_lock(self, label):
        done = subprocess.run(self._arguments(label) + ["true"], capture_output=True, text=True, timeout=30)
        assert done.returncode in (0, NOT_ACQUIRED), done
        return done.returncode == 0

    def hold(self, label):
        """Until its input is closed."""
        return Holder(self._arguments(label) + ["sh", "-c", "echo held; read -r line"])


class Holder:
    def __init__(self, arguments):
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "held\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(30)


class World:
    """What tests do to a store from outside."""

    def __init__(self, url):
        self.url = url
        self.local = url.startswith("local:")

    def sql(self, query, *values):
        connection = psycopg2.connect(ADMIN)
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(query, values)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def advisory_locks(self):
        return self.sql("select pid from pg_locks where locktype = 'advisory' and granted and database ="
                        " (select oid from pg_database where datname = current_database())")

    def lose(self, lock):
        """Takes the lock from whoever has it."""
        if self.local:
            for path in (pathlib.Path(self.url[len("local:"):]) / "locks").iterdir():
                path.unlink()
            return
        classid, objid = holdfast.split(lock.key)
        self.sql("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'"
                 " and classid = %s and objid = %s and granted", classid, objid)


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    return URL or f"local:{tmp_path_factory.mktemp('state')}"


@pytest.fixture(scope="session")
def world(url):
    return World(url)


@pytest.fixture
def open_store(url):
    """Opens one more store of the same kind, closed at the end of the test."""
    opened = []

    def open_one(**options):
        opened.append(holdfast.Store(url, **{"ping_interval": 0.2, **options}))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def other(open_store):
    return open_store()


@pytest.fixture
def command(url):
    return Command(url)


@pytest.fixture
def label():
    """Of this test alone."""
    return f"Test:{uuid.uuid4()}"


@pytest.fixture
def records(store):
    if not store.has_records:
        pytest.skip("the store has no records")


@pytest.fixture
def table(store):
    """A table with the row (1, 0), by its name."""
    name = "t" + uuid.uuid4().hex[:12]
    store.transact(lambda tx: tx.query(f"create table {name} (id int primary key, n int not null)"))
    store.transact(lambda tx: tx.query(f"insert into {name} values (1, 0)"))
    return name


def handles():
    """Descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def threads():
    """Of this process, the library's too."""
    return len(os.listdir("/proc/self/task"))


def memory():
    """Resident memory of this process in kB, or 0 with a sanitizer, which keeps what was freed."""
    if os.environ.get("SAN"):
        return 0
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

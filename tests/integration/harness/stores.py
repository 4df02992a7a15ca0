"""Where a contract is tested: a store of one kind, and what tests do to it from outside."""

import contextlib
import pathlib

import hf
import hf_tx
from awaiting import eventually
from counting import COUNTER
from peer import Peer


class StoreKind:
    """Where a contract test runs: a url, the options that it needs, and its database if any."""

    def __init__(self, kind, url, database=None, **options):
        self.kind = kind
        self.url = url
        self.database = database
        self.options = options

    @property
    def local(self):
        return self.database is None

    @property
    def records(self):
        return self.kind not in ("pg15", "pgbouncer-session")

    def open(self, **options):
        return hf.Store(self.url, **{**self.options, **options})

    def peer(self, **options):
        return Peer(self.url, **{**self.options, **options})

    def kill9(self, running):
        """The only command here; a server ends what it was asked for, and only then looks for its client."""
        running.kill9()
        if self.database:
            eventually(lambda: not self.database.sessions(), what="no session of the dead is left")

    def lose(self, key):
        """Takes the lock from whoever has it, by other means than the library's."""
        if not self.local:
            for pid in self.database.holders(key):
                self.database.sql("select pg_terminate_backend(%s)", pid)
            return
        for path in (pathlib.Path(self.url.removeprefix("local:")) / "locks").iterdir():
            path.unlink()


def recorded_database(server):
    """With the schema. It is installed once on a server, and then copied, which takes a fraction of the time."""
    template = getattr(server, "recorded_template", None)
    if template is None:
        template = server.recorded_template = server.create_database()
        hf.install(template.url())
        eventually(lambda: not server.sql("select from pg_catalog.pg_stat_activity where datname = %s", template.name),
                   what="nobody is connected to the template")
    return server.create_database(f"template {template.name}")


@contextlib.contextmanager
def new_kind(request, tmp_path, name, schema=False):
    """For a fixture: a folder, or a database of the server with that name, empty or with the schema."""
    if name == "local":
        yield StoreKind(name, f"local:{tmp_path / 'state'}")
        return
    server = request.getfixturevalue(name)
    database = recorded_database(server) if schema else server.create_database()
    yield StoreKind(name, database.url(), database)
    database.drop()


@contextlib.contextmanager
def new_tx_kind(request, tmp_path, name):
    """For a fixture: a store with the table of counting.py; one database serves all tests of a kind."""
    if name == "local":
        kind = StoreKind(name, f"local:{tmp_path / 'state'}")
        with kind.open() as store:
            hf_tx.transact(store, None, lambda tx: [tx.query(statement) for statement in COUNTER])
        yield kind
        return
    database = request.getfixturevalue("tx_databases")(name)
    if name == "pgbouncer-transaction":
        pooler = request.getfixturevalue("transaction_pooler")
        yield StoreKind(name, pooler.url(database.name), database)
    else:
        yield StoreKind(name, database.url(), database)
    eventually(lambda: not database.advisory_locks(), what="no advisory lock is left after the test")

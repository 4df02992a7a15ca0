"""A network on each store in turn, with the commands that work on it."""

import contextlib
import json

import pytest

from awaiting import eventually
from ingesting_beside import THEIRS
from ledgers import Network, chain, write
from stores import new_kind
from strangers import run

PARTITION = 1000
LOCK_KEY = -8622139916493065622  # of wallet-backend-ingest-testnet


class World:
    """world.ingest(1, 20) puts ledgers there; world("retention", …) runs a command on the network."""

    def __init__(self, kind, holdfast, folder):
        self.kind = kind
        self.command = holdfast.at(kind.url)
        self.folder = folder
        self.network = Network(kind)
        self.is_beside = False  # a second ingester is there, too
        self._lives = []

    @property
    def local(self):
        return self.kind.local

    def words(self, *words, network="testnet"):
        """The options of the network stand behind the words of the command."""
        names = [word for word in words if not str(word).startswith("-")][:2]
        count = 2 if len(names) > 1 and words[1] == names[1] else 1
        return [*words[:count], "--network", network, *words[count:]]

    def __call__(self, *words, network="testnet", **how):
        return self.command(*self.words(*words, network=network), **how)

    def start(self, *words, network="testnet", **how):
        self._lives.append(self.command.start(*self.words(*words, network=network), **how))
        return self._lives[-1]

    def json(self, *words, **how):
        """What a command that succeeds says."""
        done = self(*words, "--json", **how)
        assert done.code == 0, done
        return json.loads(done.out)

    def source(self, ledgers, name="ledgers.ndjson", mode="w"):
        return write(self.folder / name, ledgers, mode)

    def ingest(self, first, last, *options, code=0, network="testnet", **how):
        return self.ingest_these(chain(first, last, **how), *options, code=code, network=network)

    def ingest_these(self, ledgers, *options, code=0, network="testnet"):
        words = ["ingest", "--source", self.source(ledgers), "--partition-ledgers", PARTITION, *options]
        second = None
        if self.is_beside and code == 0 and all(live.process.poll() is not None for live in self._lives):
            words.append("--standby")  # whoever comes first, the other finds nothing left to do
            second = self.command.start(*self.words(*words, network=network))
        done = self(*words, network=network)
        assert done.code == code, done
        assert not second or second.wait(60) == 0, second.describe()
        return done

    def follow(self, ledgers=(), *options):
        """A live ingester that has the lock and waits for lines in more.ndjson."""
        live = self.start("ingest", "--source", self.source(ledgers, "more.ndjson"), "--follow",
                          "--partition-ledgers", PARTITION, *options)
        eventually(lambda: self.json("ingest", "status")["networks"][0]["ingester"], 10, "somebody ingests")
        return live

    def add(self, *ledgers):
        """More of them for follow()."""
        self.source(ledgers, "more.ndjson", "a")

    @contextlib.contextmanager
    def open_reader(self, statement):
        """A transaction that stays open after its statement; PostgreSQL only."""
        with contextlib.closing(self.kind.database.connect("postgres", autocommit=False)) as connection:
            run(connection, statement)
            yield connection

    def own_row(self, name):
        """A row of Holdfast's own in ingest_store, or None."""
        rows = self.network.sql("select value from @ingest_store where key = %s", f"holdfast.{name}")
        return int(rows[0][0]) if rows else None

    @property
    def floor(self):
        return self.own_row("retentionFloor")

    def state(self):
        """All that a command may change, to see that it did not."""
        return (self.network.coverage(),
                sorted(self.network.sql("select key, value from @ingest_store where key <> %s", THEIRS)),
                self.network.sequences(), self.network.sql("select to_id from @transactions order by to_id"))

    def assert_coverage_is_true(self):
        """Whatever died: each covered ledger is there with all its transactions."""
        whole = {row[0] for row in self.network.sql(
            "select l.sequence from @ledgers l left join @transactions t on t.ledger_number = l.sequence"
            " group by l.sequence, l.transaction_count having count(t.to_id) = l.transaction_count")}
        claimed = {n for lo, hi in self.network.coverage() for n in range(lo, hi + 1)}
        assert claimed <= whole, sorted(claimed - whole)


@pytest.fixture(params=["local", "pg15", "pg18"])
def world(request, tmp_path, holdfast):
    with new_kind(request, tmp_path, request.param) as kind:
        yield World(kind, holdfast, tmp_path)
        holdfast.end_all()


def on_servers(function):
    """Runs the test on PostgreSQL only: it is about locks and types that SQLite does not have."""
    return pytest.mark.parametrize("world", ["pg15", "pg18"], indirect=True)(function)

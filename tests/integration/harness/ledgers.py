"""Ledgers as NDJSON, made by the tests, and what a store has of them."""

import contextlib
import hashlib
import json
import sqlite3

from ingesting_beside import THEIRS

EPOCH = 1_700_000_000


def digest(*parts):
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


def ledger(sequence, transactions=2, chain="main", previous=None, **changes):
    made = {
        "sequence": sequence,
        "hash": digest(chain, sequence),
        "previous_hash": previous or digest(chain, sequence - 1),
        "closed_at": EPOCH + 5 * sequence,
        "transactions": transactions if isinstance(transactions, list) else [
            {"hash": digest(chain, sequence, order), "order": order, "status": "SUCCESS", "fee": 100 + order,
             "memo": f"ü {sequence} \\ \t \"{order}\""}
            for order in range(1, transactions + 1)],
    }
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


def chain(first, last, **how):
    return [ledger(sequence, **how) for sequence in range(first, last + 1)]


def write(path, ledgers, mode="w"):
    """Lines may also be given as text or bytes."""
    with open(path, mode + "b") as file:
        for one in ledgers:
            line = one if isinstance(one, (str, bytes)) else json.dumps(one, ensure_ascii=False)
            file.write((line.encode() if isinstance(line, str) else line) + b"\n")
    return path


class Network:
    """A network's tables on either store, read by other means than the library's."""

    def __init__(self, kind, name="testnet", schema=None):
        self.kind = kind
        self.name = name
        self.schema = schema or f"ingest_{name}"

    def sql(self, statement, *values):
        if not self.kind.local:
            return self.kind.database.sql(statement.replace("@", f'"{self.schema}".'), *values)
        path = self.kind.url.removeprefix("local:") + f"/{self.schema}.db"
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as connection, connection:
            return connection.execute(statement.replace("@", "").replace("%s", "?"), values).fetchall()

    def exists(self):
        try:
            self.sql("select 1 from @ingest_store")
        except Exception:
            return False
        return True

    def cursors(self):
        return {key: int(value) for key, value in self.sql("select key, value from @ingest_store")
                if not key.startswith(("holdfast.", THEIRS))}

    @property
    def latest(self):
        return self.cursors().get("latestLedgerCursor") if self.exists() else None

    @property
    def oldest(self):
        return self.cursors().get("oldestLedgerCursor")

    def coverage(self):
        return sorted(tuple(row) for row in self.sql("select lo, hi from @ingest_coverage"))

    def sequences(self):
        return [row[0] for row in self.sql("select sequence from @ledgers order by sequence")]

    def quarantined(self):
        return [row[0] for row in self.sql("select sequence from @ingest_quarantine order by sequence")]

    def assert_holds(self, ledgers):
        """Exactly these, whole, and byte for byte."""
        wanted = {one["sequence"]: one for one in ledgers}
        rows = self.sql("select sequence, hash, transaction_count from @ledgers order by sequence")
        assert [row[0] for row in rows] == sorted(wanted)
        for sequence, hash, count in rows:
            assert hash == wanted[sequence]["hash"]
            assert count == len(wanted[sequence]["transactions"])
        stored = self.sql("select to_id, ledger_number, application_order, hash, cast(body as text)"
                          " from @transactions order by to_id")
        expected = [
            (one["sequence"] << 32 | tx["order"] << 12, one["sequence"], tx["order"], tx["hash"], tx)
            for one in sorted(ledgers, key=lambda one: one["sequence"]) for tx in one["transactions"]]
        assert len(stored) == len(expected)
        for row, wanted_row in zip(stored, expected):
            assert tuple(row[:4]) == wanted_row[:4]
            assert json.loads(row[4]) == wanted_row[4]

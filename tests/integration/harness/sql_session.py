"""A session of somebody who has only SQL."""

import contextlib

import psycopg2
import pytest


class Session:
    """Statements that the client begins and ends itself, one simple query each."""

    def __init__(self, db, user="app"):
        self.connection = db.connect(user)
        self.pid = self.connection.info.backend_pid

    def __call__(self, statement, *args):
        """The rows, or None."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, args or None)
            return cursor.fetchall() if cursor.description else None

    def value(self, statement, *args):
        return self(statement, *args)[0][0]

    def refused(self, sqlstate, statement, *args):
        """The statement must fail so; what it says, with its hint. The transaction is rolled back."""
        with pytest.raises(psycopg2.Error) as raised:
            self(statement, *args)
        assert raised.value.pgcode == sqlstate, raised.value
        self("rollback")
        return f"{raised.value.diag.message_primary} {raised.value.diag.message_hint}"

    def close(self):
        """Ends a statement that still runs, which a failed test leaves behind: closing would wait for it."""
        self.connection.cancel()
        self.connection.close()


@contextlib.contextmanager
def sessions(db, count, user="app"):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Session(db, user))) for _ in range(count)]

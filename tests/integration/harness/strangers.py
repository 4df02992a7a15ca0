"""Sessions of PostgreSQL that know nothing of Holdfast."""

import contextlib
import threading


@contextlib.contextmanager
def sessions(database, count, **parameters):
    """Connections of strangers, which end whatever they do or wait for."""
    connections = [database.connect(**parameters) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            database.server.terminate(connection.info.backend_pid)
        for connection in connections:
            connection.close()


def run(connection, query, *args):
    with connection.cursor() as cursor:
        cursor.execute(query, args or None)
        return cursor.fetchall() if cursor.description else None


def begin(connection, query, *args):
    """Runs it in a thread; what becomes of it does not matter."""
    def body():
        with contextlib.suppress(Exception):
            run(connection, query, *args)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread

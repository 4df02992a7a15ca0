"""Takes `SELECT pg_advisory_lock(5)` apart."""
from django_pglocks import advisory_lock

REPORT = 42424242


def report(cur):
    """
    Like SELECT pg_advisory_lock(6), but better.
    """
    cur.execute("SELECT pg_advisory_lock(%s)", [REPORT])
    work(cur)
    cur.execute("SELECT pg_advisory_unlock(%s)", [REPORT])
    if not cur.fetchone()[0]:
        raise RuntimeError("the lock was lost")


def registered(tenant):
    with advisory_lock(f"django:{tenant}"):
        with advisory_lock("django:7"):
            pass


def accepted(cur, table):
    cur.execute("SELECT pg_advisory_xact_lock(hashtext('cleanup:' || %s))", [table])


def read_again(cur):
    cur.execute("SELECT balance FROM accounts WHERE id = 1")
    cur.execute("SELECT pg_advisory_xact_lock(51515151)")
    cur.execute("SELECT balance FROM accounts WHERE id = 1")
    cur.execute("UPDATE accounts SET balance = 0")

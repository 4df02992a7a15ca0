"""SELECT pg_advisory_lock(5) in a docstring is only talk."""
from django_pglocks import advisory_lock
from sqlalchemy import func, select, text

STRAY = 8675309
REPORT = 42424242


def stray(session):
    session.execute(select(func.pg_advisory_xact_lock(STRAY)))  # expect: unregistered-id
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": STRAY})  # expect: unregistered-id


def formatted(cur, table):
    cur.execute("SELECT pg_advisory_xact_lock(%s)", (STRAY,))  # expect: unregistered-id
    cur.execute("SELECT pg_advisory_xact_lock(%d)" % STRAY)  # expect: unregistered-id
    cur.execute(f"SELECT pg_advisory_xact_lock({STRAY})")  # expect: unregistered-id
    cur.execute(f"SELECT pg_advisory_xact_lock(hashtext('sweep:{table}'))")  # expect: hashtext, unregistered-label


def unlocked(cur):
    cur.execute("SELECT pg_advisory_lock(%s)", [REPORT])
    cur.execute("SELECT pg_advisory_unlock(%s)", [REPORT])  # expect: unlock-result-ignored


def trap(engine):
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as conn:
        conn.execute(text("SELECT pg_advisory_xact_lock(51515151)"))  # expect: snapshot-trap


def read_first(cur):
    cur.execute("SELECT balance FROM accounts WHERE id = 1")
    cur.execute("SELECT pg_advisory_xact_lock(51515151)")  # expect: lock-after-read
    cur.execute("""
        UPDATE accounts SET balance = 0
    """)


def generic():
    with advisory_lock("lock"):  # expect: generic-label, unregistered-label
        pass


def derived_otherwise(cur):
    cur.execute("SELECT pg_advisory_lock(hashtextextended('import:7', 0))")  # expect: wrong-derivation
    cur.execute("SELECT pg_advisory_unlock_all()")  # expect: unlock-all

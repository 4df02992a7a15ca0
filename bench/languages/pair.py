"""pair.py URL ROUNDS PAIRS: seconds for so many acquires and releases, by the binding and by psycopg2."""

import sys
import time

import holdfast
import psycopg2


def binding(store, pairs):
    for _ in range(pairs):
        store.lock("bench/languages", wait=0).release()


def by_hand(cursor, pairs):
    key = holdfast.key("bench/languages, by hand")
    for _ in range(pairs):
        cursor.execute("SELECT pg_try_advisory_lock(%s)", (key,))
        assert cursor.fetchone() == (True,)
        cursor.execute("SELECT pg_advisory_unlock(%s)", (key,))
        assert cursor.fetchone() == (True,)


def seconds(run, on, pairs):
    began = time.perf_counter()
    run(on, pairs)
    return time.perf_counter() - began


def main(url, rounds, pairs):
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with holdfast.Store(url) as store, connection.cursor() as cursor:
        binding(store, pairs)
        for _ in range(rounds):
            print(seconds(binding, store, pairs), seconds(by_hand, cursor, pairs), flush=True)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

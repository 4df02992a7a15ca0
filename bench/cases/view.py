"""What the collector behind `holdfast serve` and `holdfast top` costs.

How long a refresh takes with 100 and with 10 000 locks, half of them recorded and half a stranger's, with 40 waiters; the
collector's share of a core at one refresh in two seconds; its memory over an hour's worth of refreshes.
"""

import contextlib
import os
import pathlib
import threading
import time

from figures import figure
from world import install_schema, medians

import hf  # of the tests' harness, which world has put on the path
from awaiting import eventually
from viewing import Viewer

SETTINGS = "max_locks_per_transaction = 512\n"
WAITERS = 40


@contextlib.contextmanager
def locks(database, count):
    """Half of them Holdfast's, of 50 to a set, half a stranger's; waiters for one of each kind."""
    with hf.Store(database.url(), max_keys=20000) as store, contextlib.ExitStack() as stack:
        ours = [f"bench:{i}" for i in range(count // 2)]
        for at in range(0, len(ours), 50):
            store.acquire(ours[at:at + 50])
        stranger = stack.enter_context(contextlib.closing(database.connect()))
        with stranger.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(g) from generate_series(1, %s) g", (count // 2,))
        for _ in range(WAITERS):
            threading.Thread(target=wait, args=(database,), daemon=True).start()
        eventually(lambda: database.value("select count(*) from holdfast.holders") >= count // 2, 60)
        eventually(lambda: len(database.waiters(1)) == WAITERS, 60)
        yield
    eventually(lambda: not database.waiters(1), 60)


def wait(database):
    with contextlib.closing(database.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(1)")


def seconds_used(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise RuntimeError("no VmRSS")


def refresh_times(world, database, count):
    with locks(database, count), Viewer(database.url(), refresh=10) as viewer:
        taken = viewer.ask("spin", 3 * world.repetitions)
        seen = viewer.next()
        assert seen.held >= count and seen.waiting >= WAITERS, (seen.held, seen.waiting)
    (by_repetition,) = medians([(ms / 1000,) for ms in taken], world.repetitions)
    yield figure(f"refresh, {count} locks", by_repetition, "s", 0.1 if count == 10000 else None)


def share_of_core(world, database):
    with locks(database, 100), Viewer(database.url(), refresh=2000) as viewer:
        viewer.next()
        before, began = seconds_used(viewer.process.pid), time.monotonic()
        time.sleep(world.size(40, 4))
        share = (seconds_used(viewer.process.pid) - before) / (time.monotonic() - began)
    yield figure("of a core, 100 locks, a refresh in 2 s", [100 * share], "%", 1)


def memory(world, database):
    refreshes = world.size(1800, 50)
    with locks(database, 100), Viewer(database.url(), refresh=10) as viewer:
        viewer.ask("spin", refreshes // 10)
        before = resident_kb(viewer.process.pid)
        viewer.ask("spin", refreshes)
        after = resident_kb(viewer.process.pid)
    yield figure(f"memory gained in {refreshes} refreshes", [(after - before) / 1024], "MB", 0.25)


def view(world):
    with world.server(SETTINGS) as server:
        for bench, *more in ((refresh_times, 100), (refresh_times, 10000), (share_of_core,), (memory,)):
            yield from bench(world, install_schema(server.create_database()), *more)


BENCHES = {"view": view}

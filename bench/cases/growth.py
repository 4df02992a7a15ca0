"""How the cost grows: with locks held, with those who wait, with clients, ledgers and shared tables. A plot each."""

from figures import MORE, Plot, faster, figure, slower
from world import BUILD, install_schema, output

# Room for a thousand sessions, and for ten thousand locks of each side in a quarter of the lock table.
SETTINGS = "max_connections = 1200\nmax_locks_per_transaction = 64\n"


def held(world):
    """An acquire and release while the session holds others."""
    counts, pairs = world.size([1, 10, 100, 1000, 10000], [1, 1000]), world.size(500, 50)
    series = {"Holdfast, plain": [], "Holdfast, records": [], "bare libpq": []}
    with world.server(SETTINGS) as server:
        url = install_schema(server.create_database()).url()
        for count in counts:
            for records in ("plain", "records"):
                samples = world.program("uncontended", url, records, 3 * world.repetitions, pairs, count)
                series[f"Holdfast, {records}"].append((count, [1e6 * s / pairs for s in samples.library]))
                yield faster(f"{count} held, {records}", *samples.rates(pairs))
            series["bare libpq"].append((count, [1e6 * s / pairs for s in samples.control]))
    yield Plot("held", "Acquire and release of one lock while others are held", "locks held by the session", "µs per pair", series)


# --- those who wait, and clients ------------------------------------------------------------------

KINDS = {"one": "Holdfast, threads of one process", "each": "Holdfast, a process each", "bare": "bare libpq"}
HOLD_MS = 1500  # longer than a wait stays in the server's queue
MOST_EACH = 100  # of those with a store of their own, each of which has two connections


def crowd(url, kind, *arguments):
    return [float(word) for word in output(BUILD / "bench/bench_crowd", url, kind, *arguments).split()]


def waiters(world):
    """The label is released once all wait; then each has it in turn."""
    counts = world.size([1, 10, 100, 1000], [1, 10])
    drains, orders, connections, snapshots = ({kind: [] for kind in KINDS.values()} for _ in range(4))
    with world.server(SETTINGS) as server:
        url = server.create_database().url()
        for count in counts:
            kinds = [kind for kind in KINDS if kind != "each" or count <= MOST_EACH]
            runs = [{kind: crowd(url, kind, "drain", count, HOLD_MS) for kind in kinds} for _ in world.repeated]
            for kind in kinds:
                columns = list(zip(*(run[kind] for run in runs)))
                for plot, column in zip((drains, orders, connections, snapshots), columns):
                    plot[KINDS[kind]].append((count, column))
                if kind != "bare":
                    case = f"{count} waiters, {KINDS[kind].partition(', ')[2]}"
                    yield slower(f"{case}, drained", columns[0], [run["bare"][0] for run in runs])
                    yield figure(f"{case}, served in order", columns[1], "share", better=MORE)
                    yield figure(f"{case}, connections", columns[2], "connections")
                    yield slower(f"{case}, oldest snapshot", columns[3], [run["bare"][3] for run in runs])
    x = "waiters for one label"
    yield Plot("waiters-drain", "From the release until the last waiter had the lock", x, "seconds", drains)
    yield Plot("waiters-order", "Pairs that were served in the order in which they came", x, "share", orders, log_y=False)
    yield Plot("waiters-connections", "Connections of those who wait", x, "connections", connections)
    yield Plot("waiters-xmin", f"Oldest snapshot while a lock is held for {HOLD_MS / 1000} s", x, "seconds", snapshots, log_y=False)


def clients(world):
    """Acquires and releases a second of many clients on few labels and on many."""
    counts, seconds = world.size([1, 4, 16, 64, 256], [1, 8]), world.size(0.5, 0.1)
    with world.server(SETTINGS) as server:
        url = server.create_database().url()
        for labels in world.size([1, 10, 1000], [1, 10]):
            series = {name: [] for name in KINDS.values()}
            for count in counts:
                rates = {kind: [] for kind in KINDS}
                for _ in world.repeated:
                    for kind in KINDS:
                        pairs, took = crowd(url, kind, "rate", count, seconds, labels)
                        rates[kind].append(pairs / took)
                for kind, name in KINDS.items():
                    series[name].append((count, rates[kind]))
                    if kind != "bare":
                        yield faster(f"{count} clients, {labels} labels, {name.partition(', ')[2]}", rates[kind], rates["bare"])
            yield Plot(f"clients-{labels}", f"Acquires and releases by clients on {labels} label{'s' if labels > 1 else ''}",
                       "clients", "pairs/s", series)


# --- ledgers and tables ---------------------------------------------------------------------------


def ledgers(world):
    """The gaps of so many ledgers with one transaction each; every thousandth place has one, up to a thousand."""
    series = {"Holdfast, from coverage": [], "window function over the transactions": []}
    with world.server() as server:
        url = server.create_database().url()
        for count in world.size([10**4, 10**5, 10**6, 10**7], [10**4, 10**5]):
            samples = world.program("gaps", url, "answer", world.repetitions, count, 1, min(count // 1000, 1000))
            for name, times in zip(series, (samples.library, samples.control)):
                series[name].append((count, [1e3 * seconds for seconds in times]))
            yield slower(f"gaps of {count} ledgers", samples.library, samples.control)
    yield Plot("ledgers", "Finding the gaps of a network", "ledgers", "milliseconds", series)


def tables(world):
    """A lock on one of so many shared tables, by name."""
    pairs = world.size(500, 50)
    series = {"Holdfast": [], "bare libpq: id from a table, then its lock": []}
    with world.server() as server:
        url = install_schema(server.create_database()).url()
        for count in world.size([1, 10, 100, 1000], [1, 10]):
            samples = world.program("tables", url, 3 * world.repetitions, pairs, count)
            for name, times in zip(series, (samples.library, samples.control)):
                series[name].append((count, [1e6 * seconds / pairs for seconds in times]))
            yield faster(f"{count} tables", *samples.rates(pairs))
    yield Plot("tables", "Lock and release of one of many shared tables", "shared tables", "µs per pair", series)


BENCHES = {"held": held, "waiters": waiters, "clients": clients, "ledgers": ledgers, "tables": tables}

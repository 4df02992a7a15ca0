"""Requests a second of `holdfast serve` on one core, with 1 000 locks held on PostgreSQL.

The server is pinned to one core and wrk to another, over 50 connections that stay open. A refresh every two seconds goes
on meanwhile, on the server's core. The locks have 50 names in the registry, then 1 000, which make the metrics long.
"""

import contextlib
import pathlib
import re
import tempfile

from figures import MORE, figure
from world import output

import cli  # of the tests' harness, which world has put on the path
import hf
import hf_registry
from awaiting import eventually
from serve import Serve

LOCKS = 1000
CASES = {
    50: [("/api/v1/locks", 5000), ("/metrics", 1000), ("/", None), ("/health", None)],
    1000: [("/api/v1/locks", 5000), ("/metrics", 1000)],
}


def write_registry(folder, names):
    path = folder / f"locks-{names}.yaml"
    lines = [f"  - {{ name: job-{i}, key: {{ pattern: 'job:{i}:{{number}}' }}, owner: team-{i % 10} }}"
             for i in range(names)]
    path.write_text("\n".join(["version: 1", "locks:", *lines]) + "\n")
    return path


def requests_a_second(url, encoding, seconds):
    said = output("taskset", "-c", "1", "wrk", "-t", "1", "-c", "50", "-d", f"{seconds}s",
                  "-H", f"Accept-Encoding: {encoding}", url)
    wrong = re.search(r"Non-2xx.*", said)
    if wrong:
        raise OSError(f"{url}: {wrong.group()}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))


def measure(world, server, names):
    for path, target in CASES[names]:
        for encoding in ("identity", "gzip"):
            size = len(server.get(path, headers={"Accept-Encoding": encoding}).body)
            rates = [requests_a_second(server.url.rstrip("/") + path, encoding, world.size(2, 1)) for _ in world.repeated]
            row = figure(f"{path}, {names} names, {encoding}", rates, "/s", target, MORE)
            row.ours = f"{size / 1000:.0f} kB"
            yield row


def serve(world):
    """The locks are held by another process's session, under the registry's names."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(world.server("max_locks_per_transaction = 512\n"))
        database = postgres.create_database()
        holdfast = cli.Holdfast(folder, database.url())
        stack.callback(holdfast.end_all)
        for names in CASES:
            path = write_registry(folder, names)
            with hf_registry.registry(path) as registry, \
                    hf.Store(database.url(), max_keys=LOCKS + 10, registry=registry) as store:
                store.init()
                store.acquire([f"job:{i % names}:{i}" for i in range(LOCKS)])
                server = Serve(holdfast, "--registry", path, refresh="2s", prefix=["taskset", "-c", "0"])
                eventually(lambda: server.api("locks")["page"]["total"] == LOCKS, 20)
                yield from measure(world, server, names)
                server.end()


BENCHES = {"serve": serve}

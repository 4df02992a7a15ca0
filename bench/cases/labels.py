"""Collisions in a list of labels, by each derivation, on one core, in seconds of the processor.

Beside it stands `sort -u` of the same list, the usual way to look for what is there twice, which finds equal labels
and no equal keys. Needs no server.
"""

import os
import pathlib
import random
import subprocess
import tempfile

from figures import figure, slower
from world import BUILD

DERIVATIONS = ["sha256", "fnv1a64", "fnv1a32", "fnv1a32-js", "hashtext", "hashtextextended"]
SORT = ["taskset", "-c", "0", "sort", "-u", "--parallel=1", "-S", "2G"]


def write_list(path, count):
    chance = random.Random(1)
    with open(path, "w") as file:
        for start in range(0, count, 100_000):
            file.writelines(f"Booking:{chance.randrange(10**6)}:2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}\n"
                            for _ in range(min(100_000, count - start)))


def write_registry(path, patterns):
    """Most patterns are there to be told apart; the last one has the labels of the list."""
    with open(path, "w") as file:
        file.write("version: 1\nlocks:\n")
        for i in range(patterns - 1):
            file.write(f'  - {{ name: lock-{i}, key: {{ pattern: "Book{i}:{{id}}", as: fnv1a32 }}, lifetime: session }}\n')
        file.write('  - { name: booking, key: { pattern: "Booking:{tenant}:{date}", as: sha256 },'
                   ' placeholders: { date: "\\\\d{4}-\\\\d{2}-\\\\d{2}" }, lifetime: session }\n')


def measure(command):
    """Seconds of the processor, and the most memory, in MB."""
    environment = {**os.environ, "LC_ALL": "C", "HOLDFAST_REGISTRY": ""}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise OSError(f"exit {process.returncode} from {' '.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def labels(world):
    with tempfile.TemporaryDirectory() as folder:
        path, registry = pathlib.Path(folder) / "labels", pathlib.Path(folder) / "locks.yaml"
        write_list(path, world.size(10_000_000, 20_000))
        write_registry(registry, 200)
        risk = ["taskset", "-c", "0", BUILD / "src/holdfast-registry", "risk", "--labels", path]
        cases = {derivation: [*risk, "--as", derivation] for derivation in DERIVATIONS}
        cases["registry of 200 patterns"] = [*risk, "--registry", registry]
        size = path.stat().st_size / 2**20
        took, control, memory = {case: [] for case in cases}, [], []
        for _ in world.repeated:
            control.append(measure([*SORT, path])[0])
            for case, command in cases.items():
                seconds, most = measure(command)
                took[case].append(seconds)
                memory.append(most - size)
    for case, seconds in took.items():
        yield figure(f"10 M labels, {case}", seconds, "s", 5)
        yield slower(f"10 M labels, {case}, against sort -u", seconds, control)
    yield figure("10 M labels, memory beside the list", [max(memory)], "MB", 300)


BENCHES = {"labels": labels}

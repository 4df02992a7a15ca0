"""A million lines through `holdfast registry lint`, beside `grep -rc advisory` on the same files, on one core.

Two trees: one lock in a hundred files, as programs are, and one in every file, where nothing can be passed over.
"""

import pathlib
import subprocess
import tempfile
import time

from figures import figure, slower
from world import BUILD

LINT = BUILD / "src/holdfast-registry"
SUFFIXES = ["py", "ts", "go", "java", "rb", "c"]
LINES = 200

FILLER = {
    "py": "    total_{n} = compute(first_{n}, 'second value {n}')  # keep the sum of both\n",
    "ts": "  const total{n} = await compute(first{n}, 'second value {n}'); // keep the sum of both\n",
    "go": "\ttotal{n} := compute(first{n}, \"second value {n}\") // keep the sum of both\n",
    "java": "        long total{n} = compute(first{n}, \"second value {n}\"); // keep the sum of both\n",
    "rb": "    total_{n} = compute(first_{n}, \"second value {n}\") # keep the sum of both\n",
    "c": "    long total_{n} = compute(first_{n}, \"second value {n}\"); /* keep the sum of both */\n",
}
LOCK = "db.query(\"SELECT pg_advisory_xact_lock({n})\")\n"


def make_tree(folder, files, every):
    for number in range(files):
        suffix = SUFFIXES[number % len(SUFFIXES)]
        lines = [FILLER[suffix].replace("{n}", str(number * LINES + line)) for line in range(LINES)]
        if number % every == 0:
            lines[LINES // 2] = LOCK.replace("{n}", str(1000000 + number))
        path = folder / f"part{number // 100:02}" / f"file{number:04}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(lines))


def seconds(*command):
    started = time.monotonic()
    # Not to /dev/null: grep would stop at the first match.
    subprocess.run(["taskset", "-c", "0", *command], capture_output=True, check=False)
    return time.monotonic() - started


def lint(world):
    for case, every in (("a lock in one file of 100", 100), ("a lock in every file", 1)):
        with tempfile.TemporaryDirectory() as folder:
            make_tree(pathlib.Path(folder), world.size(5000, 100), every)
            ours, control = zip(*((seconds(LINT, "lint", folder), seconds("grep", "-rc", "advisory", folder))
                                  for _ in world.repeated))
        yield figure(f"1 M lines, {case}", ours, "s", 5)
        yield slower(f"1 M lines, {case}, against grep", ours, control)


BENCHES = {"lint": lint}

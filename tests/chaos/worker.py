"""
One process that takes locks at random and writes down what it sees: worker.py FOLDER NAME SEED OPTIONS,
with OPTIONS as JSON: kind ("holdfast" or a control), url, tx_url if transactions go another way, and options
of the store. It ends when its standard input does.
"""

import json
import pathlib
import random
import subprocess
import sys
import threading
import traceback
import uuid

import cli
import clock
import controls
from history import Log

HERE = pathlib.Path(__file__).resolve().parent

LABELS = [f"job {number}" for number in range(4)]
LONG = "long job"
ASKED = "asked job"  # everybody asks for it, and yields
LEASE_MS = 6000
LATE = 1  # second
REGISTER = "register"  # what is written is fenced
EXITS = {0: "OK", 69: "UNREACHABLE", 75: "NOT_ACQUIRED", 79: "LOST", 143: "LOST"}
TX_MS = 15000
SLOTS = 3
THREADS = 2


class Worker:
    def __init__(self, folder, name, options):
        self.log = Log(folder, name)
        self.folder = folder
        self.name = name
        self.options = options
        self.stopping = threading.Event()
        self._guard = threading.Lock()
        self._number = 0

    def next_number(self):
        with self._guard:
            self._number += 1
            return self._number

    # --- locks -------------------------------------------------------------------------------------------

    def lock(self, store, op, labels, hold, wait=0, mode="exclusive", slots=0, private=False, write=False, **how):
        number, lost, over = self.next_number(), threading.Event(), threading.Event()

        def told(why):
            self.log.add("told", n=number, why=why)
            lost.set()
            over.set()

        self.log.add("ask", n=number, op=op, labels=labels, mode=mode, wait=wait)
        try:
            lock = store.take(labels, wait, mode, slots, private, told, **how, **({"asked": over.set} if how else {}))
        except controls.Refused as refused:
            self.log.add("refused", n=number, status=refused.status)
            return
        self.log.add("granted", n=number, token=lock.token, slot=lock.slot if slots else None)
        if write:
            self.log.add("wrote", n=number, status=store.write(labels[0], lock.token))
        over.wait(hold)
        if lost.is_set() and write:  # as one does who has not heard of it, when another has the lock by now
            self.stopping.wait(LATE)
            self.log.add("wrote", n=number, status=store.write(labels[0], lock.token))
        self.log.add("free", n=number)
        self.log.add("freed", n=number, status=lock.release())

    def transact(self, store, label, by_command=False):
        number, name = self.next_number(), str(uuid.uuid4())
        self.log.add("ask", n=number, op="tx", labels=[label], wait=TX_MS, id=name)
        status = self.run_tx(label, name) if by_command else store.transact(label, name, TX_MS)
        self.log.add("done", n=number, status=status)

    def run_tx(self, label, name):
        """holdfast tx, through the same pooler if any."""
        url = self.options.get("tx_url", self.options["url"])
        code = subprocess.run([cli.program(), "tx", "--url", url, "--deadline", f"{TX_MS}ms", f"tx {label}",
                               "-v", f"id={name}", "-c", "INSERT INTO rows (id) VALUES (:id)"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode
        return {0: "OK", 76: "IN_DOUBT"}.get(code, f"exit {code}")

    def command(self, label, hold, wait):
        """holdfast run; the command under it writes down from when to when it runs."""
        number = self.next_number()
        self.log.add("ask", n=number, op="run", labels=[label], wait=wait)
        child = [sys.executable, "-S", "-E", str(HERE / "command.py"), self.folder, self.name, str(number), str(hold)]
        code = subprocess.run([cli.program(), "run", "--url", self.options["url"], "--wait", f"{wait}ms",
                               "--ping", f"{self.options['ping_interval_ms']}ms",
                               "--ping-deadline", f"{self.options['ping_deadline_ms']}ms", label, "--", *child],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode
        self.log.add("ran", n=number, status=EXITS.get(code, f"exit {code}"))

    # --- what to do next ---------------------------------------------------------------------------------

    def step(self, store, chance):
        label, short = chance.choice(LABELS), chance.choice([0, 0, 200, 2000])
        hold = chance.choice([0, 0, 0.01, 0.1])
        what = chance.choices(["exclusive", "shared", "set", "slots", "private", "write", "tx", "interrupt", "run", "lease", "ask"],
                              [8, 6, 3, 4, 2, 3, 4, *((0.1, 0.5, 2, 0.3) if store.is_holdfast else (0, 0, 0, 0))])[0]
        if what == "exclusive":
            self.lock(store, "lock", [label], hold, chance.choice([short, 20000]))
        elif what == "shared":
            self.lock(store, "lock", [label], hold, short, mode="shared")
        elif what == "set":
            self.lock(store, "set", sorted(chance.sample(LABELS, 2)), hold, short)
        elif what == "slots":
            self.lock(store, "slots", ["pool"], hold, short, slots=SLOTS)
        elif what == "private":
            self.lock(store, "private", [label], hold, short, private=True)
        elif what == "write" and store.can_write:
            self.lock(store, "lock", [REGISTER], chance.choice([0, 0.1, 0.1, 1]), 2000, write=True)
        elif what == "tx" and store.can_transact:
            self.transact(store, label, by_command=chance.random() < 0.1)
        elif what == "lease":
            self.lock(store, "lease", [label], hold, short, lease=LEASE_MS)
        elif what == "ask":
            self.lock(store, "ask", [ASKED], 8, 20000, ask=True)
        elif what == "interrupt":
            store.interrupt()
        elif what == "run":
            self.command(label, hold, short)

    def stores(self):
        """One after the other, each open until the next is asked for, as long as there is time."""
        while not self.stopping.is_set():
            try:
                store = controls.open_store(**self.options)
            except controls.Refused:
                self.stopping.wait(0.2)
                continue
            yield store
            store.close()

    def run_short(self, chance):
        """With a store of its own, which is opened again after an interrupt."""
        for store in self.stores():
            while not self.stopping.is_set() and not store.interrupted:
                self.step(store, chance)

    def run_long(self, chance):
        """Holds that are longer than a queueing slice, so that those who wait stand in line."""
        for store in self.stores():
            self.lock(store, "long", [LONG], chance.choice([0.5, 1, 1, 8]), 60000)


def main():
    folder, name, seed, options = sys.argv[1:]
    clock.mend_sleep()
    worker = Worker(folder, name, json.loads(options))
    threading.excepthook = lambda failed: worker.log.add(
        "seen", what="worker failed", want="", got="".join(traceback.format_exception(failed.exc_value)))
    runs = [worker.run_short] * THREADS + [worker.run_long]
    threads = [threading.Thread(target=run, args=(random.Random(f"{seed} {name} {place}"),))
               for place, run in enumerate(runs)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    worker.stopping.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()

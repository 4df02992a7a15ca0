"""
What happened, as each process saw it: one file of JSON lines per process, on the clock of the host.

A worker is one process with a name of its own; a new one takes the place of one that was killed. Its
events belong to operations, which it numbers:

    ask      op, labels, mode, slots, wait (ms; -1: no end)   before the call
    granted  token, slot                                      the call returned: from here on it believes to hold
    refused  status                                           the call returned
    wrote    status                                           a fenced write with its token returned
    told     why                                              on_lost: from here on it does not
    free                                                      before the release: likewise
    freed    status                                           the release returned
    done     status                                           a transaction returned
    ran      status                                           `holdfast run` returned
    repeat   status                                           an append failed, and is repeated under its id

The driver writes down what it does to them: killed, stopped, continued with the worker's name, and
fault, mended with the fault's; and what it found: seen, with what, want and got. What there was at the
end, such as rows, is in state.json.
"""

import bisect
import collections
import json
import os
import pathlib
import threading
import time


class Log:
    """Each line is one write, so a killed process leaves whole lines. Any thread may add some."""

    def __init__(self, folder, name):
        self._fd = os.open(pathlib.Path(folder) / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._guard = threading.Lock()

    def add(self, event, **fields):
        with self._guard:  # so that the lines are in the order of their times
            os.write(self._fd, (json.dumps({"t": time.monotonic_ns(), "e": event, **fields}) + "\n").encode())


class Operation:
    """One operation of a worker: the times of its events in seconds, None for what did not happen."""

    def __init__(self, worker, ask):
        self.worker = worker
        self.asked = ask["t"]
        self.op = ask["op"]
        self.labels = ask["labels"]
        self.mode = ask.get("mode", "exclusive")
        self.wait = ask.get("wait", 0)
        self.id = ask.get("id")
        self.rows = ask.get("rows")
        self.answered = self.granted = self.told = self.freeing = self.freed = None
        self.token = self.slot = self.status = self.freed_status = None
        self.writes = []  # (time, status)

    def add(self, event):
        what, at = event["e"], event["t"]
        if what in ("granted", "refused", "done"):
            self.answered = at
            self.status = event.get("status", "OK")
            self.token, self.slot = event.get("token"), event.get("slot")
            self.granted = at if what == "granted" else None
        elif what == "wrote":
            self.writes.append((at, event["status"]))
        elif what == "told":
            self.told = at
        elif what == "free":
            self.freeing = at
        elif what == "freed" or what == "ran" and self.granted is not None:
            self.freed, self.freed_status = at, event["status"]
        elif what == "ran":
            self.answered, self.status = at, event["status"]

    def __repr__(self):
        times = {name: round(at, 3) for name in ("asked", "answered", "told", "freeing", "freed")
                 if (at := getattr(self, name)) is not None}
        return (f"{self.worker} {self.op} {self.mode} {','.join(self.labels)} token={self.token} "
                f"status={self.status}/{self.freed_status} {times}")


class History:
    def __init__(self, operations, killed=None, stopped=None, faults=(), state=None, end=None, seen=()):
        self.operations = operations
        self.killed = killed or {}  # by worker
        self.stopped = stopped or {}  # by worker: [(from, to)]
        self.faults = list(faults)  # (time, name, time when it was mended)
        self.state = state or {}
        self.seen = list(seen)  # {"t", "what", "want", "got"}
        self.end = end if end is not None else max((o.answered or o.asked for o in operations), default=0)

    def ended(self, operation):
        """When its worker stopped believing that it held the lock."""
        ends = [operation.told, operation.freeing, operation.freed, self.killed.get(operation.worker)]
        return min((at for at in ends if at is not None), default=self.end)

    def stopped_within(self, worker, start, end):
        """For how long the worker was stopped between the two times."""
        return sum(max(0, min(end, to) - max(start, since)) for since, to in self.stopped.get(worker, ()))

    def fault_at(self, at):
        """The last fault that began before: (time, name, mended), or None."""
        before = bisect.bisect_right(self.faults, at, key=lambda fault: fault[0])
        return self.faults[before - 1] if before else None

    @classmethod
    def read(cls, folder):
        operations, killed, stopped, faults, seen, last = [], {}, collections.defaultdict(list), {}, [], 0
        for path in sorted(pathlib.Path(folder).glob("*.log")):
            by_number = {}
            events = [json.loads(line) for line in path.read_text().splitlines()]
            for event in sorted(events, key=lambda event: event["t"]):  # a command writes to its worker's file
                event["t"] /= 1e9
                last = max(last, event["t"])
                what, worker = event["e"], event.get("worker")
                if what == "killed":
                    killed[worker] = event["t"]
                elif what == "stopped":
                    stopped[worker].append([event["t"], float("inf")])
                elif what == "continued":
                    stopped[worker][-1][1] = event["t"]
                elif what == "fault":
                    faults[event["n"]] = [event["t"], event["fault"], None]
                elif what == "mended":
                    faults[event["n"]][2] = event["t"]
                elif what == "seen":
                    seen.append(event)
                elif what == "ask":
                    by_number[event["n"]] = Operation(path.stem, event)
                    operations.append(by_number[event["n"]])
                else:
                    by_number[event["n"]].add(event)
        state = pathlib.Path(folder) / "state.json"
        return cls(operations, killed, stopped, sorted(map(tuple, faults.values())),
                   json.loads(state.read_text()) if state.exists() else {}, last, seen)

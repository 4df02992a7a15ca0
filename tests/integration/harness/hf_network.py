"""
Networks on top of hf.py: cursors and gaps through the public API, and through network_driver what the
ingesters use inside (coverage, tables, partitions).
"""

import contextlib
import ctypes
import subprocess
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p

import hf
import hf_tx
from hf import CError, check

LATEST, OLDEST = "latestLedgerCursor", "oldestLedgerCursor"
WANTED_FROM, RETENTION_FLOOR = "holdfast.wantedFrom", "holdfast.retentionFloor"


class NetworkOptions(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("schema", c_char_p), ("latest_cursor", c_char_p),
                ("oldest_cursor", c_char_p)]


class Range(Structure):
    _fields_ = [("first", c_int64), ("last", c_int64)]


CursorFn = CFUNCTYPE(None, c_void_p, c_char_p, c_int64)

PROTOTYPES = {
    "hf_network_open": (c_int, [c_void_p, POINTER(NetworkOptions), POINTER(c_void_p), POINTER(CError)]),
    "hf_network_free": (None, [c_void_p]),
    "hf_cursor_get": (c_int, [c_void_p, c_char_p, POINTER(c_bool), POINTER(c_int64), POINTER(CError)]),
    "hf_cursor_set": (c_int, [c_void_p, c_char_p, c_int64, POINTER(CError)]),
    "hf_cursor_set_min": (c_int, [c_void_p, c_char_p, c_int64, POINTER(CError)]),
    "hf_cursor_advance": (c_int, [c_void_p, c_char_p, c_int64, POINTER(CError)]),
    "hf_cursor_swap": (c_int, [c_void_p, c_char_p, c_int64, c_int64, POINTER(CError)]),
    "hf_cursor_list": (c_int, [c_void_p, CursorFn, c_void_p, POINTER(CError)]),
    "hf_network_gaps": (c_int, [c_void_p, c_int64, c_int64, POINTER(POINTER(Range)), POINTER(c_size_t),
                                POINTER(CError)]),
}

lib = hf.lib_with(PROTOTYPES)


class Network:
    def __init__(self, store, name="testnet", **options):
        self.store, self.name, self.pointer = store, name, c_void_p()
        raw = NetworkOptions(size=ctypes.sizeof(NetworkOptions), name=name.encode())
        for option, value in options.items():
            setattr(raw, option, value.encode())
        self.schema = options.get("schema", f"ingest_{name}")
        error = CError()
        check(lib().hf_network_open(store.pointer, byref(raw), byref(self.pointer), byref(error)), error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib().hf_network_free(self.pointer)

    def get(self, name):
        """None: there is no such cursor."""
        found, value, error = c_bool(), c_int64(), CError()
        check(lib().hf_cursor_get(self.pointer, name.encode(), byref(found), byref(value), byref(error)), error)
        return value.value if found.value else None

    def _change(self, function, name, *numbers):
        error = CError()
        check(getattr(lib(), function)(self.pointer, name.encode(), *numbers, byref(error)), error)

    def set(self, name, value):
        self._change("hf_cursor_set", name, value)

    def set_min(self, name, value):
        self._change("hf_cursor_set_min", name, value)

    def advance(self, name, value):
        self._change("hf_cursor_advance", name, value)

    def swap(self, name, before, after):
        self._change("hf_cursor_swap", name, before, after)

    def list(self):
        found, error = {}, CError()
        callback = CursorFn(lambda _, name, value: found.update({name.decode(): value}))
        check(lib().hf_cursor_list(self.pointer, callback, None, byref(error)), error)
        return found

    def gaps(self, first=0, last=0):
        ranges, count, error = POINTER(Range)(), c_size_t(), CError()
        check(lib().hf_network_gaps(self.pointer, first, last, byref(ranges), byref(count), byref(error)), error)
        found = [(ranges[i].first, ranges[i].last) for i in range(count.value)]
        ctypes.CDLL(None).free(ctypes.cast(ranges, c_void_p))
        return found

    def sql(self, statement, *values):
        """In the network's database, with @ before its tables as the library has it."""
        prefix = "" if lib().hf_store_is_local(self.store.pointer) else f'"{self.schema}".'
        return hf_tx.transact(self.store, None, lambda tx: tx.query(statement.replace("@", prefix), *values),
                              database=self.schema.encode(), isolation=hf_tx.Isolation.READ_COMMITTED)


class Refused(Exception):
    def __init__(self, text):
        self.status, _, self.message = text.partition(" ")
        super().__init__(text)


class Driver:
    """Another process, which does to a network what the ingesters do: driver("add", 1, 10)."""

    def __init__(self, url, network="testnet", *schema):
        self.process = subprocess.Popen([hf.built("tests/integration/network_driver"), url, network, *schema],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline().rstrip("\n")
        if not line.startswith("ok"):
            raise Refused(line or f"ended with {self.process.wait()}")
        return line[3:].split(" ") if len(line) > 3 else []

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def __call__(self, *words):
        self.send(*words)
        return self.answer()

    def ranges(self, *words):
        return [as_range(word) for word in self(*words)]

    def coverage(self):
        return self.ranges("read", 0, 2**62)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(20)


def as_range(text):
    first, last = text.split("-")
    return int(first), int(last)


def joined(ranges):
    """The set of all their ledgers as ascending, disjoint ranges without neighbours."""
    result = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def fill(network, ledgers, transactions=1):
    """Rows of these ledgers, without coverage; each with so many transactions."""
    for sequence in ledgers:
        network.sql("insert into @ledgers (sequence, hash, previous_hash, closed_at, transaction_count)"
                    " values ($1, $2, $3, '2024-01-01T00:00:00Z', $4)",
                    sequence, f"h{sequence}", f"h{sequence - 1}", transactions)
        for order in range(1, transactions + 1):
            network.sql("insert into @transactions (to_id, ledger_number, application_order, hash, closed_at)"
                        " values ($1, $2, $3, $4, '2024-01-01T00:00:00Z')",
                        sequence << 32 | order << 12, sequence, order, f"t{sequence}-{order}")

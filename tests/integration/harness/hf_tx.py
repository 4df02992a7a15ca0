"""
Serialised transactions on top of hf.py.

    hf_tx.transact(store, "Transfer:a", lambda tx: tx.query("select 1")[0][0], deadline_ms=1000)

The body gets a Tx; what it returns is returned, an HfError that it raises becomes the callback's
failure, and anything else that it raises ends the transaction and is raised again.
"""

import ctypes
import enum
import functools
from concurrent.futures import ThreadPoolExecutor
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int64, c_size_t,
                    c_uint, c_void_p, pointer)

import hf
from hf import CError, HfError, Status, Target, check


class Isolation(enum.IntEnum):
    SERIALIZABLE = 0
    REPEATABLE_READ = 1
    READ_COMMITTED = 2


class Value(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("binary", c_bool)]


class TxStats(Structure):
    _fields_ = [("label", c_void_p), ("label_size", c_size_t), ("key", c_int64), ("attempts", c_uint),
                ("wait_ms", c_int64), ("hold_ms", c_int64), ("outcome", c_int)]


StatsFn = CFUNCTYPE(None, POINTER(TxStats), c_void_p)
TxFn = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(CError))


class TxOptions(Structure):
    _fields_ = [("size", c_size_t), ("labels", POINTER(Target)), ("label_count", c_size_t),
                ("isolation", c_int), ("read_only", c_bool), ("retry_unique", c_bool),
                ("deadline_ms", c_int64), ("max_attempts", c_uint), ("backoff_min_ms", c_int),
                ("backoff_max_ms", c_int), ("on_stats", StatsFn), ("stats_arg", c_void_p),
                ("expect_operation", c_bool), ("database", c_char_p), ("cancel", c_void_p),
                ("owner", c_int64), ("traceparent", c_char_p)]


PROTOTYPES = {
    "hf_transact": (c_int, [c_void_p, POINTER(TxOptions), TxFn, c_void_p, POINTER(CError)]),
    "hf_lock_transact": (c_int, [c_void_p, POINTER(TxOptions), TxFn, c_void_p, POINTER(CError)]),
    "hf_tx_begin": (c_int, [c_void_p, POINTER(TxOptions), POINTER(c_void_p), POINTER(CError)]),
    "hf_tx_begin_on": (c_int, [c_void_p, POINTER(TxOptions), POINTER(c_void_p), POINTER(CError)]),
    "hf_tx_end": (c_int, [c_void_p, c_int, POINTER(CError)]),
    "hf_tx_free": (None, [c_void_p]),
    "hf_tx_serialize": (c_int, [c_void_p, POINTER(Target), POINTER(CError)]),
    "hf_tx_query": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(Value), c_bool, POINTER(c_void_p),
                            POINTER(CError)]),
    "hf_tx_queue": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(Value), POINTER(CError)]),
    "hf_tx_connection": (c_void_p, [c_void_p, POINTER(CError)]),
    "hf_tx_attempt": (c_uint, [c_void_p]),
    "hf_tx_traceparent": (c_char_p, [c_void_p]),
    "hf_rows_count": (c_size_t, [c_void_p]),
    "hf_rows_columns": (c_size_t, [c_void_p]),
    "hf_rows_column": (c_char_p, [c_void_p, c_size_t]),
    "hf_rows_value": (c_void_p, [c_void_p, c_size_t, c_size_t, POINTER(c_size_t)]),
    "hf_rows_affected": (c_int64, [c_void_p]),
    "hf_rows_free": (None, [c_void_p]),
}

lib = hf.lib_with(PROTOTYPES)


def values(given):
    """None is NULL, bytes go in binary, the rest as text. The second result keeps the data alive."""
    array, kept = (Value * max(1, len(given)))(), []
    for place, one in zip(array, given):
        if one is None:
            continue
        raw = one if isinstance(one, bytes) else str(one).encode()
        kept.append(ctypes.create_string_buffer(raw))
        place.data = ctypes.addressof(kept[-1])
        place.size = len(raw)
        place.binary = isinstance(one, bytes)
    return array, kept


class Rows(list):
    """Lists of text (bytes if binary), with .columns and .affected."""

    def __init__(self, pointer, binary):
        super().__init__()
        size = c_size_t()
        self.columns = [lib().hf_rows_column(pointer, i).decode()
                        for i in range(lib().hf_rows_columns(pointer))]
        self.affected = lib().hf_rows_affected(pointer)
        for row in range(lib().hf_rows_count(pointer)):
            cells = []
            for column in range(len(self.columns)):
                at = lib().hf_rows_value(pointer, row, column, byref(size))
                raw = None if at is None else ctypes.string_at(at, size.value)
                cells.append(raw if raw is None or binary else raw.decode())
            self.append(cells)


class Tx:
    def __init__(self, pointer):
        self.pointer = pointer

    def query(self, sql, *given, binary=False):
        array, _kept = values(given)
        pointer, error = c_void_p(), CError()
        check(lib().hf_tx_query(self.pointer, sql.encode(), len(given), array, binary, byref(pointer),
                                byref(error)), error)
        try:
            return Rows(pointer, binary)
        finally:
            lib().hf_rows_free(pointer)

    def value(self, sql, *given):
        return self.query(sql, *given)[0][0]

    def queue(self, sql, *given):
        array, _kept = values(given)
        error = CError()
        check(lib().hf_tx_queue(self.pointer, sql.encode(), len(given), array, byref(error)), error)

    def serialize(self, what, derivation=hf.Derivation.SHA256):
        target, error = hf.target(what, derivation), CError()
        check(lib().hf_tx_serialize(self.pointer, byref(target), byref(error)), error)

    def connection(self):
        """The PGconn, as hf.PGconn that must not be closed; None on the local store."""
        error = CError()
        pointer = lib().hf_tx_connection(self.pointer, byref(error))
        if not pointer:
            check(error.code or Status.OK, error)
            return None
        conn = hf.PGconn.__new__(hf.PGconn)
        conn.pointer = pointer
        return conn

    @property
    def attempt(self):
        return lib().hf_tx_attempt(self.pointer)


class Stats:
    def __init__(self, raw):
        self.label = None if raw.label is None else ctypes.string_at(raw.label, raw.label_size).decode()
        self.key = raw.key
        self.attempts = raw.attempts
        self.wait_ms = raw.wait_ms
        self.hold_ms = raw.hold_ms
        self.outcome = Status(raw.outcome)


def failure(status, message, sqlstate=""):
    """What a body raises to fail for a reason of its own."""
    return HfError(status, CError(code=status, message=message.encode(), sqlstate=sqlstate.encode()))


class Call:
    """One hf_transact: status, error, attempts, the body's last value, and what was reported."""

    def __init__(self, store, labels, body, on_stats=None, **options):
        things = labels if isinstance(labels, list) else [labels] if labels is not None else []
        targets = (Target * len(things))(*[hf.target(thing) for thing in things]) if things else None
        raw = TxOptions(size=ctypes.sizeof(TxOptions), labels=targets, label_count=len(things))
        for name, value in options.items():
            if name not in dict(TxOptions._fields_):
                raise TypeError(f"no such option: {name}")
            setattr(raw, name, value.pointer if name == "cancel" else value)
        self.stats, self.attempts, self.value, self.raised = [], 0, None, None
        self.error = CError(code=77, message=b"untouched")
        callback = TxFn(functools.partial(self._run, body))
        if on_stats is not False:
            stats_callback = StatsFn(lambda stats, _: self.stats.append(Stats(stats[0])))
            raw.on_stats = stats_callback
        with store.call(options.get("deadline_ms", -1)):
            self.status = Status(self.transact(store, raw, callback))

    def transact(self, store, raw, callback):
        return lib().hf_transact(store.pointer, byref(raw), callback, None, byref(self.error))

    def _run(self, body, pointer, _, err):
        self.attempts += 1
        try:
            self.value = body(Tx(pointer))
            return int(Status.OK)
        except HfError as failed:
            err[0].code = failed.status
            err[0].message = failed.message.encode()[:1023]
            err[0].hint = failed.hint.encode()[:511]
            err[0].sqlstate = failed.sqlstate.encode()
            return int(failed.status)
        except BaseException as raised:  # raised again where the call was made
            self.raised = raised
            return int(Status.INTERRUPTED)

    def result(self):
        if self.raised is not None:
            raise self.raised
        check(self.status, self.error)
        return self.value


def elsewhere(function, *args):
    """The call, in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *args).result()


class Begun(Call):
    """hf_tx_begin and hf_tx_end instead of hf_transact. Each step is in a thread of its own."""

    def transact(self, store, raw, callback):
        return self.drive(lib().hf_tx_begin, store.pointer, raw, callback)

    def drive(self, begin, on, raw, callback):
        tx = c_void_p()
        status = elsewhere(begin, on, byref(raw), byref(tx), byref(self.error))
        while tx:
            failed = CError()
            done = elsewhere(callback, tx.value, None, pointer(failed))
            failed = self.error if done == Status.OK else failed
            status = elsewhere(lib().hf_tx_end, tx, done, byref(failed))
            if status != Status.AGAIN:
                self.error = self.error if status == Status.OK else failed
                lib().hf_tx_free(tx)
                break
        return status


class BegunOnLock(Begun):
    """hf_tx_begin_on."""

    def __init__(self, lock, body, labels=None, **options):
        self.lock = lock
        super().__init__(lock.store, labels, body, **options)

    def transact(self, store, raw, callback):
        return self.drive(lib().hf_tx_begin_on, self.lock.pointer, raw, callback)


class OnLock(Call):
    """hf_lock_transact instead of hf_transact."""

    def transact(self, store, raw, callback):
        return lib().hf_lock_transact(self.lock.pointer, byref(raw), callback, None,
                                      byref(self.error))

    def __init__(self, lock, body, labels=None, **options):
        self.lock = lock
        super().__init__(lock.store, labels, body, **options)


def transact(store, labels, body, **options):
    return Call(store, labels, body, **options).result()


def refusal(store, labels, body, **options):
    """The error of a transaction that must not commit."""
    call = Call(store, labels, body, **options)
    if call.raised is not None:
        raise call.raised
    assert call.status != Status.OK, "committed, against expectation"
    return HfError(call.status, call.error)

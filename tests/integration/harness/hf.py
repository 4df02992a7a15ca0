"""libholdfast through ctypes: the structs of holdfast.h, and a thin Pythonic skin over them."""

import contextlib
import ctypes
import enum
import functools
import os
import pathlib
import threading
import time
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int32,
                    c_int64, c_size_t, c_uint, c_uint32, c_void_p)

HARNESS = pathlib.Path(__file__).resolve().parent
PROGRAMS = HARNESS.parent / "programs"
ROOT = HARNESS.parents[2]
BUILD = pathlib.Path(os.environ.get("HOLDFAST_BUILD", ROOT / "build")).resolve()


class Status(enum.IntEnum):
    OK = 0
    INVALID = 1
    BAD_DATA = 2
    NO_MEMORY = 3
    UNREACHABLE = 4
    CONFIG = 5
    NO_SCHEMA = 6
    NOT_ACQUIRED = 7
    LOST = 8
    ORDER = 9
    DEADLOCK = 10
    COLLISION = 11
    SLOTS = 12
    QUOTA = 13
    NO_TRANSACTION = 14
    FORKED = 15
    INTERRUPTED = 16
    DATABASE = 17
    SYSTEM = 18
    IN_DOUBT = 19
    EXHAUSTED = 20
    CURSOR = 21
    ROLLED_BACK = 22
    AGAIN = 23


class Derivation(enum.IntEnum):
    SHA256 = 0
    FNV1A64 = 1
    FNV1A32 = 2
    FNV1A32_JS = 3
    HASHTEXT = 4
    HASHTEXTEXTENDED = 5
    FIXED = 6
    MINTED = 7
    CRC32 = 8
    CRC32_SQLX = 9
    MD5 = 10
    JAVA_HASHCODE = 11
    WITH_ADVISORY_LOCK = 12
    DISTRIBUTEDLOCK_ASCII = 13
    DISTRIBUTEDLOCK_HASH = 14


class State(enum.IntEnum):
    HELD = 0
    LOST = 1
    RELEASED = 2


class Level(enum.IntEnum):
    OK = 0
    WARNING = 1
    PROBLEM = 2


EXCLUSIVE, SHARED = 0, 1
SESSION, TRANSACTION, LEASE = 0, 1, 2
BIGINT, PAIR = 0, 1
RECORDS_AUTO, RECORDS_OFF, RECORDS_REQUIRED = 0, 1, 2
REENTRANT, ANY_ORDER, PRIVATE, NEED_TOKEN, ASK = 1, 2, 4, 8, 16
FOREVER = -1
HANGS_AFTER = 45  # seconds
LABEL_MAX = 65536
SLOTS_MAX = 4095
SCHEMA_VERSION = 7


class CError(Structure):
    _fields_ = [("code", c_int), ("sqlstate", c_char * 6), ("message", c_char * 1024),
                ("hint", c_char * 512), ("position", c_int)]


LogFn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
LostFn = CFUNCTYPE(None, c_void_p, POINTER(CError), c_void_p)
WaitFn = CFUNCTYPE(None, POINTER(CError), c_void_p)
LockedFn = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(CError))
FindingFn = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p, c_char_p)


class CSpan(Structure):
    _fields_ = [("kind", c_int), ("status", c_int), ("label", c_void_p), ("label_size", c_size_t),
                ("key", c_int64), ("space", c_int), ("mode", c_int), ("slot", c_uint), ("token", c_int64),
                ("start_ns", c_int64), ("end_ns", c_int64), ("traceparent", c_char_p),
                ("parent", c_char_p), ("link", c_char_p)]


SpanFn = CFUNCTYPE(None, POINTER(CSpan), c_void_p)


class StoreOptions(Structure):
    _fields_ = [("size", c_size_t), ("url", c_char_p), ("application", c_char_p), ("records", c_int),
                ("ping_interval_ms", c_int), ("ping_deadline_ms", c_int), ("kill_ms", c_int),
                ("connect_timeout_ms", c_int), ("max_waits", c_int), ("max_keys", c_int),
                ("session_pool", c_bool), ("dispatch", c_bool), ("log", LogFn), ("log_arg", c_void_p),
                ("max_transactions", c_int), ("registry", c_void_p), ("machine", c_int),
                ("environment", c_bool), ("patience_ms", c_int64), ("on_span", SpanFn), ("span_arg", c_void_p)]


class Target(Structure):
    _fields_ = [("label", c_char_p), ("label_size", c_size_t), ("derivation", c_int),
                ("space", c_int), ("key", c_int64), ("pair", c_int32 * 2)]


class LockSpec(Structure):
    _fields_ = [("size", c_size_t), ("targets", POINTER(Target)), ("target_count", c_size_t),
                ("mode", c_int), ("lifetime", c_int), ("wait_ms", c_int64), ("flags", c_uint),
                ("slots", c_uint), ("on_lost", LostFn), ("on_wait", WaitFn), ("arg", c_void_p),
                ("cancel", c_void_p), ("owner", c_int64), ("lease_ms", c_int), ("on_yield", LostFn),
                ("traceparent", c_char_p)]


class LockView(Structure):
    _fields_ = [("key", c_int64), ("space", c_int), ("mode", c_int), ("waiting", c_bool),
                ("ours", c_bool), ("session_known", c_bool), ("lifetime", c_int),
                ("label", c_char_p), ("application", c_char_p), ("host", c_char_p), ("pid", c_int),
                ("backend_pid", c_int), ("age_ms", c_int64), ("age_is_bound", c_bool),
                ("token", c_int64), ("slot", c_uint), ("blocked_by", c_char_p),
                ("name", c_char_p), ("pattern", c_char_p), ("idle_ms", c_int64),
                ("idle_hidden", c_bool), ("seen_ms", c_int64), ("times", c_int64),
                ("known_as", c_char_p), ("left_ms", c_int64), ("traceparent", c_char_p)]


PROTOTYPES = {
    "hf_version": (c_char_p, []),
    "hf_status_name": (c_char_p, [c_int]),
    "hf_status_text": (c_char_p, [c_int]),
    "hf_derivation_name": (c_char_p, [c_int]),
    "hf_derivation_parse": (c_int, [c_char_p, POINTER(c_int), POINTER(CError)]),
    "hf_key_derive": (c_int, [c_int, c_char_p, c_size_t, POINTER(c_int64), POINTER(CError)]),
    "hf_key_split": (None, [c_int64, POINTER(c_uint32), POINTER(c_uint32)]),
    "hf_key_join": (c_int64, [c_uint32, c_uint32]),
    "hf_store_open": (c_int, [POINTER(StoreOptions), POINTER(c_void_p), POINTER(CError)]),
    "hf_store_borrow": (c_int, [c_void_p, POINTER(StoreOptions), POINTER(c_void_p), POINTER(CError)]),
    "hf_store_close": (None, [c_void_p]),
    "hf_store_interrupt": (None, [c_void_p]),
    "hf_cancel_create": (c_int, [POINTER(c_void_p), POINTER(CError)]),
    "hf_cancel_trigger": (None, [c_void_p]),
    "hf_cancel_is_triggered": (c_bool, [c_void_p]),
    "hf_cancel_free": (None, [c_void_p]),
    "hf_store_fd": (c_int, [c_void_p]),
    "hf_store_dispatch": (c_int, [c_void_p]),
    "hf_store_name": (c_char_p, [c_void_p]),
    "hf_store_is_local": (c_bool, [c_void_p]),
    "hf_store_has_records": (c_bool, [c_void_p]),
    "hf_lock_acquire": (c_int, [c_void_p, POINTER(LockSpec), POINTER(c_void_p), POINTER(CError)]),
    "hf_lock_release": (c_int, [c_void_p, POINTER(CError)]),
    "hf_lock_free": (None, [c_void_p]),
    "hf_lock_get_state": (c_int, [c_void_p]),
    "hf_lock_token": (c_int, [c_void_p, POINTER(c_int64), POINTER(CError)]),
    "hf_lock_note": (None, [c_void_p, c_char_p, c_char_p]),
    "hf_lock_key": (c_int64, [c_void_p]),
    "hf_lock_slot": (c_uint, [c_void_p]),
    "hf_lock_traceparent": (c_char_p, [c_void_p]),
    "hf_lock_snapshot_is_stale": (c_bool, [c_void_p]),
    "hf_lock_with": (c_int, [c_void_p, POINTER(LockSpec), LockedFn, c_void_p, POINTER(CError)]),
    "hf_store_init": (c_int, [c_void_p, POINTER(c_int), POINTER(c_int), POINTER(CError)]),
    "hf_schedule_claim": (c_int, [c_void_p, c_char_p, c_int64, POINTER(c_bool), POINTER(c_int64),
                                  POINTER(CError)]),
    "hf_lock_list_read": (c_int, [c_void_p, POINTER(c_void_p), POINTER(CError)]),
    "hf_lock_list_read_past": (c_int, [c_void_p, c_int64, POINTER(c_void_p), POINTER(CError)]),
    "hf_lock_list_count": (c_size_t, [c_void_p]),
    "hf_lock_list_at": (POINTER(LockView), [c_void_p, c_size_t]),
    "hf_lock_list_free": (None, [c_void_p]),
    "hf_store_examine": (c_int, [c_void_p, FindingFn, c_void_p, POINTER(CError)]),
}


def built(name):
    """By its whole path: a build folder may have others inside it, as that of `make lint`."""
    path = BUILD / name
    if not path.is_file():
        raise RuntimeError(f"no {name} in {BUILD}: run `make`")
    return str(path)


@functools.lru_cache(maxsize=None)
def lib():
    """Loaded at the first use; CDLL releases the GIL during calls, so waits do not block threads."""
    return declare(ctypes.CDLL(built("src/lib/libholdfast.so")), PROTOTYPES)


def declare(library, prototypes):
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def lib_with(prototypes):
    """The lib() of a module on top of this one, which declares its functions at the first use."""
    return functools.lru_cache(maxsize=None)(lambda: declare(lib(), prototypes))


class HfError(Exception):
    def __init__(self, status, error):
        self.status = Status(status)
        self.code = error.code
        self.message = error.message.decode(errors="replace")
        self.hint = error.hint.decode(errors="replace")
        self.sqlstate = error.sqlstate.decode()
        super().__init__(f"{self.status.name}: {self.message} [{self.hint}] {self.sqlstate}")

    @property
    def text(self):
        return f"{self.message}\n{self.hint}"


def check(status, error):
    if status != Status.OK:
        raise HfError(status, error)


# --- keys -------------------------------------------------------------------------------------------


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def derive(label, derivation=Derivation.SHA256):
    key, error = c_int64(), CError()
    raw = as_bytes(label)
    check(lib().hf_key_derive(derivation, raw, len(raw), byref(key), byref(error)), error)
    return key.value


def target(what, derivation=Derivation.SHA256):
    """A label (text or bytes), a number, a pair (int4, int4), or (label, Derivation)."""
    if isinstance(what, Target):
        return what
    if isinstance(what, int):
        return Target(derivation=Derivation.FIXED, key=what)
    if isinstance(what, tuple) and isinstance(what[1], Derivation):
        return target(what[0], what[1])
    if isinstance(what, tuple):
        return Target(space=PAIR, pair=(c_int32 * 2)(*what))
    raw = as_bytes(what)
    return Target(label=raw, label_size=len(raw), derivation=derivation)


def named_key(label, key):
    """A fixed number under a label."""
    raw = as_bytes(label)
    return Target(label=raw, label_size=len(raw), derivation=Derivation.FIXED, key=key)


# --- stores and locks -------------------------------------------------------------------------------


class Cancel:
    """A handle that ends the calls that were given it."""

    def __init__(self):
        self.pointer, error = c_void_p(), CError()
        check(lib().hf_cancel_create(byref(self.pointer), byref(error)), error)

    def trigger(self):
        lib().hf_cancel_trigger(self.pointer)

    @property
    def is_triggered(self):
        return lib().hf_cancel_is_triggered(self.pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib().hf_cancel_free(self.pointer)


class Lock:
    def __init__(self, store, pointer):
        self.store = store
        self.pointer = pointer

    def release(self):
        error = CError()
        with self.store.call():
            check(lib().hf_lock_release(self.pointer, byref(error)), error)

    def free(self):
        with self.store.call():
            pointer, self.pointer = self.pointer, None
            self.store.forget(self)
            lib().hf_lock_free(pointer)

    def end(self):
        """Releases, frees."""
        try:
            self.release()
        finally:
            self.free()

    @property
    def state(self):
        return State(lib().hf_lock_get_state(self.pointer))

    @property
    def token(self):
        token, error = c_int64(), CError()
        check(lib().hf_lock_token(self.pointer, byref(token), byref(error)), error)
        return token.value

    @property
    def key(self):
        return lib().hf_lock_key(self.pointer)

    def note(self, event, detail=None):
        """As bytes or text."""
        encoded = [as_bytes(text) if text is not None else None for text in (event, detail)]
        lib().hf_lock_note(self.pointer, *encoded)

    @property
    def slot(self):
        return lib().hf_lock_slot(self.pointer)

    @property
    def traceparent(self):
        return lib().hf_lock_traceparent(self.pointer).decode()

    @property
    def stale(self):
        return lib().hf_lock_snapshot_is_stale(self.pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pointer is not None:
            self.free()


class View:
    """A copy of one hf_lock_view, with text instead of bytes."""

    def __init__(self, raw):
        for name, kind in raw._fields_:
            value = getattr(raw, name)
            setattr(self, name, value.decode() if kind is c_char_p and value is not None else value)

    def __repr__(self):
        return f"View({vars(self)})"


class Span(View):
    def __init__(self, raw):
        super().__init__(raw)
        self.label = ctypes.string_at(raw.label, raw.label_size).decode() if raw.label else None


class Store:
    def __init__(self, url=None, conn=None, **options):
        self.pointer = None
        self._guard = threading.Lock()
        self._locks = set()
        self._calls = 0
        self._closing = False
        self.callbacks = []  # the library may call them as long as the store lives
        self.logged = []
        raw = StoreOptions(size=ctypes.sizeof(StoreOptions))
        if url is not None:
            raw.url = as_bytes(url)
        if "application" in options:
            options["application"] = as_bytes(options["application"])
        for name, value in options.items():
            if name not in dict(StoreOptions._fields_):
                raise TypeError(f"no such option: {name}")
            if name != "on_span":
                setattr(raw, name, value)
        self.spans = []  # with on_span=True
        if "on_span" in options:
            raw.on_span = self._keep(SpanFn(lambda span, _: self.spans.append(Span(span[0]))))
        raw.log = self._keep(LogFn(lambda _, level, text: self.logged.append((level, text.decode()))))
        pointer, error = c_void_p(), CError()
        if conn is not None:
            status = lib().hf_store_borrow(conn.pointer, byref(raw), byref(pointer), byref(error))
        else:
            status = lib().hf_store_open(byref(raw), byref(pointer), byref(error))
        check(status, error)
        self.pointer = pointer

    @classmethod
    def borrow(cls, conn, **options):
        """Over a PGconn that stays the caller's."""
        return cls(conn=conn, **options)

    def _keep(self, callback):
        with self._guard:
            self.callbacks.append(callback)
        return callback

    @contextlib.contextmanager
    def call(self, wait_ms=0):
        """
        Counts the calls under way, so that close() does not pull the store from under a thread that
        a failed test left behind. In the main thread no timeout of pytest gets through to Python
        while C waits, so a wait that goes on for too long is interrupted.
        """
        in_main = threading.current_thread() is threading.main_thread()
        alarm = threading.Timer(HANGS_AFTER, self.interrupt) if wait_ms and in_main else None
        with self._guard:
            assert not self._closing, "the store is closed"
            self._calls += 1
        if alarm:
            alarm.daemon = True
            alarm.start()
        try:
            yield
        finally:
            if alarm:
                alarm.cancel()
            with self._guard:
                self._calls -= 1

    def forget(self, lock):
        with self._guard:
            self._locks.discard(lock)

    def spec(self, what, wait_ms=0, mode=EXCLUSIVE, lifetime=SESSION, flags=0, slots=0, on_lost=None,
             on_wait=None, derivation=Derivation.SHA256, cancel=None, owner=0, lease_ms=0, on_yield=None,
             traceparent=None):
        things = what if isinstance(what, list) else [what]
        targets = (Target * max(1, len(things)))(*[target(thing, derivation) for thing in things])
        spec = LockSpec(size=ctypes.sizeof(LockSpec), targets=targets, target_count=len(things),
                        mode=mode, lifetime=lifetime, wait_ms=wait_ms, flags=flags, slots=slots, lease_ms=lease_ms,
                        cancel=cancel and cancel.pointer, owner=owner,
                        traceparent=None if traceparent is None else as_bytes(traceparent))
        if on_lost is not None:
            spec.on_lost = self._keep(LostFn(
                lambda pointer, why, _: on_lost(Lock(self, pointer), HfError(why[0].code, why[0]))))
        if on_yield is not None:
            spec.on_yield = self._keep(LostFn(
                lambda pointer, who, _: on_yield(Lock(self, pointer), HfError(who[0].code, who[0]))))
        if on_wait is not None:
            spec.on_wait = self._keep(WaitFn(lambda why, _: on_wait(HfError(why[0].code, why[0]))))
        return spec

    def acquire(self, what, wait_ms=0, **how):
        """
        what is anything target() takes, or a list of such for a set. on_lost is called with the
        Lock and an HfError, on_wait with an HfError.
        """
        spec, pointer, error = self.spec(what, wait_ms, **how), c_void_p(), CError()
        with self.call(wait_ms):
            check(lib().hf_lock_acquire(self.pointer, byref(spec), byref(pointer), byref(error)), error)
        lock = Lock(self, pointer)
        with self._guard:
            self._locks.add(lock)
        return lock

    def refusal(self, what, wait_ms=0, **how):
        """The error of an acquire that must not succeed."""
        try:
            lock = self.acquire(what, wait_ms, **how)
        except HfError as error:
            return error
        lock.free()
        raise AssertionError(f"{what!r} was acquired, against expectation")

    def locked(self, what, body, wait_ms=0, **how):
        """hf_lock_with; body(lock) returns a Status or None, or raises HfError."""
        spec, error = self.spec(what, wait_ms, **how), CError()

        def call(pointer, _, err):
            try:
                return int(body(Lock(self, pointer)) or Status.OK)
            except HfError as failure:
                err[0].code = failure.status
                err[0].message = failure.message.encode()[:1023]
                return int(failure.status)

        callback = self._keep(LockedFn(call))
        with self.call(wait_ms):
            check(lib().hf_lock_with(self.pointer, byref(spec), callback, None, byref(error)), error)

    def init(self):
        before, after, error = c_int(), c_int(), CError()
        check(lib().hf_store_init(self.pointer, byref(before), byref(after), byref(error)), error)
        return before.value, after.value

    def claim(self, label, period_ms):
        due, left, error = c_bool(), c_int64(), CError()
        check(lib().hf_schedule_claim(self.pointer, as_bytes(label), period_ms, byref(due),
                                      byref(left), byref(error)), error)
        return due.value, left.value

    def locks(self):
        pointer, error = c_void_p(), CError()
        check(lib().hf_lock_list_read(self.pointer, byref(pointer), byref(error)), error)
        return self._views(pointer)

    def past(self, since_ms=-1):
        pointer, error = c_void_p(), CError()
        check(lib().hf_lock_list_read_past(self.pointer, since_ms, byref(pointer), byref(error)), error)
        return self._views(pointer)

    @staticmethod
    def _views(pointer):
        try:
            return [View(lib().hf_lock_list_at(pointer, i)[0])
                    for i in range(lib().hf_lock_list_count(pointer))]
        finally:
            lib().hf_lock_list_free(pointer)

    def examine(self):
        """topic → (Level, text, remedy)."""
        found, error = {}, CError()

        def report(_, level, topic, text, remedy):
            assert topic.decode() not in found, f"{topic!r} is reported twice"
            found[topic.decode()] = (Level(level), text.decode(), remedy.decode())

        callback = FindingFn(report)
        check(lib().hf_store_examine(self.pointer, callback, None, byref(error)), error)
        return found

    def interrupt(self):
        lib().hf_store_interrupt(self.pointer)

    @property
    def fd(self):
        return lib().hf_store_fd(self.pointer)

    def dispatch(self):
        return lib().hf_store_dispatch(self.pointer)

    @property
    def name(self):
        return lib().hf_store_name(self.pointer).decode()

    @property
    def is_local(self):
        return lib().hf_store_is_local(self.pointer)

    @property
    def has_records(self):
        return lib().hf_store_has_records(self.pointer)

    def close(self):
        """Frees the locks that are left, then the store; interrupts waits that a failed test left."""
        with self._guard:
            self._closing = True
            under_way = self._calls
        if under_way:
            self.interrupt()
            deadline = time.monotonic() + 20
            while self._calls and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not self._calls, "a call goes on after hf_store_interrupt; the store is left open"
        for lock in self._locks:
            lib().hf_lock_free(lock.pointer)
        self._locks = set()
        pointer, self.pointer = self.pointer, None
        if pointer is not None:
            lib().hf_store_close(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open_error(url=None, **options):
    """The error of a store that must not open."""
    try:
        store = Store(url, **options)
    except HfError as error:
        return error
    store.close()
    raise AssertionError(f"{url} was opened, against expectation")


def install(url):
    """The schema, as `holdfast init` does."""
    with Store(url) as store:
        store.init()


# --- libpq: psycopg2 hides its PGconn -----------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def libpq():
    library = ctypes.CDLL("libpq.so.5")
    for name, result, arguments in [
        ("PQconnectdb", c_void_p, [c_char_p]), ("PQstatus", c_int, [c_void_p]),
        ("PQerrorMessage", c_char_p, [c_void_p]), ("PQexec", c_void_p, [c_void_p, c_char_p]),
        ("PQresultStatus", c_int, [c_void_p]), ("PQntuples", c_int, [c_void_p]),
        ("PQnfields", c_int, [c_void_p]), ("PQgetvalue", c_char_p, [c_void_p, c_int, c_int]),
        ("PQgetisnull", c_int, [c_void_p, c_int, c_int]), ("PQclear", None, [c_void_p]),
        ("PQfinish", None, [c_void_p]), ("PQtransactionStatus", c_int, [c_void_p]),
        ("PQbackendPID", c_int, [c_void_p]), ("PQresultErrorField", c_char_p, [c_void_p, c_int]),
        ("PQsocket", c_int, [c_void_p]),
    ]:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


class SqlError(Exception):
    def __init__(self, sqlstate, message):
        self.sqlstate = sqlstate
        super().__init__(f"{sqlstate}: {message}")


class PGconn:
    IDLE, ACTIVE, IN_TRANSACTION, IN_ERROR, UNKNOWN = range(5)

    def __init__(self, url):
        self.pointer = libpq().PQconnectdb(as_bytes(url))
        if libpq().PQstatus(self.pointer) != 0:
            message = libpq().PQerrorMessage(self.pointer).decode()
            self.close()
            raise SqlError("", message)

    def sql(self, query):
        """The rows as text, or SqlError."""
        result = libpq().PQexec(self.pointer, as_bytes(query))
        try:
            if libpq().PQresultStatus(result) not in (1, 2):  # PGRES_COMMAND_OK, PGRES_TUPLES_OK
                state = libpq().PQresultErrorField(result, ord("C")) or b""
                raise SqlError(state.decode(), libpq().PQerrorMessage(self.pointer).decode())
            return [[None if libpq().PQgetisnull(result, row, column)
                     else libpq().PQgetvalue(result, row, column).decode()
                     for column in range(libpq().PQnfields(result))]
                    for row in range(libpq().PQntuples(result))]
        finally:
            libpq().PQclear(result)

    def value(self, query):
        return self.sql(query)[0][0]

    @property
    def transaction(self):
        return libpq().PQtransactionStatus(self.pointer)

    @property
    def backend_pid(self):
        return int(self.value("select pg_catalog.pg_backend_pid()"))

    def close(self):
        pointer, self.pointer = self.pointer, None
        if pointer:
            libpq().PQfinish(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

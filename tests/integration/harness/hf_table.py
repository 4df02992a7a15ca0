"""Shared tables on top of hf.py: register(store, "app.events"), lock(store, "app.events"), adopt(store, …)."""

import ctypes
import sqlite3
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p

import hf
from hf import CError, LockSpec, check


class Name(Structure):
    _fields_ = [("cluster", c_char_p), ("database", c_char_p), ("table", c_char_p)]


class View(Structure):
    _fields_ = [("name", Name), ("id", c_int64), ("created_ms", c_int64), ("dropped_ms", c_int64),
                ("references", c_int64)]


class Adoption(Structure):
    _fields_ = [("size", c_size_t), ("schema", c_char_p), ("relation", c_char_p), ("file", c_char_p),
                ("cluster", c_char_p), ("database", c_char_p), ("dry_run", c_bool), ("constrain", c_bool),
                ("wait_ms", c_int64), ("moved", POINTER(c_int64))]


class Fault(Structure):
    _fields_ = [("problem", c_char_p), ("table_name", c_char_p), ("context_id", c_char_p),
                ("advisory_id", c_char_p)]


class Adopted(Structure):
    _fields_ = [("rows", c_int64), ("tables", c_int64), ("minted", c_int64), ("rows_given", c_int64),
                ("references", c_int64), ("faults", c_int64), ("not_null", c_bool), ("foreign_key", c_bool)]


ContextFn = CFUNCTYPE(None, c_void_p, c_char_p)
FaultFn = CFUNCTYPE(None, c_void_p, POINTER(Fault))

PROTOTYPES = {
    "hf_table_name_parse": (c_int, [c_char_p, POINTER(Name), POINTER(c_void_p), POINTER(CError)]),
    "hf_table_name_text": (c_int, [POINTER(Name), c_char_p, POINTER(CError)]),
    "hf_table_register": (c_int, [c_void_p, POINTER(Name), POINTER(c_int64), POINTER(c_bool), POINTER(CError)]),
    "hf_table_find": (c_int, [c_void_p, POINTER(Name), POINTER(c_int64), POINTER(CError)]),
    "hf_table_lock": (c_int, [c_void_p, POINTER(Name), POINTER(LockSpec), POINTER(c_void_p), POINTER(CError)]),
    "hf_table_ref": (c_int, [c_void_p, POINTER(Name), c_char_p, POINTER(c_int64), POINTER(CError)]),
    "hf_table_unref": (c_int, [c_void_p, POINTER(Name), c_char_p, c_int64, POINTER(c_bool), POINTER(CError)]),
    "hf_table_drop": (c_int, [c_void_p, POINTER(Name), c_bool, c_int64, POINTER(CError)]),
    "hf_table_list_read": (c_int, [c_void_p, POINTER(Name), c_bool, POINTER(c_void_p), POINTER(CError)]),
    "hf_table_list_count": (c_size_t, [c_void_p]),
    "hf_table_list_at": (POINTER(View), [c_void_p, c_size_t]),
    "hf_table_list_free": (None, [c_void_p]),
    "hf_table_refs": (c_int, [c_void_p, POINTER(Name), ContextFn, c_void_p, POINTER(CError)]),
    "hf_table_leave": (c_int, [c_void_p, POINTER(Adoption), POINTER(CError)]),
    "hf_table_adopt": (c_int, [c_void_p, POINTER(Adoption), FaultFn, c_void_p, POINTER(Adopted),
                               POINTER(CError)]),
}

lib = hf.lib_with(PROTOTYPES)


def name_of(what):
    """"db.table", "cluster/db.table", or a tuple (cluster, database, table) that is passed as it is."""
    if isinstance(what, tuple):
        return Name(*[part if part is None else hf.as_bytes(part) for part in what])
    cluster, _, rest = what.rpartition("/")
    database, _, table = rest.rpartition(".")
    return name_of((cluster or None, database or None, table))


def text_of(what):
    text, error = ctypes.create_string_buffer(603), CError()
    check(lib().hf_table_name_text(byref(name_of(what)), text, byref(error)), error)
    return text.value.decode()


def parse(text):
    name, memory, error = Name(), c_void_p(), CError()
    check(lib().hf_table_name_parse(hf.as_bytes(text), byref(name), byref(memory), byref(error)), error)
    parts = tuple(part.decode() for part in (name.cluster, name.database, name.table))
    ctypes.CDLL(None).free(memory)
    return parts


def register(store, what):
    """(id, created)"""
    number, created, error = c_int64(), c_bool(), CError()
    check(lib().hf_table_register(store.pointer, byref(name_of(what)), byref(number), byref(created), byref(error)),
          error)
    return number.value, created.value


def find(store, what):
    number, error = c_int64(), CError()
    check(lib().hf_table_find(store.pointer, byref(name_of(what)), byref(number), byref(error)), error)
    return number.value


def lock(store, what, wait_ms=0, **how):
    spec, pointer, error = store.spec([], wait_ms, **how), c_void_p(), CError()
    with store.call(wait_ms):
        check(lib().hf_table_lock(store.pointer, byref(name_of(what)), byref(spec), byref(pointer), byref(error)),
              error)
    return hf.Lock(store, pointer)


def ref(store, what, context):
    number, error = c_int64(), CError()
    check(lib().hf_table_ref(store.pointer, byref(name_of(what)), hf.as_bytes(context), byref(number), byref(error)),
          error)
    return number.value


def unref(store, what, context, wait_ms=0):
    """True: that was the last one."""
    retired, error = c_bool(), CError()
    with store.call(wait_ms):
        check(lib().hf_table_unref(store.pointer, byref(name_of(what)), hf.as_bytes(context), wait_ms,
                                   byref(retired), byref(error)), error)
    return retired.value


def drop(store, what, force=False, wait_ms=0):
    error = CError()
    with store.call(wait_ms):
        check(lib().hf_table_drop(store.pointer, byref(name_of(what)), force, wait_ms, byref(error)), error)


def tables(store, what=None, retired_too=False):
    """[(text, id, is retired, references)]"""
    pointer, error = c_void_p(), CError()
    name = byref(name_of(what)) if what else None
    check(lib().hf_table_list_read(store.pointer, name, retired_too, byref(pointer), byref(error)), error)
    views = [lib().hf_table_list_at(pointer, i)[0] for i in range(lib().hf_table_list_count(pointer))]
    found = [(text_of((v.name.cluster, v.name.database, v.name.table)), v.id, v.dropped_ms > 0, v.references)
             for v in views]
    assert all(0 < v.created_ms <= (v.dropped_ms or 2**62) for v in views)
    lib().hf_table_list_free(pointer)
    return found


def refs(store, what):
    found, error = [], CError()
    callback = ContextFn(lambda _, context: found.append(context.decode()))
    check(lib().hf_table_refs(store.pointer, byref(name_of(what)), callback, None, byref(error)), error)
    return found


class Damaged(hf.HfError):
    """What stood in the way: [(problem, table name, context, id)]"""

    faults = ()


def adoption(**options):
    raw = Adoption(size=ctypes.sizeof(Adoption))
    for name, value in options.items():
        setattr(raw, name, value if isinstance(value, (bool, int)) else hf.as_bytes(str(value)))
    return raw


def leave(store, **options):
    error = CError()
    check(lib().hf_table_leave(store.pointer, byref(adoption(**options)), byref(error)), error)


def adopt(store, **options):
    raw, moved = adoption(**options), c_int64()
    raw.moved = ctypes.pointer(moved)
    faults, adopted, error = [], Adopted(), CError()

    def report(_, fault):
        values = (fault[0].problem, fault[0].table_name, fault[0].context_id, fault[0].advisory_id)
        faults.append(tuple(v if v is None else v.decode(errors="replace") for v in values))

    callback = FaultFn(report)
    status = lib().hf_table_adopt(store.pointer, byref(raw), callback, None, byref(adopted), byref(error))
    if status == hf.Status.BAD_DATA:
        damaged = Damaged(status, error)
        damaged.faults = faults
        raise damaged
    check(status, error)
    assert not faults
    adopted.moved = moved.value
    return adopted


def registry_sql(kind, statement):
    """On the store's own tables, wherever they are: rows of the statement."""
    if not kind.local:
        return kind.database.sql(statement.replace("@", "holdfast."))
    with sqlite3.connect(f"{kind.url.removeprefix('local:')}/holdfast.db") as connection:
        return [tuple(row) for row in connection.execute(statement.replace("@", ""))]

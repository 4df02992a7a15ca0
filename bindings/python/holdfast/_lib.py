"""libholdfast through ctypes: its structs, its functions, and how it is found."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint32,
    c_void_p,
)
from typing import Any, Dict, List, Optional, Tuple

from . import errors

NEEDS = (0, 1, 0)
NAME = "libholdfast.0.dylib" if sys.platform == "darwin" else "libholdfast.so.0"
GET_IT = (
    "install Holdfast's library where the linker finds it, or set HOLDFAST_LIBRARY to the path of"
    f" {NAME}"
)


class CError(Structure):
    _fields_ = [
        ("code", c_int),
        ("sqlstate", c_char * 6),
        ("message", c_char * 1024),
        ("hint", c_char * 512),
        ("position", c_int),
    ]


LogFn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
LostFn = CFUNCTYPE(None, c_void_p, POINTER(CError), c_void_p)
YieldFn = LostFn
WaitFn = CFUNCTYPE(None, POINTER(CError), c_void_p)
StartedFn = CFUNCTYPE(None, c_void_p, c_int, POINTER(CError), c_void_p)
FindingFn = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p, c_char_p)
CursorFn = CFUNCTYPE(None, c_void_p, c_char_p, c_int64)
ContextFn = CFUNCTYPE(None, c_void_p, c_char_p)


class Span(Structure):
    _fields_ = [
        ("kind", c_int),
        ("status", c_int),
        ("label", c_void_p),
        ("label_size", c_size_t),
        ("key", c_int64),
        ("space", c_int),
        ("mode", c_int),
        ("slot", c_uint),
        ("token", c_int64),
        ("start_ns", c_int64),
        ("end_ns", c_int64),
        ("traceparent", c_char_p),
        ("parent", c_char_p),
        ("link", c_char_p),
    ]


SpanFn = CFUNCTYPE(None, POINTER(Span), c_void_p)


class StoreOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("url", c_char_p),
        ("application", c_char_p),
        ("records", c_int),
        ("ping_interval_ms", c_int),
        ("ping_deadline_ms", c_int),
        ("kill_ms", c_int),
        ("connect_timeout_ms", c_int),
        ("max_waits", c_int),
        ("max_keys", c_int),
        ("session_pool", c_bool),
        ("dispatch", c_bool),
        ("log", LogFn),
        ("log_arg", c_void_p),
        ("max_transactions", c_int),
        ("registry", c_void_p),
        ("machine", c_int),
        ("environment", c_bool),
        ("patience_ms", c_int64),
        ("on_span", SpanFn),
        ("span_arg", c_void_p),
    ]


class Target(Structure):
    _fields_ = [
        ("label", c_char_p),
        ("label_size", c_size_t),
        ("derivation", c_int),
        ("space", c_int),
        ("key", c_int64),
        ("pair", c_int32 * 2),
    ]


LEASE = 2  # of hf_lifetime


class LockSpec(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("targets", POINTER(Target)),
        ("target_count", c_size_t),
        ("mode", c_int),
        ("lifetime", c_int),
        ("wait_ms", c_int64),
        ("flags", c_uint),
        ("slots", c_uint),
        ("on_lost", LostFn),
        ("on_wait", WaitFn),
        ("arg", c_void_p),
        ("cancel", c_void_p),
        ("owner", c_int64),
        ("lease_ms", c_int),
        ("on_yield", YieldFn),
        ("traceparent", c_char_p),
    ]


class LockView(Structure):
    _fields_ = [
        ("key", c_int64),
        ("space", c_int),
        ("mode", c_int),
        ("waiting", c_bool),
        ("ours", c_bool),
        ("session_known", c_bool),
        ("lifetime", c_int),
        ("label", c_char_p),
        ("application", c_char_p),
        ("host", c_char_p),
        ("pid", c_int),
        ("backend_pid", c_int),
        ("age_ms", c_int64),
        ("age_is_bound", c_bool),
        ("token", c_int64),
        ("slot", c_uint),
        ("blocked_by", c_char_p),
        ("name", c_char_p),
        ("pattern", c_char_p),
        ("idle_ms", c_int64),
        ("idle_hidden", c_bool),
        ("seen_ms", c_int64),
        ("times", c_int64),
        ("known_as", c_char_p),
        ("left_ms", c_int64),
        ("traceparent", c_char_p),
    ]


class Value(Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t), ("binary", c_bool)]


class TxStats(Structure):
    _fields_ = [
        ("label", c_void_p),
        ("label_size", c_size_t),
        ("key", c_int64),
        ("attempts", c_uint),
        ("wait_ms", c_int64),
        ("hold_ms", c_int64),
        ("outcome", c_int),
    ]


StatsFn = CFUNCTYPE(None, POINTER(TxStats), c_void_p)


class TxOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("labels", POINTER(Target)),
        ("label_count", c_size_t),
        ("isolation", c_int),
        ("read_only", c_bool),
        ("retry_unique", c_bool),
        ("deadline_ms", c_int64),
        ("max_attempts", c_uint),
        ("backoff_min_ms", c_int),
        ("backoff_max_ms", c_int),
        ("on_stats", StatsFn),
        ("stats_arg", c_void_p),
        ("expect_operation", c_bool),
        ("database", c_char_p),
        ("cancel", c_void_p),
        ("owner", c_int64),
        ("traceparent", c_char_p),
    ]


class TableName(Structure):
    _fields_ = [("cluster", c_char_p), ("database", c_char_p), ("table", c_char_p)]


class TableView(Structure):
    _fields_ = [
        ("name", TableName),
        ("id", c_int64),
        ("created_ms", c_int64),
        ("dropped_ms", c_int64),
        ("references", c_int64),
    ]


class NetworkOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("schema", c_char_p),
        ("latest_cursor", c_char_p),
        ("oldest_cursor", c_char_p),
        ("read_wait_ms", c_int64),
    ]


class Range(Structure):
    _fields_ = [("from_", c_int64), ("to", c_int64)]


E, P, PP = POINTER(CError), c_void_p, POINTER(c_void_p)
T, I64 = POINTER(TableName), POINTER(c_int64)
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "hf_version": (c_char_p, []),
    "hf_status_text": (c_char_p, [c_int]),
    "hf_derivation_name": (c_char_p, [c_int]),
    "hf_derivation_parse": (c_int, [c_char_p, POINTER(c_int), E]),
    "hf_derivation_space": (c_int, [c_int]),
    "hf_key_derive": (c_int, [c_int, c_char_p, c_size_t, I64, E]),
    "hf_key_split": (None, [c_int64, POINTER(c_uint32), POINTER(c_uint32)]),
    "hf_key_join": (c_int64, [c_uint32, c_uint32]),
    "hf_registry_read": (c_int, [c_char_p, PP, E]),
    "hf_registry_free": (None, [P]),
    "hf_registry_find": (c_void_p, [P, c_char_p]),
    "hf_registry_fill": (c_int, [P, POINTER(c_char_p), c_size_t, PP, E]),
    "hf_store_open": (c_int, [POINTER(StoreOptions), PP, E]),
    "hf_store_close": (None, [P]),
    "hf_store_interrupt": (None, [P]),
    "hf_store_registry": (c_void_p, [P]),
    "hf_store_name": (c_char_p, [P]),
    "hf_store_is_local": (c_bool, [P]),
    "hf_store_has_records": (c_bool, [P]),
    "hf_store_init": (c_int, [P, POINTER(c_int), POINTER(c_int), E]),
    "hf_store_examine": (c_int, [P, FindingFn, P, E]),
    "hf_cancel_create": (c_int, [PP, E]),
    "hf_cancel_trigger": (None, [P]),
    "hf_cancel_free": (None, [P]),
    "hf_lock_acquire": (c_int, [P, POINTER(LockSpec), PP, E]),
    "hf_lock_release": (c_int, [P, E]),
    "hf_lock_start": (c_int, [P, POINTER(LockSpec), StartedFn, E]),
    "hf_lock_free": (None, [P]),
    "hf_lock_get_state": (c_int, [P]),
    "hf_lock_token": (c_int, [P, I64, E]),
    "hf_lock_note": (None, [P, c_char_p, c_char_p]),
    "hf_lock_key": (c_int64, [P]),
    "hf_lock_slot": (c_uint, [P]),
    "hf_lock_traceparent": (c_char_p, [P]),
    "hf_schedule_claim": (c_int, [P, c_char_p, c_int64, POINTER(c_bool), I64, E]),
    "hf_lock_list_read": (c_int, [P, PP, E]),
    "hf_lock_list_read_past": (c_int, [P, c_int64, PP, E]),
    "hf_lock_list_count": (c_size_t, [P]),
    "hf_lock_list_at": (POINTER(LockView), [P, c_size_t]),
    "hf_lock_list_free": (None, [P]),
    "hf_tx_begin": (c_int, [P, POINTER(TxOptions), PP, E]),
    "hf_tx_begin_on": (c_int, [P, POINTER(TxOptions), PP, E]),
    "hf_tx_end": (c_int, [P, c_int, E]),
    "hf_tx_free": (None, [P]),
    "hf_tx_serialize": (c_int, [P, POINTER(Target), E]),
    "hf_tx_query": (c_int, [P, c_char_p, c_size_t, POINTER(Value), c_bool, PP, E]),
    "hf_tx_queue": (c_int, [P, c_char_p, c_size_t, POINTER(Value), E]),
    "hf_tx_attempt": (c_uint, [P]),
    "hf_tx_traceparent": (c_char_p, [P]),
    "hf_rows_count": (c_size_t, [P]),
    "hf_rows_columns": (c_size_t, [P]),
    "hf_rows_column": (c_char_p, [P, c_size_t]),
    "hf_rows_value": (c_void_p, [P, c_size_t, c_size_t, POINTER(c_size_t)]),
    "hf_rows_affected": (c_int64, [P]),
    "hf_rows_free": (None, [P]),
    "hf_table_name_parse": (c_int, [c_char_p, T, PP, E]),
    "hf_table_register": (c_int, [P, T, I64, POINTER(c_bool), E]),
    "hf_table_find": (c_int, [P, T, I64, E]),
    "hf_table_lock": (c_int, [P, T, POINTER(LockSpec), PP, E]),
    "hf_table_lock_start": (c_int, [P, T, POINTER(LockSpec), StartedFn, E]),
    "hf_table_ref": (c_int, [P, T, c_char_p, I64, E]),
    "hf_table_unref": (c_int, [P, T, c_char_p, c_int64, POINTER(c_bool), E]),
    "hf_table_drop": (c_int, [P, T, c_bool, c_int64, E]),
    "hf_table_list_read": (c_int, [P, T, c_bool, PP, E]),
    "hf_table_list_count": (c_size_t, [P]),
    "hf_table_list_at": (POINTER(TableView), [P, c_size_t]),
    "hf_table_list_free": (None, [P]),
    "hf_table_refs": (c_int, [P, T, ContextFn, P, E]),
    "hf_network_open": (c_int, [P, POINTER(NetworkOptions), PP, E]),
    "hf_network_free": (None, [P]),
    "hf_cursor_get": (c_int, [P, c_char_p, POINTER(c_bool), I64, E]),
    "hf_cursor_set": (c_int, [P, c_char_p, c_int64, E]),
    "hf_cursor_set_min": (c_int, [P, c_char_p, c_int64, E]),
    "hf_cursor_advance": (c_int, [P, c_char_p, c_int64, E]),
    "hf_cursor_swap": (c_int, [P, c_char_p, c_int64, c_int64, E]),
    "hf_cursor_list": (c_int, [P, CursorFn, P, E]),
    "hf_network_gaps": (
        c_int,
        [P, c_int64, c_int64, POINTER(POINTER(Range)), POINTER(c_size_t), E],
    ),
}


def load(path: Optional[str]) -> Any:
    """CDLL, so that the GIL is free while a call waits."""
    try:
        library = ctypes.CDLL(path or NAME)
    except OSError as error:
        raise errors.LibraryError(f"libholdfast cannot be loaded: {error}", GET_IT) from error
    needed = ".".join(map(str, NEEDS))
    try:
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
        version = library.hf_version().decode()
    except AttributeError as error:
        raise errors.LibraryError(
            f"{path or NAME} is too old for this package, which needs {needed}: {error}", GET_IT
        ) from error
    if tuple(int(part) for part in version.split("-")[0].split(".")) < NEEDS:
        raise errors.LibraryError(
            f"{path or NAME} is version {version}; this package needs {needed} or later", GET_IT
        )
    return library


@functools.lru_cache(maxsize=None)
def lib() -> Any:
    """Loaded at the first use, so that what fails then is an Error that can be caught."""
    return load(os.environ.get("HOLDFAST_LIBRARY"))


@functools.lru_cache(maxsize=None)
def libc_free() -> Any:
    function = ctypes.CDLL(None).free
    function.restype = None
    function.argtypes = [c_void_p]
    return function


def text(raw: Optional[bytes]) -> str:
    return raw.decode(errors="replace") if raw else ""


def raised(status: int, error: CError) -> errors.Error:
    return errors.of(
        status or error.code,
        text(error.message) or text(lib().hf_status_text(status)),
        text(error.hint),
        text(error.sqlstate),
        error.position,
    )


def check(status: int, error: CError) -> None:
    if status:
        raise raised(status, error)

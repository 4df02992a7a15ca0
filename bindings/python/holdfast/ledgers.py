"""Networks: cursors, and what is missing of their ledgers."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref
from typing import Any, Dict, List, Optional, Tuple

from . import _lib, keys
from ._handle import Handle, abandon
from ._lib import CError, check, lib


class Network:
    """
    The ledgers of one network in a store. What only reads waits up to read_wait seconds for a table
    that somebody locks (NotAcquiredError); None: for ever. It ends with its store.
    """

    def __init__(
        self,
        store: Handle,
        name: str,
        *,
        schema: Optional[str] = None,
        latest_cursor: Optional[str] = None,
        oldest_cursor: Optional[str] = None,
        read_wait: Optional[float] = None,
    ) -> None:
        raw = _lib.NetworkOptions(
            size=ctypes.sizeof(_lib.NetworkOptions),
            name=keys.as_bytes(name, "a network's name"),
            schema=keys.as_text(schema, "schema"),
            latest_cursor=keys.as_text(latest_cursor, "latest_cursor"),
            oldest_cursor=keys.as_text(oldest_cursor, "oldest_cursor"),
            read_wait_ms=max(0, keys.milliseconds(read_wait, "read_wait")),
        )
        pointer, error = ctypes.c_void_p(), CError()
        with store as on:
            status = lib().hf_network_open(on, byref(raw), byref(pointer), byref(error))
            check(status, error)
            assert pointer.value
            self._handle = Handle("network", pointer.value, lib().hf_network_free, store)

    def get(self, cursor: str) -> Optional[int]:
        """None: there is no such cursor, which is not the same as 0."""
        name, found, value = keys.as_bytes(cursor, "a cursor"), ctypes.c_bool(), ctypes.c_int64()
        error = CError()
        with self._handle as network:
            status = lib().hf_cursor_get(network, name, byref(found), byref(value), byref(error))
            check(status, error)
        return value.value if found.value else None

    def _move(self, function: str, cursor: str, *values: int) -> None:
        name, error = keys.as_bytes(cursor, "a cursor"), CError()
        numbers = [keys.integer(value, "a value") for value in values]
        with self._handle as network:
            check(getattr(lib(), function)(network, name, *numbers, byref(error)), error)

    def set(self, cursor: str, value: int) -> None:
        """Creates it where it is missing."""
        self._move("hf_cursor_set", cursor, value)

    def set_min(self, cursor: str, value: int) -> None:
        """Lowers it, or leaves it when it is lower already. CursorError: there is none."""
        self._move("hf_cursor_set_min", cursor, value)

    def advance(self, cursor: str, value: int) -> None:
        """To value, only from value - 1, else CursorError."""
        self._move("hf_cursor_advance", cursor, value)

    def swap(self, cursor: str, old: int, new: int) -> None:
        """To new, only from old, else CursorError."""
        self._move("hf_cursor_swap", cursor, old, new)

    def cursors(self) -> Dict[str, int]:
        """Every cursor that is a number."""
        found: Dict[str, int] = {}
        error = CError()

        def add(_: Any, name: bytes, value: int) -> None:
            found[_lib.text(name)] = value

        with self._handle as network:
            check(lib().hf_cursor_list(network, _lib.CursorFn(add), None, byref(error)), error)
        return found

    def gaps(self, first: int = 0, last: int = 0) -> List[Tuple[int, int]]:
        """
        The ledgers between first and last that are missing, as ranges with both ends. 0: from the
        first that is wanted and kept, to the latest.
        """
        ranges, count, error = POINTER(_lib.Range)(), ctypes.c_size_t(), CError()
        ends = keys.integer(first, "first"), keys.integer(last, "last")
        with self._handle as network:
            status = lib().hf_network_gaps(
                network, *ends, byref(ranges), byref(count), byref(error)
            )
            check(status, error)
        try:
            return [(ranges[at].from_, ranges[at].to) for at in range(count.value)]
        finally:
            _lib.libc_free()(ctypes.cast(ranges, ctypes.c_void_p))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and not handle.closing:
            abandon(handle)

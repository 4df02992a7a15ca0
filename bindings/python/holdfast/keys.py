"""What to lock: labels, numbers, pairs; and the keys that labels stand for."""

from __future__ import annotations

import ctypes
import functools
import math
from ctypes import byref
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import errors
from ._lib import CError, check, lib
from ._lib import Target as CTarget

FIXED = 6
PAIR = 1


@dataclass(frozen=True)
class Label:
    """
    A label whose key other programs derive in another way, such as Label("nightly", "hashtext"), or
    one that names the number key. "minted" is for labels that are the names of shared tables.
    """

    text: Union[str, bytes]
    derivation: str = "sha256"
    key: Optional[int] = None


Target = Union[str, bytes, int, Tuple[int, int], Label]
Targets = Union[Target, Sequence[Target]]


def as_bytes(text: Any, what: str, nul: bool = False) -> bytes:
    if isinstance(text, str):
        try:
            raw = text.encode()
        except UnicodeEncodeError as error:
            raise errors.InvalidError(f"{what} cannot be encoded as UTF-8: {error}") from None
    elif isinstance(text, bytes):
        raw = text
    else:
        raise errors.InvalidError(f"{what} is text, not {type(text).__name__}")
    if not nul and b"\0" in raw:
        raise errors.InvalidError(f"{what} has a character NUL in it")
    return raw


def as_text(text: Optional[str], what: str) -> Optional[bytes]:
    return None if text is None else as_bytes(text, what)


def integer(number: Any, what: str, bits: int = 64) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise errors.InvalidError(f"{what} is a whole number, not {type(number).__name__}")
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise errors.InvalidError(f"{what} does not fit into {bits} bits: {number}")
    return number


def milliseconds(seconds: Optional[float], what: str = "wait") -> int:
    """-1 for None, which is for ever. Whoever waits at all waits for a millisecond."""
    if seconds is None:
        return -1
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds >= 0:
        raise errors.InvalidError(f"{what} is None or a number of seconds from 0 on: {seconds!r}")
    return -1 if seconds > 1e12 else math.ceil(seconds * 1000)


@functools.lru_cache(maxsize=None)
def derivation_number(name: str) -> int:
    number, error = ctypes.c_int(), CError()
    raw = as_bytes(name, "a derivation")
    check(lib().hf_derivation_parse(raw, byref(number), byref(error)), error)
    return number.value


def is_pair(derivation: str) -> bool:
    return bool(lib().hf_derivation_space(derivation_number(derivation)) == PAIR)


def key(label: Union[str, bytes], derivation: str = "sha256") -> int:
    """
    The key of a label. Where the derivation makes two int4 (see split) the first is the high half.
    """
    raw, result, error = as_bytes(label, "a label", nul=True), ctypes.c_int64(), CError()
    number = derivation_number(derivation)
    check(lib().hf_key_derive(number, raw, len(raw), byref(result), byref(error)), error)
    return result.value


def split(key: int) -> Tuple[int, int]:
    """How pg_locks shows a key: classid and objid, both unsigned."""
    number = integer(key, "a key") & 0xFFFFFFFFFFFFFFFF
    return number >> 32, number & 0xFFFFFFFF


def join(classid: int, objid: int) -> int:
    high, low = integer(classid, "classid", 33), integer(objid, "objid", 33)
    number = (high & 0xFFFFFFFF) << 32 | low & 0xFFFFFFFF
    return number - (1 << 64) if number >> 63 else number


def c_target(what: Target) -> CTarget:
    if isinstance(what, Label):
        raw = as_bytes(what.text, "a label", nul=True)
        if what.key is not None:
            number = integer(what.key, "a key")
            return CTarget(label=raw, label_size=len(raw), derivation=FIXED, key=number)
        derivation = derivation_number(what.derivation)
        if derivation == FIXED:
            raise errors.InvalidError("a fixed key is a number: Label(text, key=…)")
        return CTarget(label=raw, label_size=len(raw), derivation=derivation)
    if isinstance(what, tuple):
        if len(what) != 2:
            raise errors.InvalidError(f"two numbers make a key, not {len(what)}")
        pair = (ctypes.c_int32 * 2)(*(integer(one, "half of a pair", 32) for one in what))
        return CTarget(space=PAIR, pair=pair)
    if isinstance(what, (str, bytes)):
        raw = as_bytes(what, "a label", nul=True)
        return CTarget(label=raw, label_size=len(raw))
    return CTarget(derivation=FIXED, key=integer(what, "a key"))


def target_list(what: Targets) -> List[Target]:
    """A tuple of two is a pair of numbers; a set of locks is a list."""
    return list(what) if isinstance(what, (list, set, frozenset)) else [what]  # type: ignore


def c_targets(what: Sequence[Target]) -> Any:
    return (CTarget * len(what))(*[c_target(one) for one in what])

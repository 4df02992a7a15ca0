"""Spans of waits, holds and transactions, for OpenTelemetry."""

from __future__ import annotations

import ctypes
import enum
import logging
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import _lib
from ._threads import Callback
from .errors import Status

log = logging.getLogger("holdfast")


class SpanKind(enum.IntEnum):
    WAIT = 0
    HOLD = 1
    TRANSACTION = 2


@dataclass(frozen=True)
class Span:
    """
    One that has ended; see hf_span for each field. traceparent, parent and link are as W3C Trace
    Context writes them, or None. Times are Unix time, in nanoseconds.
    """

    kind: SpanKind
    status: Status
    label: Optional[str]
    key: int
    shared: bool
    slot: int
    token: int
    start_ns: int
    end_ns: int
    traceparent: str
    parent: Optional[str]
    link: Optional[str]


def reporter(tell: Callable[[Span], Any]) -> Any:
    def report(raw: Any, _: Any) -> None:
        one = raw[0]
        label = one.label and ctypes.string_at(one.label, one.label_size).decode(errors="replace")
        span = Span(
            kind=SpanKind(one.kind),
            status=Status(one.status),
            label=label,
            key=one.key,
            shared=bool(one.mode),
            slot=one.slot,
            token=one.token,
            start_ns=one.start_ns,
            end_ns=one.end_ns,
            traceparent=_lib.text(one.traceparent),
            parent=_lib.text(one.parent) or None,
            link=_lib.text(one.link) or None,
        )
        try:
            with Callback():
                tell(span)
        except Exception:
            log.exception("the callback on_span failed")

    return _lib.SpanFn(report)


__all__ = ["Span", "SpanKind"]

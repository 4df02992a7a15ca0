"""
Holdfast: dependable advisory locks and serialised transactions on PostgreSQL, or on a local store.

    import holdfast

    with holdfast.Store("postgresql://app@db.example.com/app") as store:
        with store.lock("nightly", wait=0) as lock:
            work(lock.token)

holdfast.aio is the same for asyncio. It needs libholdfast; HOLDFAST_LIBRARY may name its path.
"""

from ._serialize import serialize
from .errors import (
    BadDataError,
    CollisionError,
    ConfigError,
    CursorError,
    DatabaseError,
    DeadlockError,
    Error,
    ExhaustedError,
    ForkedError,
    InDoubtError,
    InterruptedError,
    InvalidError,
    LibraryError,
    LostError,
    NoMemoryError,
    NoSchemaError,
    NotAcquiredError,
    NoTransactionError,
    OrderError,
    QuotaError,
    SlotsError,
    Status,
    SystemError,
    UnreachableError,
)
from .keys import Label, join, key, split
from .ledgers import Network
from .locks import Lock, State
from .store import Finding, Level, LockView, Records, Store, Table
from .tracing import Span, SpanKind
from .transactions import Isolation, Rows, Stats, Tx

__version__ = "0.1.0"


def version() -> str:
    """The version of the library that is loaded."""
    from ._lib import lib

    return str(lib().hf_version().decode())


__all__ = [
    "BadDataError",
    "CollisionError",
    "ConfigError",
    "CursorError",
    "DatabaseError",
    "DeadlockError",
    "Error",
    "ExhaustedError",
    "Finding",
    "ForkedError",
    "InDoubtError",
    "InterruptedError",
    "InvalidError",
    "Isolation",
    "Label",
    "Level",
    "LibraryError",
    "Lock",
    "LockView",
    "LostError",
    "Network",
    "NoMemoryError",
    "NoSchemaError",
    "NoTransactionError",
    "NotAcquiredError",
    "OrderError",
    "QuotaError",
    "Records",
    "Rows",
    "SlotsError",
    "Span",
    "SpanKind",
    "State",
    "Stats",
    "Status",
    "Store",
    "SystemError",
    "Table",
    "Tx",
    "UnreachableError",
    "join",
    "key",
    "serialize",
    "split",
    "version",
]

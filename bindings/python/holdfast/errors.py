"""What can go wrong: one exception for each status of the library, all of them under Error."""

from __future__ import annotations

import enum
from typing import Any, Dict, Optional, Type


class Status(enum.IntEnum):
    """The hf_status of holdfast/locks.h."""

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


class Error(Exception):
    """
    status says what happened, message names the label and the holder, and hint (may be "") what to
    do about it. sqlstate is "" when no server said so; position is the character of the SQL
    statement that it is about, from 1, or 0.
    """

    status: Optional[Status] = None

    def __init__(
        self, message: str, hint: str = "", sqlstate: str = "", position: int = 0, code: int = 0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.sqlstate = sqlstate
        self.position = position
        self.code = code or int(self.status or 0)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.hint, self.sqlstate, self.position, self.code)


class LibraryError(Error, ImportError):
    """libholdfast is missing or too old."""


class InvalidError(Error, ValueError):
    """An argument cannot be right, or something is used after its end."""

    status = Status.INVALID


class BadDataError(Error):
    status = Status.BAD_DATA


class NoMemoryError(Error, MemoryError):
    status = Status.NO_MEMORY


class UnreachableError(Error, ConnectionError):
    status = Status.UNREACHABLE


class ConfigError(Error):
    """The store or its configuration is not fit for this."""

    status = Status.CONFIG


class NoSchemaError(Error):
    """The holdfast schema is missing, too old or too new: `holdfast init`."""

    status = Status.NO_SCHEMA


class NotAcquiredError(Error):
    """Somebody else holds the lock; the message says who."""

    status = Status.NOT_ACQUIRED


class LostError(Error):
    """The lock was lost before its release: somebody else may have held it since."""

    status = Status.LOST


class OrderError(Error):
    """Locks are taken in an order that could deadlock, or a label comes after the snapshot."""

    status = Status.ORDER


class DeadlockError(Error):
    status = Status.DEADLOCK


class CollisionError(Error):
    """Two labels share one key."""

    status = Status.COLLISION


class SlotsError(Error):
    """Other holders use another number of slots."""

    status = Status.SLOTS


class QuotaError(Error):
    """Too many locks."""

    status = Status.QUOTA


class NoTransactionError(Error):
    """A transaction lock needs an open transaction."""

    status = Status.NO_TRANSACTION


class ForkedError(Error):
    """The store belongs to the parent process: open one here."""

    status = Status.FORKED


class InterruptedError(Error):
    """The store was closed, or interrupted, while the call waited."""

    status = Status.INTERRUPTED


class DatabaseError(Error):
    """The database reported an error; see sqlstate."""

    status = Status.DATABASE


class SystemError(Error):
    """The operating system reported an error."""

    status = Status.SYSTEM


class InDoubtError(Error):
    """The transaction may or may not have committed; the message names it."""

    status = Status.IN_DOUBT


class ExhaustedError(Error):
    """Not committed: the attempts or the time for a transaction are spent."""

    status = Status.EXHAUSTED


class CursorError(Error):
    """The cursor does not stand where it should; nothing was changed."""

    status = Status.CURSOR


BY_STATUS: Dict[int, Type[Error]] = {
    int(one.status): one for one in Error.__subclasses__() if one.status is not None
}


def of(code: int, message: str, hint: str, sqlstate: str = "", position: int = 0) -> Error:
    """A status of a newer library than this package is a plain Error with its number in code."""
    return BY_STATUS.get(code, Error)(message, hint, sqlstate, position, code)

"""
Write skew: two accounts may each be overdrawn as long as their sum stays positive. A serialisable
writer and a READ COMMITTED one break that rule together, and PostgreSQL does not see it, because
it watches serialisable transactions only. A common label keeps it, whatever their levels.
"""

import threading

import pytest

import hf
import hf_tx
from awaiting import Background, eventually
from hf import Status
from hf_tx import Isolation, failure

LABEL = "Withdraw:joint"
LEVELS = [(Isolation.SERIALIZABLE, Isolation.READ_COMMITTED),
          (Isolation.READ_COMMITTED, Isolation.SERIALIZABLE),
          (Isolation.REPEATABLE_READ, Isolation.READ_COMMITTED)]
each_mix = pytest.mark.parametrize("levels", LEVELS, ids=lambda mix: "-".join(i.name.lower() for i in mix))


@pytest.fixture
def joint(db):
    db.sql("create table joint (name text primary key, balance int not null)", user="app")
    db.sql("insert into joint values ('A', 100), ('B', 100)", user="app")
    return db


def withdraw(tx, name, between=lambda: None):
    """150 from one account, if the sum of both allows it."""
    total = int(tx.value("select sum(balance) from joint"))
    between()
    if total - 150 <= 0:
        raise failure(Status.BAD_DATA, "the sum would not be positive")
    tx.queue("update joint set balance = balance - 150 where name = $1", name)


def total(db):
    return db.value("select sum(balance) from joint")


@each_mix
def test_rule_breaks_without_labels(joint, levels):
    both_have_read = threading.Barrier(2)
    with hf.Store(joint.url()) as one, hf.Store(joint.url()) as two:
        calls = [Background(hf_tx.Call, store, None,
                            lambda tx, name=name: withdraw(tx, name, lambda: both_have_read.wait(20)),
                            isolation=level)
                 for store, name, level in ((one, "A", levels[0]), (two, "B", levels[1]))]
        assert [call.result().status for call in calls] == [Status.OK, Status.OK]
    assert total(joint) == -100


@each_mix
def test_rule_holds_with_a_common_label(joint, levels):
    """The second is let to try while the first is between its read and its write, as above."""
    def let_the_other_try():
        other = Background(hf_tx.Call, two, LABEL, lambda tx: withdraw(tx, "B"), isolation=levels[1])
        others.append(other)
        eventually(lambda: joint.waiters(hf.derive(LABEL)))

    others = []
    with hf.Store(joint.url()) as one, hf.Store(joint.url()) as two:
        first = hf_tx.Call(one, LABEL, lambda tx: withdraw(tx, "A", let_the_other_try), isolation=levels[0])
        assert first.raised is None
        assert first.status == Status.OK
        second = others[0].result()
    assert (second.status, second.attempts) == (Status.BAD_DATA, 1)
    assert total(joint) == 50


def test_two_serialisable_writers_are_kept_by_postgresql_alone(joint):
    """Where labels are not needed for the rule, but a retry is: the difference to the mix above."""
    both_have_read = threading.Barrier(2)
    attempts = []

    def wait():
        attempts.append(1)
        if len(attempts) <= 2:
            both_have_read.wait(20)

    with hf.Store(joint.url()) as one, hf.Store(joint.url()) as two:
        calls = [Background(hf_tx.Call, store, None, lambda tx, name=name: withdraw(tx, name, wait))
                 for store, name in ((one, "A"), (two, "B"))]
        statuses = sorted(call.result().status for call in calls)
    assert statuses == [Status.OK, Status.BAD_DATA]
    assert len(attempts) == 3
    assert total(joint) == 50

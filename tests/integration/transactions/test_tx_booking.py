"""One booking per tenant and day, and what a process leaves that dies in the middle of one."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import hf
import hf_tx
from awaiting import Background, eventually
from hf import Status
from hf_tx import failure

TAKEN = "that day is taken"


@pytest.fixture
def bookings(tx_kind):
    """Without a unique constraint: nothing but the label stands between two bookings of one day."""
    with tx_kind.open() as store:
        hf_tx.transact(store, None,
                       lambda tx: tx.query("create table bookings (tenant text, day text, guest text)"))
    return tx_kind


def book(tx, tenant, day, guest, between=lambda: None):
    if tx.query("select guest from bookings where tenant = $1 and day = $2", tenant, day):
        raise failure(Status.BAD_DATA, TAKEN)
    between()
    tx.queue("insert into bookings values ($1, $2, $3)", tenant, day, guest)


def booked(store):
    return hf_tx.transact(store, None, lambda tx: tx.query("select guest from bookings"), read_only=True)


def test_of_two_concurrent_bookings_one_succeeds_and_the_other_is_told_of_the_conflict(bookings):
    label, others = "acme:2026-03-01", []

    def let_the_other_try():
        asking = threading.Event()

        def try_it():
            asking.set()
            return hf_tx.Call(two, label, lambda tx: book(tx, "acme", "2026-03-01", "Bob"))

        others.append(Background(try_it))
        assert asking.wait(20)
        if bookings.database:
            eventually(lambda: bookings.database.waiters(hf.derive(label)))

    with bookings.open() as one, bookings.open() as two:
        first = hf_tx.Call(one, label,
                           lambda tx: book(tx, "acme", "2026-03-01", "Ann", let_the_other_try))
        assert first.raised is None
        assert first.status == Status.OK
        second = others[0].result()
        assert second.status == Status.BAD_DATA
        assert second.error.message.decode() == TAKEN
        assert second.attempts == 1
        assert booked(one) == [["Ann"]]


def test_racing_bookings_of_many_days_give_each_day_to_one(bookings):
    days = [f"2026-04-{day:02}" for day in range(1, 16)]
    with bookings.open() as one, bookings.open() as two:
        def race(store, guest):
            return [hf_tx.Call(store, f"acme:{day}", lambda tx, day=day: book(tx, "acme", day, guest)).status
                    for day in days]

        racers = [Background(race, store, guest)
                  for store, guest in ((one, "Ann"), (two, "Bob"), (one, "Cid"), (two, "Dan"))]
        outcomes = [racer.result(40) for racer in racers]
        assert len(booked(one)) == len(days)
    for of_one_day in zip(*outcomes):
        assert sorted(of_one_day) == [Status.OK] + [Status.BAD_DATA] * 3


def test_bookings_of_different_days_do_not_wait_for_each_other(tx_server):
    with tx_server.open() as one, tx_server.open() as two:
        def body(tx):
            tx.query("select 1")
            assert hf_tx.Call(two, "acme:2026-03-02", lambda tx: tx.query("select 1")).status == Status.OK

        hf_tx.transact(one, "acme:2026-03-01", body)


def test_process_killed_in_the_callback_leaves_nothing_held_and_nothing_written(tx_kind):
    program = hf.PROGRAMS / "tx_killed.py"
    dead = subprocess.run([sys.executable, program, tx_kind.url, "Count:1", "Count:2"], timeout=30,
                          env={**os.environ, "HOLDFAST_BUILD": str(hf.BUILD)})
    assert dead.returncode == -signal.SIGKILL
    if tx_kind.database:
        eventually(lambda: not tx_kind.database.advisory_locks(), what="its locks are gone")
    with tx_kind.open() as store:
        rows = hf_tx.transact(store, ["Count:1", "Count:2"], lambda tx: tx.query("select id, n from counter"),
                              deadline_ms=20_000)
    assert rows == [["1", "0"]]

"""Spans: told when they have ended, with the parent that was given and the hold that was waited for."""

import asyncio
import threading
import time

import pytest

import holdfast
import holdfast.aio
from conftest import POOLED, eventually
from holdfast import SpanKind, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture(name="told")
def made_told():
    return []


@pytest.fixture(name="traced")
def opened(url, told):
    with holdfast.Store(url, on_span=told.append) as store:
        yield store


@pytest.fixture(name="how")
def given_how(store):
    """Session locks, or leases where a pooler has none."""
    if not POOLED:
        return {}
    if not store.has_records:
        pytest.skip("leases need the schema")
    return {"lease": 5}


def test_wait_and_hold_are_told_with_parent_times_and_link(traced, told, how):
    before = time.time_ns()
    first = traced.lock("Test:traced", traceparent=PARENT, **how)
    waits = threading.Event()
    waiter = threading.Thread(target=lambda: traced.lock(
        "Test:traced", traceparent=PARENT, on_wait=lambda why: waits.set(), **how).release())
    waiter.start()
    assert waits.wait(20)
    first.release()
    waiter.join()
    hold, = [span for span in told if span.traceparent == first.traceparent]
    wait, = [span for span in told if span.kind is SpanKind.WAIT]
    assert (hold.kind, hold.status, hold.label, hold.parent, hold.link) == (
        SpanKind.HOLD, Status.OK, "Test:traced", PARENT, None)
    assert (wait.parent, wait.link, wait.key) == (PARENT, first.traceparent, hold.key)
    assert before <= hold.start_ns <= hold.end_ns and wait.start_ns < wait.end_ns
    assert first.traceparent[3:35] == TRACE


def test_lock_shows_the_span_of_its_holder(traced, how):
    with traced.lock("Test:traced", traceparent=PARENT, **how) as lock:
        if traced.has_records or how:
            eventually(lambda: lock.traceparent in [view.traceparent for view in traced.locks()])


def test_what_is_not_valid_is_ignored_and_what_is_no_text_refused(store, how):
    with store.lock("Test:traced", traceparent="no span", **how) as lock:
        assert lock.traceparent == ""
    with pytest.raises(holdfast.InvalidError):
        store.lock("Test:traced", traceparent=7, **how)
    with pytest.raises(holdfast.InvalidError):
        holdfast.Store("local:/nowhere", on_span=7)


def test_callback_that_fails_is_logged_and_does_no_harm(url, how, caplog):
    def fail(span):
        raise ValueError("no exporter")

    with holdfast.Store(url, on_span=fail) as store:
        store.lock("Test:traced", **how).release()
    assert "on_span" in caplog.text


def test_transaction_is_told_with_its_label(traced, told):
    seen = traced.transact(lambda tx: tx.traceparent, "Test:traced", traceparent=PARENT)
    span, = [span for span in told if span.kind is SpanKind.TRANSACTION]
    assert (span.traceparent, span.parent, span.label) == (seen, PARENT, "Test:traced")


def test_tasks_are_traced_too(url, told, how):
    async def work():
        async with holdfast.aio.Store(url, on_span=told.append) as store:
            async with store.lock("Test:traced", traceparent=PARENT, **how) as lock:
                assert lock.traceparent[3:35] == TRACE
            return await store.transact(lambda tx: asyncio.sleep(0, tx.traceparent), "Test:traced", traceparent=PARENT)

    seen = asyncio.run(work())
    assert {span.parent for span in told if span.kind is SpanKind.HOLD} <= {PARENT, seen}
    assert [span.traceparent for span in told if span.kind is SpanKind.TRANSACTION] == [seen]

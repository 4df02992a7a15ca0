"""Two numbers are a key like any other: whoever waits for one, keeps it to itself or looks at it."""

import pytest

import hf_tx
from awaiting import Background, eventually
from hf import BIGINT, EXCLUSIVE, FOREVER, PAIR, PRIVATE, SHARED, State, Status

PAIR_KEY = (7, -8)


def waits(store):
    return [view for view in store.locks() if view.space == PAIR and view.waiting]


@pytest.mark.parametrize("mode", [EXCLUSIVE, SHARED], ids=["exclusive", "shared"])
def test_whoever_waits_for_a_pair_gets_it_when_it_is_released(store, peer, mode):
    held = peer.acquire({"pair": PAIR_KEY})
    waiter = Background(store.acquire, PAIR_KEY, FOREVER, mode=mode)
    eventually(lambda: waits(store))
    peer.release(held)
    lock = waiter.result()
    assert lock.state is State.HELD
    assert peer.refusal({"pair": PAIR_KEY}).status is Status.NOT_ACQUIRED
    lock.end()
    peer.acquire({"pair": PAIR_KEY})


def test_a_wait_for_a_pair_that_ends_leaves_nothing_held(store, other, peer):
    held = peer.acquire({"pair": PAIR_KEY})
    error = store.refusal(PAIR_KEY, 1200)
    assert error.status is Status.NOT_ACQUIRED
    assert "7, -8" in error.text or "7,-8" in error.text
    peer.release(held)
    other.acquire(PAIR_KEY).end()


def test_a_pair_may_have_a_session_of_its_own(store, other, peer):
    lock = store.acquire(PAIR_KEY, flags=PRIVATE)
    assert peer.refusal({"pair": PAIR_KEY}).status is Status.NOT_ACQUIRED
    assert other.refusal(PAIR_KEY, flags=PRIVATE).status is Status.NOT_ACQUIRED
    waiter = Background(other.acquire, PAIR_KEY, FOREVER, flags=PRIVATE)
    eventually(lambda: waits(store))
    lock.end()
    waiter.result().end()


def test_a_pair_and_the_bigint_of_the_same_bits_are_two_keys_in_the_list(store):
    bigint = (PAIR_KEY[0] << 32) | (PAIR_KEY[1] & 0xFFFFFFFF)
    store.acquire(PAIR_KEY)
    store.acquire(bigint)
    views = [view for view in store.locks() if view.key == bigint]
    assert sorted(view.space for view in views) == [BIGINT, PAIR]


def test_a_pair_serialises_transactions(store, peer):
    held = peer.acquire({"pair": PAIR_KEY})
    error = hf_tx.refusal(store, [PAIR_KEY], lambda tx: tx.query("SELECT 1"), deadline_ms=300)
    assert error.status is Status.NOT_ACQUIRED
    peer.release(held)
    hf_tx.transact(store, [PAIR_KEY], lambda tx: tx.query("SELECT 1"))
    peer.acquire({"pair": PAIR_KEY})

"""Who asks is the calling thread, or a task that moves between threads."""

import threading

import pytest

import hf
from awaiting import Background, eventually
from hf import ANY_ORDER, REENTRANT, HfError, Status
from hf_tx import elsewhere


@pytest.fixture
def labels():
    """One with a smaller key, one with a greater one."""
    return sorted(("a", "b"), key=hf.derive)


def test_the_order_rule_is_about_owners_not_threads(store, labels):
    small, great = labels
    with store.acquire(great, owner=7):
        store.acquire(small, 1000, owner=8).end()
        store.acquire(small, 1000).end()
        assert store.refusal(small, 1000, owner=7).status is Status.ORDER
        assert elsewhere(lambda: store.refusal(small, 1000, owner=7)).status is Status.ORDER


def test_an_owner_enters_again_from_any_thread(store):
    with store.acquire("job", owner=7):
        elsewhere(lambda: store.acquire("job", flags=REENTRANT, owner=7)).end()
        assert store.refusal("job", flags=REENTRANT, owner=8).status is Status.NOT_ACQUIRED
        assert store.refusal("job", flags=REENTRANT).status is Status.NOT_ACQUIRED


def test_the_number_of_an_owner_is_not_that_of_a_thread(store):
    with store.acquire("job", owner=threading.get_native_id()):
        assert store.refusal("job", flags=REENTRANT).status is Status.NOT_ACQUIRED


def test_two_owners_of_one_thread_do_not_wait_for_each_other(store, peer, labels):
    """What the first holds, another waits for: that is no deadlock, though one thread acquired both."""
    small, great = labels
    mine = store.acquire(small, owner=7)
    theirs = peer.acquire(great)
    waiter = Background(store.acquire, great, 20_000, owner=8)
    peer_waits = Background(peer.acquire, small, 20_000, flags=ANY_ORDER)
    mine.end()
    peer.release(peer_waits.result())
    peer.release(theirs)
    waiter.result().end()


def test_a_deadlock_of_two_owners_is_found(store, labels):
    small, great = labels
    held = store.acquire(great, owner=7), store.acquire(small, owner=9)
    calls = [Background(store.acquire, small, 20_000, flags=ANY_ORDER, owner=7),
             Background(store.acquire, great, 20_000, owner=9)]
    eventually(lambda: not all(call.running for call in calls))
    loser = next(call for call in calls if not call.running)
    with pytest.raises(HfError) as found:
        loser.result()
    assert found.value.status is Status.DEADLOCK
    held[calls.index(loser)].end()
    for call in calls:
        if call is not loser:
            call.result().end()


@pytest.mark.parametrize("owner", [-1, 1 << 62])
def test_an_owner_is_a_positive_number_below_two_to_the_62(store, owner):
    assert store.refusal("job", owner=owner).status is Status.INVALID
